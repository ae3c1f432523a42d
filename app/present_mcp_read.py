"""A cited chunk with its neighbours, or a document page by page, as an agent is answered."""

from typing import NamedTuple

from app.mcp_cursor import Cursor, digest
from app.present import Json, standing_notes, tier_line
from app.present_documents import chunk_json, document_json, shown_status
from app.present_mcp import (
    LEAST_BUDGET_CHARS,
    SHOWN_SHA256_CHARS,
    Told,
    ToolAnswer,
    fitting,
    framed,
    said_first,
    size_of,
)
from app.present_mcp_search import Page
from app.present_safe import display, name, one_line
from app.showing import Shown, ShownChunk, ShownDocument
from domain.citations import Citation
from domain.errors import KnowledgeError, UsageError
from domain.status import Standing, Tier
from store.port import StoredChunk

_CHANGED, _NOT_BUILT = "document_changed", "index_not_built"
METADATA_SHARE = 4  # the metadata takes at most one part in so many of the room
_DOCUMENT_KEYS = ("path", "root", "title", "metadata")  # from documents; what else is said of one is ours


class _Part(NamedTuple):
    """What of a document is given."""

    value: Json
    text: str
    is_truncated: bool
    note: str = ""
    next_offset: int | None = None


def read_tool_answer(shown: Shown, tier: Tier, standing: Standing, expected_sha256: str, page: Page) -> ToolAnswer:
    """`standing` is that of the index. Raises UsageError where the document has changed since the cursor was given."""
    sha256 = shown.document.file_hash.hex()
    state = digest(sha256)
    if page.cursor is not None and page.cursor.state != state:
        raise UsageError(
            "the document has changed since the cursor was given", hint="read it from the beginning, without the cursor"
        )
    is_same = sha256.startswith(expected_sha256.lower())
    if isinstance(shown, ShownChunk):
        part = _chunk_part(shown, tier, standing, page)
    else:
        part = _document_part(shown, tier, standing, page)
    body = part.value
    about_document = {key: body.pop(key) for key in list(body) if key not in (*_DOCUMENT_KEYS, *_TEXT_KEYS)}
    notes = standing_notes(standing) if standing is Standing.OUTDATED else []
    notes += [] if is_same else [f"the document has changed: the index holds it with SHA-256 {sha256}"]
    notes += [part.note] if part.note else []
    head = {
        "tier": tier_line(tier),
        "status": shown_status(standing) if is_same else _CHANGED,
        "note": "; ".join(notes) or None,
        **{key: value for key, value in about_document.items() if key not in ("tier", "status")},
        "truncated": part.is_truncated,
        "next_cursor": Cursor(page.about, part.next_offset, state).format() if part.next_offset is not None else None,
    }
    return framed(Told(head, _lines(head), body, part.text))


def read_not_built_answer(error: KnowledgeError, tier: Tier) -> ToolAnswer:
    head = {
        "tier": tier_line(tier),
        "status": _NOT_BUILT,
        "note": f"{error.message}; {error.hint}",
        "error": {"code": error.code, "message": error.message, "hint": error.hint},
        "truncated": False,
        "next_cursor": None,
    }
    return framed(Told(head, _lines(head), {}, ""))


_TEXT_KEYS = ("citation", "chunks", "content", "first_line", "last_line")


def _lines(head: Json) -> list[str]:
    lines = said_first(head)
    if head.get("document_sha256"):
        lines.append(f"document_sha256: {head['document_sha256'][:SHOWN_SHA256_CHARS]}")
    return lines


def _chunk_part(shown: ShownChunk, tier: Tier, standing: Standing, page: Page) -> _Part:
    """The cited chunk, and of its neighbours the nearest that fit."""
    if page.cursor is not None:
        raise UsageError("a cursor goes with a path", hint="for what follows a chunk, cite the next one")
    cited = next(chunk for chunk in shown.chunks if chunk.ordinal == shown.cited)
    content = fitting(cited.body, max(page.budget_chars, LEAST_BUDGET_CHARS))
    kept = {cited.ordinal: content}
    used = size_of(content, content)
    for chunk in sorted(shown.chunks, key=lambda chunk: (abs(chunk.ordinal - shown.cited), chunk.ordinal)):
        if chunk is cited:
            continue
        used += size_of(chunk.body, chunk.body)
        if used > page.budget_chars:
            break
        kept[chunk.ordinal] = chunk.body
    value, notes = _safe_document(chunk_json(shown, tier, standing), page)
    value["citation"] = name(value["citation"])
    chunks = [chunk for chunk in shown.chunks if chunk.ordinal in kept]
    value["chunks"] = [_chunk_row(chunk, kept[chunk.ordinal]) for chunk in chunks]
    left = len(shown.chunks) - len(chunks)
    is_cut = len(content) < len(cited.body)
    notes += [f"{left} of the neighbours left out for want of room: cite them by themselves"] if left else []
    notes += ["the chunk is longer than all room and was cut: read its document by lines"] if is_cut else []
    text = "\n\n".join(_chunk_text(chunk, kept[chunk.ordinal]) for chunk in chunks)
    return _Part(value, text, bool(left) or is_cut, "; ".join(notes))


def _document_part(shown: ShownDocument, tier: Tier, standing: Standing, page: Page) -> _Part:
    offset = page.cursor.offset if page.cursor is not None else 0
    if offset > len(shown.text):
        raise UsageError("the cursor is none that an answer gave", hint="leave it out to begin anew")
    rest = shown.text[offset:]
    content = fitting(rest, max(page.budget_chars, LEAST_BUDGET_CHARS))
    end = offset + len(content)
    first = shown.first_line + _line_ends(shown.text[:offset])
    last = first + _line_ends(content) - content.endswith(("\n", "\r"))
    value, note = _safe_document(document_json(shown, tier, standing), page)
    value |= {"first_line": first, "last_line": last, "content": display(content)}
    value["is_part"] = shown.is_part or len(content) < len(shown.text)
    is_cut = end < len(shown.text)
    notes = [*note, *(["more of the document follows; go on with the cursor"] if is_cut else [])]
    header = f"{name(shown.document.key)}  {one_line(shown.document.title)}\nlines {first}-{last}"
    return _Part(value, f"{header}\n\n{display(content)}", is_cut, "; ".join(notes), end if is_cut else None)


def _line_ends(text: str) -> int:
    """LF, CRLF and a lone CR, as elsewhere (R13)."""
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _safe_document(value: Json, page: Page) -> tuple[Json, list[str]]:
    """What is said of the document, and a note where its frontmatter takes too much room."""
    safe = value | {"path": name(value["path"]), "root": name(value["root"]), "title": one_line(value["title"])}
    if size_of(value["metadata"], "") <= page.budget_chars // METADATA_SHARE:
        return safe, []
    return safe | {"metadata": {}}, ["the metadata is left out for want of room: it stands in the first lines"]


def _chunk_row(chunk: StoredChunk, content: str) -> Json:
    return {
        "citation": name(Citation(chunk.key, chunk.ordinal).format()),
        "ordinal": chunk.ordinal,
        "heading_path": one_line(chunk.heading_path),
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "content": display(content),
    }


def _chunk_text(chunk: StoredChunk, content: str) -> str:
    where = f"lines {chunk.start_line}-{chunk.end_line}"
    breadcrumb = one_line(chunk.heading_path)
    header = f"{name(Citation(chunk.key, chunk.ordinal).format())}  {one_line(chunk.title)}"
    return "\n".join([header, f"{breadcrumb} · {where}" if breadcrumb else where, "", display(content).rstrip("\n")])
