"""The seam of the store for its writer: what one transaction is given, and what it answers (see store.port)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from domain.files import FileStat, Outcome, Reason

ChunkRow = tuple[int, int, int, int, bytes, str, str, str, str]
"""ordinal, in_tri, start_line, end_line, text_hash, names, heading_path, lead, body: bound as it is."""


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
