"""The fence: which writes a stored state lets through, whatever order the jobs come in (R25, C-04). Pure."""

from collections.abc import Container

from msgspec import Struct

from domain.files import Outcome
from store.write_port import Applied, DocumentWrite, RecheckWrite, RemoveWrite, SkipWrite, VectorsWrite


class Fence(Struct, frozen=True):
    """What is stored under a key: a document, a tombstone (document_id 0), or nothing (the defaults)."""

    document_id: int = 0
    generation: int = -1
    observed_ns: int = -1
    created_generation: int = -1
    file_hash: bytes = b""
    chunk_count: int = 0

    @property
    def pair(self) -> tuple[int, int]:
        return self.generation, self.observed_ns


NOTHING_STORED = Fence()


def decide_document(write: DocumentWrite, fence: Fence) -> Applied:
    """`stale` below the stored pair; `unchanged` when this very content was stored in this generation already
    (a job that ran twice answers as the first time); else `applied`."""
    pair = (write.generation, write.observed_ns)
    if pair < fence.pair:
        return Applied(write.key, "stale", Outcome.UNCHANGED)
    is_first = fence.document_id == 0 or fence.created_generation == write.generation
    outcome = Outcome.ADDED if is_first else Outcome.UPDATED
    if fence.document_id and fence.generation == write.generation and fence.file_hash == write.file_hash:
        return Applied(write.key, "unchanged", outcome)
    return Applied(write.key, "applied", outcome)


def decide_recheck(write: RecheckWrite, fence: Fence) -> Applied:
    """Only a stored document with the same bytes is brought up to date; anything else has moved on."""
    pair = (write.generation, write.observed_ns)
    if fence.document_id == 0 or pair < fence.pair or fence.file_hash != write.file_hash:
        return Applied(write.key, "stale", Outcome.UNCHANGED)
    return Applied(write.key, "applied", Outcome.UNCHANGED)


def decide_skip(write: SkipWrite, fence: Fence) -> Applied:
    """Where a document is stored, the skip is a removal candidate: the guard decides, not this write (R33)."""
    if (write.generation, write.observed_ns) < fence.pair:
        return Applied(write.key, "stale", Outcome.SKIPPED)
    if fence.document_id:
        return Applied(write.key, "candidate", Outcome.SKIPPED)
    return Applied(write.key, "applied", Outcome.SKIPPED)


def decide_remove(write: RemoveWrite, fence: Fence) -> Applied:
    outcome = Outcome.SKIPPED if write.skip is not None else Outcome.REMOVED
    if (write.generation, write.observed_ns) < fence.pair:
        return Applied(write.key, "stale", outcome)
    return Applied(write.key, "applied" if fence.document_id else "unchanged", outcome)


def decide_vectors(write: VectorsWrite, fence: Fence, pinned: Container[int]) -> Applied:
    """Vectors are good for the very text they were made from, whichever run brings them, while their identity is
    pinned."""
    is_of_it = fence.file_hash == write.file_hash and fence.chunk_count == len(write.links.sent_hashes)
    if not (fence.document_id and is_of_it and write.links.identity in pinned):
        return Applied(write.key, "stale", Outcome.UNCHANGED)
    return Applied(write.key, "applied", Outcome.EMBEDDED)
