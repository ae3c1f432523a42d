"""The state of a base as a value: which index, how complete, how old, what runs, what failed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from app.consistency import standing_among
from app.wiring import ReadableBase
from domain.layout import sidecars
from domain.settings import Settings
from domain.status import Standing
from store.failure_port import FailureRecord
from store.files import lstat_or_none
from store.lock import holder_of, is_held
from store.port import StoreCounts, StoreIdentity, Visibility
from store.run_port import RunRecord
from store.state_port import RootRecord
from store.vector_port import NO_VECTORS, VectorCounts, VectorStatus

_EVERYTHING = Visibility.everything()

RootKind = Literal["configured", "recorded", "left"]  # left: recorded, but no longer in the configuration


class RootStatus(Struct, frozen=True):
    """A root and what of it is in the index."""

    name: str
    path: str
    kind: RootKind
    is_there: bool  # the folder, now
    single_files: tuple[str, ...]
    documents: int
    chunks: int
    skipped: int
    failed: int


class FailureGroup(Struct, frozen=True):
    """Files that failed for one reason and still do."""

    reason: str
    count: int
    first: str
    detail: str
    last_ns: int


class BaseStatus(Struct, frozen=True):
    """What `knowledge status`, `stats` and `sources` show."""

    home: Path
    identity: StoreIdentity
    standing: Standing
    roots: tuple[RootStatus, ...]
    documents: int
    chunks: int
    skipped: int
    failures: tuple[FailureGroup, ...]
    holder: str  # who has the lock now, in words; "" = nobody
    running: RunRecord | None
    last_run: RunRecord | None
    database_bytes: int  # knowledge.db with its WAL
    wal_bytes: int
    state_bytes: int
    modified_ns: int
    vectors: VectorStatus = NO_VECTORS
    vector_counts: VectorCounts | None = None  # only where they were asked for
    is_service_up: bool = False  # a scheduler has this base
    queued: int = 0  # runs that wait for their turn

    @property
    def is_being_written(self) -> bool:
        """A service's writer has the lock all the time, and writes while a run goes on."""
        return self.running is not None or bool(self.holder and not self.is_service_up)

    @property
    def failed(self) -> int:
        return sum(group.count for group in self.failures)


def base_status(base: ReadableBase, settings: Settings, *, count_vectors: bool = False) -> BaseStatus:
    """Reads only; cheap beside the number of documents. Counting vectors reads the index of each."""
    runs, records = list(base.state.runs()), base.state.roots()  # before the store, see app.consistency
    failures = [failure for failure in base.state.failures() if failure.standing != "ignored"]
    with base.store.snapshot() as snapshot:
        identity = snapshot.identity()
        roots = tuple(
            _root_status(record, settings, snapshot.counts(f"{record.name}/", visibility=_EVERYTHING), failures)
            for record in records
        )
        totals = snapshot.counts(visibility=_EVERYTHING)
        vectors = snapshot.vector_status()
        vector_counts = snapshot.vector_counts() if count_vectors and vectors.active is not None else None
    holder = _holder(base)
    is_service_up = is_held(base.layout.scheduler_lock)
    is_worked = bool(holder) or is_service_up
    running = next((run for run in runs if run.is_open), None) if is_worked else None
    database, wal, _ = sidecars(base.layout.database)
    wal_bytes = _bytes(wal)
    return BaseStatus(
        home=base.layout.home,
        identity=identity,
        standing=standing_among(identity, totals.documents, runs, records),
        roots=roots,
        documents=totals.documents,
        chunks=totals.chunks,
        skipped=totals.skipped,
        failures=_groups(failures),
        holder=holder,
        running=running,
        last_run=next((run for run in runs if run is not running and run.state != "queued"), None),
        database_bytes=_bytes(database) + wal_bytes,
        wal_bytes=wal_bytes,
        state_bytes=sum(_bytes(path) for path in sidecars(base.layout.state)),
        modified_ns=max(_modified_ns(database), _modified_ns(wal) if wal_bytes else 0),  # a reader makes an empty WAL
        vectors=vectors,
        vector_counts=vector_counts,
        is_service_up=is_service_up,
        queued=sum(run.state == "queued" for run in runs),
    )


def _root_status(
    record: RootRecord, settings: Settings, counts: StoreCounts, failures: Sequence[FailureRecord]
) -> RootStatus:
    return RootStatus(
        name=record.name,
        path=record.path,
        kind=_kind(record, settings),
        is_there=Path(record.path).is_dir(),
        single_files=record.single_files,
        documents=counts.documents,
        chunks=counts.chunks,
        skipped=counts.skipped,
        failed=sum(failure.key.startswith(f"{record.name}/") for failure in failures),
    )


def _kind(record: RootRecord, settings: Settings) -> RootKind:
    if not settings.roots:
        return "recorded"
    is_configured = any(str(root.path.resolve()) == record.path for root in settings.roots)
    return "configured" if is_configured else "left"


def _groups(failures: Sequence[FailureRecord]) -> tuple[FailureGroup, ...]:
    groups: dict[str, FailureGroup] = {}
    for failure in failures:
        known = groups.get(failure.reason)
        groups[failure.reason] = FailureGroup(
            failure.reason,
            known.count + 1 if known else 1,
            known.first if known else failure.key,
            known.detail if known else failure.detail,
            max(known.last_ns if known else 0, failure.last_ns),
        )
    return tuple(groups.values())


def _holder(base: ReadableBase) -> str:
    if not is_held(base.layout.lock):
        return ""
    return holder_of(base.layout.lock) or "another process"


def _bytes(path: Path) -> int:
    status = lstat_or_none(path)
    return status.st_size if status is not None else 0


def _modified_ns(path: Path) -> int:
    status = lstat_or_none(path)
    return status.st_mtime_ns if status is not None else 0
