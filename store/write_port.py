"""The seam of the store for its writer: what one transaction is given, and what it answers (see store.port)."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from domain.files import FileStat, Outcome, Reason
from domain.vectors import PinnedIdentity, VectorIdentity
from store.vector_port import VectorStatus

ChunkRow = tuple[int, int, int, int, bytes, str, str, str, str]
"""ordinal, in_tri, start_line, end_line, text_hash, names, heading_path, lead, body: bound as it is."""


class NewVector(Struct, frozen=True):
    """A vector that the store may not hold yet; stored once for each text really sent and identity (R4)."""

    identity: int
    sent_hash: bytes  # domain.vectors.sent_hash
    parts: int  # more than 1: the mean of so many parts of a text too long for the model
    vector: bytes  # little-endian float32, unit length


class VectorLinks(Struct, frozen=True):
    """Which vectors stand for a document's chunks under one identity: a hash of the text sent for each, by ordinal.

    `required`: the write is refused where one of them is not stored (R18). Otherwise the document is linked when all
    are stored, and pending when not.
    """

    identity: int
    sent_hashes: tuple[bytes, ...]
    required: bool


class DocumentWrite(Struct, frozen=True):
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
    links: tuple[VectorLinks, ...] = ()
    new_vectors: tuple[NewVector, ...] = ()  # a text met in several documents of a page: with the first of them


class VectorsWrite(Struct, frozen=True):
    """Vectors for a document that is stored: with nothing changed meanwhile (same file hash, as many chunks), else the
    write is stale. All of its chunks or none."""

    key: str
    file_hash: bytes
    generation: int  # of the run that brings them
    links: VectorLinks
    new_vectors: tuple[NewVector, ...] = ()


class RecheckWrite(Struct, frozen=True):
    """A file whose bytes are the stored ones: only what stat said of it is brought up to date (R26)."""

    key: str
    stat: FileStat
    checked_ns: int
    observed_ns: int
    generation: int
    file_hash: bytes


class SkipWrite(Struct, frozen=True):
    """A file that is not indexed. Where a document is stored, the skip becomes a removal candidate (R33)."""

    key: str
    root: str
    reason: Reason
    stat: FileStat
    checked_ns: int
    observed_ns: int
    generation: int


class RemoveWrite(Struct, frozen=True):
    """A document to be removed; with `skip`, the reason is kept in its place."""

    key: str
    observed_ns: int
    generation: int
    skip: SkipWrite | None = None


class WriteGroup(Struct, frozen=True):
    """What one transaction carries (R24). A key stands in it at most once."""

    documents: Sequence[DocumentWrite] = ()
    rechecks: Sequence[RecheckWrite] = ()
    skips: Sequence[SkipWrite] = ()
    removes: Sequence[RemoveWrite] = ()
    vectors: Sequence[VectorsWrite] = ()

    def __len__(self) -> int:
        return len(self.documents) + len(self.rechecks) + len(self.skips) + len(self.removes) + len(self.vectors)


Verdict = Literal["applied", "stale", "unchanged", "candidate"]


class Applied(Struct, frozen=True):
    """What became of one write: `stale` = a newer state is stored; `candidate` = a stored document stands
    where a file is to be skipped, and awaits the removal guard."""

    key: str
    verdict: Verdict
    outcome: Outcome


class GroupResult(Struct, frozen=True):
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


class VectorWriter(Protocol):
    """What a run does with identities; each call one short transaction or several."""

    def vector_status(self) -> VectorStatus: ...

    def pin_identity(
        self, identity: VectorIdentity, canary: Sequence[bytes], *, afresh: bool = False
    ) -> PinnedIdentity:
        """Pin an identity: active at once where no document is stored, else to be built beside what answers now. An
        unfinished set of another identity is given up; the same one is gone on with. `afresh` makes a new set in any
        case, though its identity be the one that answers: it knows no vector yet (R19)."""
        ...

    def activate_identity(self, identity: int, *, uncovered: int = 0) -> int:
        """Let a built identity answer, in one transaction, and retire the one before; the new commit_seq. Documents
        that it does not cover (`uncovered` at most: their texts were refused) are pending then.

        Raises IntegrityError where more documents are not covered by it.
        """
        ...

    def collect_vectors(self, *, keep_unused: int) -> int:
        """Drop what belongs to a retired identity, and vectors that no chunk has, the oldest first, down to
        `keep_unused` of them (they are what a restored file finds again); how many went. Several short transactions."""
        ...
