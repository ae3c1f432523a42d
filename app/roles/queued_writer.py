"""The writer of a service, as a run in the scheduler sees it: it reads the database itself, and has the writer write.

Every call waits for its answer, however long the writer is away; what it waits for is told through `heed`, which also
ends the wait when the run is cancelled.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from app.roles.calls import (
    ActivateIdentity,
    ApplyGroup,
    ApplySubstringIndex,
    Call,
    CloseGeneration,
    CollectVectors,
    PinIdentity,
    Value,
    await_answer,
    place_call,
)
from domain.vectors import PinnedIdentity, VectorIdentity
from store.port import StoreCounts, StoreIdentity, Visibility
from store.sqlite import SqliteStore
from store.vector_port import VectorStatus
from store.write_port import GroupResult, WriteGroup

Heed = Callable[[], None]
"""Called while an answer is waited for; raises to give up."""


class QueuedWriter:
    """What a run asks of the store's writing end (store.write_port), over the home that all roles share."""

    def __init__(self, calls: Path, store: SqliteStore, heed: Heed) -> None:
        self._calls = calls
        self._store = store
        self._heed = heed

    def apply(self, group: WriteGroup) -> GroupResult:
        return self._call(ApplyGroup(group), GroupResult)

    def close_generation(self, generation: int, *, complete: bool = False) -> None:
        self._call(CloseGeneration(generation, complete), type(None))

    def pin_identity(
        self, identity: VectorIdentity, canary: Sequence[bytes], *, afresh: bool = False
    ) -> PinnedIdentity:
        return self._call(PinIdentity(identity, tuple(canary), afresh), PinnedIdentity)

    def activate_identity(self, identity: int, *, uncovered: int = 0) -> int:
        return self._call(ActivateIdentity(identity, uncovered), int)

    def collect_vectors(self, *, keep_unused: int) -> int:
        return self._call(CollectVectors(keep_unused), int)

    def apply_substring_index(self, setting: str) -> None:
        self._call(ApplySubstringIndex(setting), type(None))

    def highest_generation(self) -> int:
        with self._store.snapshot() as snapshot:
            return snapshot.highest_generation()

    def identity(self) -> StoreIdentity:
        with self._store.snapshot() as snapshot:
            return snapshot.identity()

    def has_documents(self) -> bool:
        with self._store.snapshot() as snapshot:
            return snapshot.has_documents()

    def counts(self) -> StoreCounts:
        with self._store.snapshot() as snapshot:
            return snapshot.counts(visibility=Visibility.everything())

    def vector_status(self) -> VectorStatus:
        with self._store.snapshot() as snapshot:
            return snapshot.vector_status()

    def _call(self, call: Call, kind: type[Value]) -> Value:
        return await_answer(self._calls, place_call(self._calls, call), kind, self._heed)
