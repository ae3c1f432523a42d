"""The seam of the store: protocols and values. No SQL, row, cursor or driver exception crosses it.

What retrieval, scheduler, workers and app know of a store is here; which store it is, app.wiring decides.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from domain.files import FileStat, Outcome, Reason

ChunkRow = tuple[int, int, int, int, bytes, str, str, str, str]
"""ordinal, in_tri, start_line, end_line, text_hash, names, heading_path, lead, body: bound as it is."""


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which documents a read may show: everything but the hidden items (frozen at the start of an answer)."""

    base_id: str = ""
    state_generation: int = 0
    hidden_item_ids: frozenset[str] = frozenset()

    @staticmethod
    def everything() -> "Visibility":
        return _EVERYTHING


_EVERYTHING = Visibility()


class StoredFile(NamedTuple):
    """What the store knows of a key that the walk may meet, in key order."""

    key: str
    stat: FileStat
    checked_ns: int
    file_hash: bytes  # b"" for a skipped file
    reason: str  # "" for a document, else why the file was skipped
    warnings: str  # JSON list of codes, "[]" mostly


@dataclass(frozen=True, slots=True)
class DocumentWrite:
    """A document to be stored whole, in place of what is stored under its key."""

    key: str
    root: str
    stat: FileStat
    checked_ns: int
    observed_ns: int  # the reader's fstat time of the bytes: second half of the fence (R25)
    generation: int
    file_hash: bytes
    content_hash: bytes
    title: str
    metadata: str  # JSON object
    warnings: str  # JSON list of codes
    tail: str
    chunks: Sequence[ChunkRow]
    text_bytes: int


@dataclass(frozen=True, slots=True)
class RecheckWrite:
    """A file whose bytes are the stored ones: only what stat said of it is brought up to date (R26)."""

    key: str
    stat: FileStat
    checked_ns: int
    observed_ns: int
    generation: int
    file_hash: bytes


@dataclass(frozen=True, slots=True)
class SkipWrite:
    """A file that is not indexed. Where a document is stored, the skip becomes a removal candidate (R33)."""

    key: str
    root: str
    reason: Reason
    stat: FileStat
    checked_ns: int
    observed_ns: int
    generation: int


@dataclass(frozen=True, slots=True)
class RemoveWrite:
    """A document to be removed; with `skip`, the reason is kept in its place."""

    key: str
    observed_ns: int
    generation: int
    skip: SkipWrite | None = None


@dataclass(frozen=True, slots=True)
class WriteGroup:
    """What one transaction carries (R24). A key stands in it at most once."""

    documents: Sequence[DocumentWrite] = ()
    rechecks: Sequence[RecheckWrite] = ()
    skips: Sequence[SkipWrite] = ()
    removes: Sequence[RemoveWrite] = ()

    def __len__(self) -> int:
        return len(self.documents) + len(self.rechecks) + len(self.skips) + len(self.removes)


Verdict = Literal["applied", "stale", "unchanged", "candidate"]


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one write: `stale` = a newer state is stored; `candidate` = a stored document stands
    where a file is to be skipped, and awaits the removal guard."""

    key: str
    verdict: Verdict
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class GroupResult:
    results: tuple[Applied, ...]
    commit_seq: int
    chunks_written: int


@dataclass(frozen=True, slots=True)
class StoreCounts:
    documents: int
    chunks: int
    skipped: int


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """What names a state of the store: caches and ETags hang on (store_uuid, commit_seq)."""

    base_id: str
    store_uuid: str
    commit_seq: int
    format_version: int
    substring_index: str
    complete_ns: int | None  # when a full run last ended; None before the first (status index_incomplete)


@dataclass(frozen=True, slots=True)
class StoredDocument:
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
    metadata: str
    warnings: str


@dataclass(frozen=True, slots=True)
class StoredChunk:
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

    def stored_files(self, prefix: str) -> Iterator[StoredFile]:
        """Documents and skipped files below a key prefix (`docs/`) or under one key (`docs/a.md`), in key
        order, in short pages: no read transaction stays open between two of them."""
        ...

    def document(self, key: str, *, visibility: Visibility) -> StoredDocument | None: ...

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


class StoreWriter(Protocol):
    """The writing end: synchronous, used by one thread at a time, each call one short transaction."""

    def apply(self, group: WriteGroup) -> GroupResult:
        """Write a group in one transaction.

        Raises RowRefusedError when a row of the group cannot be stored (halve it), StorageError and
        DiskFullError when the disk says no (stop, or wait), IntegrityError when the file is damaged.
        """
        ...

    def highest_generation(self) -> int: ...

    def close_generation(self, generation: int, *, complete: bool = False) -> None:
        """Drop the tombstones of older runs, all of which are over, and remember the generation; `complete`
        says that a full run ended and the index covers its roots."""
        ...


RunState = Literal["walking", "done", "partial", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class RootRecord:
    """A root as it was fixed at its first run."""

    name: str
    path: str  # absolute
    single_files: tuple[str, ...] = ()  # posix paths below it: only these belong to the base; () = the folder
    last_full_generation: int = 0


@dataclass(frozen=True, slots=True)
class RunRecord:
    id: int
    generation: int
    kind: str
    trigger: str
    roots: tuple[str, ...]
    state: str
    started_ns: int
    ended_ns: int | None
    counts: dict[str, int]
    cause: str = ""
    full: bool = False


@dataclass(frozen=True, slots=True)
class FailureRecord:
    key: str
    reason: str
    detail: str
    tries: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class RemovalCandidate:
    """A stored document whose file was not met, or can no longer be indexed."""

    key: str
    reason: Reason
    stat: FileStat | None = None


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """What is recorded of a page once its group is committed (R35)."""

    page: int
    counts: dict[str, int] = field(default_factory=dict)
    failures: tuple[FailureRecord, ...] = ()
    recovered: tuple[str, ...] = ()  # keys whose earlier failure is over
    candidates: tuple[RemovalCandidate, ...] = ()


class StateStore(Protocol):
    """Authority over runs, roots and failures: state.db. Synchronous, each call one short transaction."""

    def base_id(self) -> str: ...

    def roots(self) -> Sequence[RootRecord]: ...

    def add_root(self, root: RootRecord) -> None: ...

    def remove_root(self, name: str) -> None: ...

    def begin_run(self, run: RunRecord, *, floor_generation: int) -> RunRecord:
        """Record a run and issue its generation: one above every number known (R25), in one transaction."""
        ...

    def end_run(self, run_id: int, state: RunState, counts: dict[str, int], cause: str) -> None: ...

    def runs(self, limit: int = 20) -> Sequence[RunRecord]: ...

    def plan_pages(self, run_id: int, pages: Sequence[tuple[int, bytes]]) -> None: ...

    def finish_pages(self, run_id: int, outcomes: Sequence[PageOutcome]) -> None: ...

    def failures(self, prefix: str = "") -> Sequence[FailureRecord]: ...

    def forget_failures(self, keys: Sequence[str]) -> None: ...

    def add_candidates(self, run_id: int, candidates: Sequence[RemovalCandidate]) -> None: ...

    def candidate_count(self, run_id: int, prefix: str) -> int:
        """How many stored documents below a prefix are candidates of a run; forgotten skips do not count."""
        ...

    def candidates(self, run_id: int, prefix: str, *, after: str = "", limit: int) -> Sequence[RemovalCandidate]:
        """A page of a run's candidates below a prefix, in key order."""
        ...

    def close(self) -> None: ...


class LiteralHit(NamedTuple):
    id: int
    exact: bool  # the case is the literal's, too


@dataclass(frozen=True, slots=True)
class LiteralFind:
    """Chunks that hold a literal, exact case first; `truncated`: not every place was looked at."""

    hits: Sequence[LiteralHit]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class SubstringFind:
    """Chunks that hold substrings, best first; `relaxed`: none holds all of them, these hold some."""

    ids: Sequence[int]
    relaxed: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
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

    def words_between(self, first: str, end: str, limit: int) -> Sequence[tuple[str, int]]:
        """Words of the vocabulary from `first` up to `end` (left out), with their number of chunks."""
        ...

    def words_among(self, words: Sequence[str]) -> Sequence[tuple[str, int]]:
        """Those of the words that the vocabulary holds, with their number of chunks."""
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
        self, pieces: Sequence[str], *, limit: int, scope: Scope | None, visibility: Visibility
    ) -> SubstringFind:
        """Chunks of the trigram table that hold all pieces, else any."""
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
