"""The seam of the store for its readers: protocols and values. No SQL, row, cursor or driver exception crosses it.

What retrieval, scheduler, workers and app know of a store is here, in `write_port` (what the writer is given) and in
`state_port` (runs, roots, failures); which store it is, app.wiring decides.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from msgspec import Struct

from domain.files import FileStat


class Visibility(NamedTuple):
    """Which documents a read may show: everything but the hidden items (frozen at the start of an answer)."""

    base_id: str = ""
    state_generation: int = 0
    hidden_item_ids: frozenset[str] = frozenset()

    @staticmethod
    def everything() -> "Visibility":
        return _EVERYTHING


_EVERYTHING = Visibility()


class StoredFile(Struct, frozen=True, gc=False):
    """What the store knows of a key that the walk may meet, in key order."""

    key: str
    stat: FileStat
    checked_ns: int
    file_hash: bytes  # b"" for a skipped file
    reason: str  # "" for a document, else why the file was skipped
    warnings: str  # JSON list of codes, "[]" mostly
    generation: int = 0  # of the run that looked at it last


class StoreCounts(NamedTuple):
    documents: int
    chunks: int
    skipped: int


class StoreIdentity(NamedTuple):
    """What names a state of the store: caches and ETags hang on (store_uuid, commit_seq)."""

    base_id: str
    store_uuid: str
    commit_seq: int
    format_version: int
    substring_index: str
    complete_ns: int | None  # when a full run last ended; None before the first (status index_incomplete)
    generation: int = 0  # of the newest run that has written to it (R25)


class StoredDocument(NamedTuple):
    """A document without its text."""

    id: int
    key: str
    root: str
    title: str
    size_bytes: int
    mtime_ns: int
    checked_ns: int
    indexed_ns: int
    generation: int
    chunk_count: int
    file_hash: bytes
    warnings: str


class FileTrace(NamedTuple):
    """What a run has written of a key, be it a document or a skipped file."""

    reason: str  # "" for a document, else why the file was skipped
    checked_ns: int
    generation: int  # of the run that wrote it last
    created_generation: int  # of the run that added the document; 0 for a skipped file
    vector_state: str  # `none`, `pending`, `ready`


class StoredChunk(NamedTuple):
    key: str
    ordinal: int
    title: str
    heading_path: str
    lead: str
    body: str
    start_line: int
    end_line: int


class Snapshot(Protocol):
    """Reads over one state of the store. Every result is fetched whole or streamed in short pages."""

    def identity(self) -> StoreIdentity: ...

    def counts(self, prefix: str = "", *, visibility: Visibility) -> StoreCounts: ...

    def document_count(self, prefix: str) -> int:
        """Documents below a key prefix, hidden ones included."""
        ...

    def stored_files(self, prefix: str) -> Iterator[StoredFile]:
        """Documents and skipped files below a key prefix (`docs/`) or under one key (`docs/a.md`), in key
        order, in short pages: no read transaction stays open between two of them."""
        ...

    def document(self, key: str, *, visibility: Visibility) -> StoredDocument | None: ...

    def file_trace(self, key: str) -> FileTrace | None: ...

    def documents(
        self, prefix: str, *, after: str = "", limit: int = 1000, visibility: Visibility
    ) -> Sequence[StoredDocument]: ...

    def chunks(
        self, key: str, *, first: int = 0, last: int | None = None, visibility: Visibility
    ) -> Sequence[StoredChunk]: ...

    def text(self, key: str, *, visibility: Visibility) -> str | None:
        """The document as indexed: lead and body of every chunk in order, then the tail."""
        ...

    def skipped(self, prefix: str = "", *, limit: int = 1000) -> Sequence[StoredFile]: ...


class Store(Protocol):
    """A store as its readers see it."""

    def snapshot(self) -> AbstractContextManager[Snapshot]: ...

    def close(self) -> None: ...


class LiteralHit(NamedTuple):
    id: int
    exact: bool  # the case is the literal's, too


class LiteralFind(NamedTuple):
    """Chunks that hold a literal, exact case first; `truncated`: not every place was looked at."""

    hits: Sequence[LiteralHit]
    truncated: bool = False


class SubstringFind(NamedTuple):
    """Chunks that hold substrings, best first; `relaxed`: none holds all of them, these hold some."""

    ids: Sequence[int]
    relaxed: bool = False
    truncated: bool = False


class Scope(NamedTuple):
    """Which chunks a lane may give: of some documents only, as ranges of chunk ids, both ends included.

    Ranges can stand for documents because chunk ids ascend with document ids: both are issued above every one
    in use, in one loop (store.documents).
    """

    ranges: tuple[tuple[int, int], ...]


class ChunkSketch(NamedTuple):
    """What tells copies and chunks without a body before any is hydrated."""

    id: int
    text_hash: bytes
    has_body: int


class FoundChunk(NamedTuple):
    """A chunk with what a hit shows of its document."""

    id: int
    key: str
    ordinal: int
    heading_path: str
    body: str
    names: str
    start_line: int
    end_line: int
    title: str
    root: str
    file_hash: bytes
    indexed_ns: int
    mtime_ns: int


class SearchSnapshot(Snapshot, Protocol):
    """The ranked reads and the vocabulary. `scope` None is every chunk; lanes give `limit` at most."""

    def has_documents(self) -> bool: ...

    def chunk_total(self) -> int: ...

    def stems(self, words: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """What the index makes of each word: no stem, one, or several that stand side by side."""
        ...

    def folded(self, word: str) -> str:
        """The word as the vocabulary spells it; "" where it is no single word there."""
        ...

    def stem_counts(self, stems: Sequence[str]) -> Mapping[str, int]:
        """How many chunks hold each stem; stems that are nowhere are left out."""
        ...

    def words_between(self, first: str, end: str, limit: int, *, visibility: Visibility) -> Sequence[tuple[str, int]]:
        """Words of the vocabulary from `first` up to `end` (left out), with their number of visible chunks. `limit` is
        of words that are looked at: those that only hidden chunks hold are taken off afterwards."""
        ...

    def words_among(self, words: Sequence[str], *, visibility: Visibility) -> Sequence[tuple[str, int]]:
        """Those of the words that visible chunks hold, with their number."""
        ...

    def rank_words(
        self, terms: Sequence[str], *, limit: int, scope: Scope | None, visibility: Visibility
    ) -> Sequence[int]:
        """Ids of chunks that hold any of the terms, by BM25; a term that stands twice counts twice."""
        ...

    def find_literal(
        self,
        text: str,
        *,
        first: Sequence[int],
        limit: int,
        max_postings: int,
        scope: Scope | None,
        visibility: Visibility,
    ) -> LiteralFind:
        """Chunks whose body, breadcrumb or names hold the text; blanks stand for any run of blanks.

        The chunks of `first` (another lane's, inside the scope) are looked at first and stand first, in their
        order; the others follow by BM25.
        """
        ...

    def find_substrings(
        self, pieces: Sequence[str], *, relax: bool, limit: int, scope: Scope | None, visibility: Visibility
    ) -> SubstringFind:
        """Chunks of the trigram table that hold all pieces; with `relax`, where there are none, those that hold
        any part of them."""
        ...

    def sketches(self, ids: Sequence[int]) -> Sequence[ChunkSketch]:
        """Of the chunks that are still there, in the order of `ids`."""
        ...

    def found_chunks(self, ids: Sequence[int], *, visibility: Visibility) -> Sequence[FoundChunk]:
        """The chunks that are still there, in the order of `ids`."""
        ...

    def document_ids(self, prefix: str) -> Sequence[tuple[int, str]]:
        """Id and key of every document below a key prefix, ascending by id."""
        ...

    def scope_of(self, document_ids: Sequence[int]) -> Scope | None:
        """The scope of some documents (ids ascending); None where they are all there are."""
        ...


class VocabularySnapshot(Protocol):
    """What `words` reads. `column` is one of the full-text tables', or "" for all of them."""

    def identity(self) -> StoreIdentity: ...

    def documents(
        self, prefix: str, *, after: str = "", limit: int = 1000, visibility: Visibility
    ) -> Sequence[StoredDocument]: ...

    def stems(self, words: Sequence[str]) -> Mapping[str, tuple[str, ...]]: ...

    def word_pages(self, column: str, *, visibility: Visibility) -> Iterator[Sequence[tuple[str, int]]]:
        """Every word with the number of chunks that hold it, in the byte-wise order of the words, page by page."""
        ...

    def stem_counts_in(self, stems: Sequence[str], column: str, *, visibility: Visibility) -> Mapping[str, int]:
        """How many chunks hold each stem in the column; stems that are nowhere are left out."""
        ...
