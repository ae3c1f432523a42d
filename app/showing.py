"""`knowledge show`: a citation, a key or a path of this machine, looked up in the store; no file is read for it."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from app.places import absolute
from app.present import no_documents_error, standing_notes
from app.present_safe import typed
from domain.citations import MARK, Citation
from domain.errors import IntegrityError, KnowledgeError, NotFoundError, UsageError
from domain.keys import is_utf8
from domain.settings import RootSettings
from domain.status import Standing
from store.port import Snapshot, StoredChunk, StoredDocument, Visibility
from store.state_port import RootRecord

_EVERYTHING = Visibility.everything()
_RANGE = re.compile(r"([0-9]{1,9})(?:(-)([0-9]{1,9})?)?")
_LINES_HINT = "write --lines FIRST-LAST, for example --lines 10-20, 10- or 10"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")  # a line ends at LF, CRLF or a lone CR (R13)


class ShownChunk(Struct, frozen=True):
    """The chunk that a citation names, with the neighbours that were asked for, in order."""

    document: StoredDocument
    cited: int  # the ordinal
    chunks: tuple[StoredChunk, ...]
    opening: str = ""  # what stands before the document's first body, its frontmatter above all


class ShownDocument(Struct, frozen=True):
    """A document's text as it was indexed, or some of its lines."""

    document: StoredDocument
    text: str
    first_line: int = 1
    is_part: bool = False
    opening: str = ""  # as above


Shown = ShownChunk | ShownDocument


class ShowRequest(Struct, frozen=True):
    """`target` as it was typed."""

    target: str
    before: int = 0
    after: int = 0
    lines: str = ""


class KnownPlaces(Struct, frozen=True):
    """Where keys come from: recorded roots, configured ones (whose paths may be links), the working directory."""

    records: Sequence[RootRecord]
    configured: Sequence[RootSettings]
    cwd: Path
    user_home: str


def show(
    snapshot: Snapshot,
    request: ShowRequest,
    places: KnownPlaces,
    standing: Callable[[], Standing] = lambda: Standing.COMPLETE,
) -> Shown:
    """`standing` is asked where there is no such document: what it means depends on what the index as a whole is.

    Raises CitationMalformedError, NotFoundError, CorpusEmptyError, UsageError (lines that are no range).
    """
    for key in keys_of(request.target, places):
        document = _stored(snapshot, key)
        if document is not None:
            return _whole(snapshot, document, request)
    if MARK not in request.target:
        raise _no_document(request.target, standing())
    citation = Citation.parse(request.target)
    if request.lines:
        raise UsageError("--lines goes with a document, not with a citation", hint="leave out the #number")
    for key in keys_of(citation.key, places):
        document = _stored(snapshot, key)
        if document is not None:
            return _chunk(snapshot, document, citation.ordinal, request)
    raise _no_document(citation.key, standing())


def show_document(snapshot: Snapshot, key: str, lines: str, standing: Callable[[], Standing]) -> ShownDocument:
    """The document with this very key, whatever signs it holds. Raises NotFoundError, CorpusEmptyError, UsageError."""
    document = _stored(snapshot, key)
    if document is None:
        raise _no_document(key, standing())
    return _whole(snapshot, document, ShowRequest(key, lines=lines))


def show_chunk(
    snapshot: Snapshot, citation: Citation, before: int, after: int, standing: Callable[[], Standing]
) -> ShownChunk:
    """The chunk of the document with this very key, and its neighbours. Raises NotFoundError, CorpusEmptyError."""
    document = _stored(snapshot, citation.key)
    if document is None:
        raise _no_document(citation.key, standing())
    return _chunk(snapshot, document, citation.ordinal, ShowRequest(citation.format(), before, after))


def _stored(snapshot: Snapshot, key: str) -> StoredDocument | None:
    """A name that is no UTF-8 was never indexed: the store is not asked for what it cannot hold."""
    return snapshot.document(key, visibility=_EVERYTHING) if is_utf8(key) else None


def keys_of(target: str, places: KnownPlaces) -> tuple[str, ...]:
    """The keys that a target may mean, likeliest first: as it stands, as it was shown, as a path below a root."""
    keys = [target]
    if (raw := typed(target)) != target:
        keys.append(raw)
    try:
        path = str(absolute(target, below=places.cwd, user_home=places.user_home))
    except ValueError:  # a NUL in it
        return tuple(keys)
    names = {record.path: record.name for record in places.records}
    roots = dict(names)
    for root in places.configured:  # a link there; what was typed itself is never looked at on the disk
        known = names.get(os.path.realpath(root.path))
        if known is not None:
            roots.setdefault(str(root.path), known)
    for root_path, name in roots.items():
        inside = root_path.rstrip("/") + "/"
        if path.startswith(inside):
            keys.append(f"{name}/{path[len(inside) :]}")
    return tuple(keys)


def line_range(written: str) -> tuple[int, int | None]:
    """`10-20`, `10-` or `10` as first and last line, both included. Raises UsageError."""
    found = _RANGE.fullmatch(written.strip())
    if found is None:
        raise UsageError(f"{written[:40]!r} is no range of lines", hint=_LINES_HINT)
    first = int(found[1])
    if found[3]:
        last: int | None = int(found[3])
    else:
        last = None if found[2] else first
    if first < 1 or (last is not None and last < first):
        raise UsageError(f"{written[:40]!r} is no range of lines: they count from 1, upwards", hint=_LINES_HINT)
    return first, last


def _whole(snapshot: Snapshot, document: StoredDocument, request: ShowRequest) -> ShownDocument:
    if request.before or request.after:
        raise UsageError("--before and --after go with a citation", hint=f"add {MARK} and a number to the path")
    text = snapshot.text(document.key, visibility=_EVERYTHING) or ""
    if not request.lines:
        return ShownDocument(document, text, opening=_opening(snapshot, document))
    first, last = line_range(request.lines)
    lines = _LINE.findall(text)
    if first > len(lines):
        raise NotFoundError(f"{document.key} has no line {first}: it has {len(lines)}")
    return ShownDocument(document, "".join(lines[first - 1 : last]), first, True, _opening(snapshot, document))


def _chunk(snapshot: Snapshot, document: StoredDocument, ordinal: int, request: ShowRequest) -> ShownChunk:
    if ordinal >= document.chunk_count:
        raise NotFoundError(
            f"{document.key} has no chunk {ordinal}: it has {document.chunk_count}, counted from 0",
            hint="numbers shift when a document changes: search again, or `knowledge show` the document itself",
        )
    chunks = snapshot.chunks(
        document.key,
        first=max(0, ordinal - request.before),
        last=min(ordinal + request.after, document.chunk_count),
        visibility=_EVERYTHING,
    )
    if all(chunk.ordinal != ordinal for chunk in chunks):
        raise IntegrityError(
            f"chunk {ordinal} of {document.key} cannot be found, though there should be {document.chunk_count}",
            hint="the index is damaged: `knowledge verify` says where",
        )
    return ShownChunk(document, ordinal, tuple(chunks), _opening(snapshot, document))


def _opening(snapshot: Snapshot, document: StoredDocument) -> str:
    chunks = snapshot.chunks(document.key, last=0, visibility=_EVERYTHING)
    return chunks[0].lead if chunks else ""


def _no_document(target: str, standing: Standing) -> KnowledgeError:
    if standing in (Standing.EMPTY, Standing.INCONSISTENT):
        return no_documents_error(standing)
    shown = target if len(target) <= 200 else f"{target[:200]}..."
    hint = "; ".join(["`knowledge sources --all` lists what it holds", *standing_notes(standing)])
    return NotFoundError(f"the index holds no document {shown!r}", hint=hint)
