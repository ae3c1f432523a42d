"""Checking the files of a page: read, hash, compare, cut. One thread hop a page; nothing is written here (C-02)."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from domain.documents import CutDocument
from domain.files import FileCheck, FileFailure, FileStat, Page, PageKind, Reason
from domain.keys import is_plain_text, path_below_root
from domain.markdown.spans import ScanTooSlowError, deadline_after
from store.write_port import ChunkRow, DocumentWrite, RecheckWrite, SkipWrite, VectorsWrite
from workers.chunker import cut
from workers.hashing import content_hash, file_hash, text_hash
from workers.reading import FileRead, NotRead, RootReader

SCAN_LIMIT_S = 10.0  # for one file; the largest take a fiftieth of it


class CheckRules(Struct, frozen=True):
    """What a worker must know to check a page of one root."""

    root_path: Path
    generation: int
    max_file_bytes: int
    substring_index: Literal["auto", "on", "off"]


class TextCounts(Struct, frozen=True):
    """What became of the texts of a page that need a vector, each text counted once."""

    embedded: int = 0
    reused: int = 0
    from_parts: int = 0  # of those embedded: too long for the model
    pending: int = 0  # left for later


class FinishedPage(Struct, frozen=True):
    """A page as its worker hands it over: rows ready to be bound, nothing committed yet."""

    run: int
    number: int
    root: str
    documents: tuple[DocumentWrite, ...] = ()
    rechecks: tuple[RecheckWrite, ...] = ()
    skips: tuple[SkipWrite, ...] = ()
    failures: tuple[FileFailure, ...] = ()
    vectors: tuple[VectorsWrite, ...] = ()
    texts: TextCounts = TextCounts()
    kind: PageKind = "check"  # as it was planned

    @property
    def text_bytes(self) -> int:
        return sum(document.text_bytes for document in self.documents)

    @property
    def file_count(self) -> int:
        """Files that are written for; failures need no row."""
        return len(self.documents) + len(self.rechecks) + len(self.skips) + len(self.vectors)


Checked = DocumentWrite | RecheckWrite | SkipWrite | FileFailure


def check_page(page: Page, run: int, rules: CheckRules, clock: Callable[[], float] = time.monotonic) -> FinishedPage:
    """Check every file of a page, in its order. A failure stays with its own file."""
    with RootReader(rules.root_path, max_file_bytes=rules.max_file_bytes) as reader:
        checked = [_check_safely(file, page.root, reader, rules, clock) for file in page.files]
    return finished_page(page, run, checked)


def finished_page(page: Page, run: int, checked: Sequence[Checked]) -> FinishedPage:
    """What came of a page's files, sorted by what is to be done with it."""
    return FinishedPage(
        run=run,
        number=page.number,
        root=page.root,
        documents=tuple(item for item in checked if isinstance(item, DocumentWrite)),
        rechecks=tuple(item for item in checked if isinstance(item, RecheckWrite)),
        skips=tuple(item for item in checked if isinstance(item, SkipWrite)),
        failures=tuple(item for item in checked if isinstance(item, FileFailure)),
    )


def _check_safely(
    file: FileCheck, root: str, reader: RootReader, rules: CheckRules, clock: Callable[[], float]
) -> Checked:
    try:
        return check_file(file, root, reader, rules, clock)
    except Exception as error:  # noqa: BLE001 - a fault of ours that one file brings out is not the others'
        return unexpected_failure(file.key, error, reader)


def unexpected_failure(key: str, error: Exception, reader: RootReader) -> FileFailure:
    return FileFailure(key, Reason.UNEXPECTED, f"{type(error).__name__}: {error}", stat_of(key, reader))


def stat_of(key: str, reader: RootReader) -> FileStat | None:
    """What stat says of a file that fails, so that the next run knows whether it has changed; None: nothing."""
    return reader.stat(path_below_root(key))


def check_file(
    file: FileCheck, root: str, reader: RootReader, rules: CheckRules, clock: Callable[[], float]
) -> Checked:
    """What is to be stored of one file, or why nothing is."""
    read = reader.read(path_below_root(file.key))
    if isinstance(read, NotRead):
        if read.is_failure:
            return FileFailure(file.key, read.reason, read.detail, stat_of(file.key, reader))
        return _skip(file.key, root, read.reason, read.stat, read.observed_ns, rules)
    hash_of_file = file_hash(read.raw)
    if hash_of_file == file.stored_hash:
        return RecheckWrite(file.key, read.stat, read.observed_ns, read.observed_ns, rules.generation, hash_of_file)
    try:
        text = read.raw.decode()
    except UnicodeDecodeError:
        return _skip(file.key, root, Reason.NOT_UTF8, read.stat, read.observed_ns, rules)
    if not text.strip("\ufeff \t\r\n\f\v"):
        return _skip(file.key, root, Reason.EMPTY, read.stat, read.observed_ns, rules)
    return _cut(file.key, root, text, read, hash_of_file, rules, clock)


def _cut(
    key: str,
    root: str,
    text: str,
    read: FileRead,
    hash_of_file: bytes,
    rules: CheckRules,
    clock: Callable[[], float],
) -> DocumentWrite | FileFailure:
    deadline = deadline_after(SCAN_LIMIT_S, clock)
    try:
        document = cut(text, key, markdown=not is_plain_text(key), deadline=deadline)
    except ScanTooSlowError:
        return FileFailure(key, Reason.TOO_SLOW, f"more than {SCAN_LIMIT_S:g} s to read its structure", read.stat)
    return DocumentWrite(
        key=key,
        root=root,
        stat=read.stat,
        checked_ns=read.observed_ns,
        observed_ns=read.observed_ns,
        generation=rules.generation,
        file_hash=hash_of_file,
        content_hash=content_hash(read.raw, text, document.content_start, hash_of_file),
        title=document.title,
        warnings=json.dumps(document.warnings) if document.warnings else "[]",
        tail=document.tail,
        chunks=chunk_rows(document, rules.substring_index),
        text_bytes=len(read.raw),
    )


def chunk_rows(document: CutDocument, substring_index: Literal["auto", "on", "off"]) -> tuple[ChunkRow, ...]:
    """The rows of a document's chunks in order; its names stand on the first one (R30)."""
    everything = substring_index == "on"
    nothing = substring_index == "off"
    return tuple(
        [
            (
                ordinal,
                int(everything or (chunk.spaceless and not nothing)),
                chunk.start_line,
                chunk.end_line,
                text_hash(chunk.body),
                "" if ordinal else document.names,
                chunk.heading_path,
                chunk.lead,
                chunk.body,
            )
            for ordinal, chunk in enumerate(document.chunks)
        ]
    )


def _skip(key: str, root: str, reason: Reason, stat: FileStat, observed_ns: int, rules: CheckRules) -> SkipWrite:
    return SkipWrite(key, root, reason, stat, observed_ns, observed_ns, rules.generation)
