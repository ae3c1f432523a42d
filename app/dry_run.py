"""`knowledge index --dry-run`: what a run would do, counted from its own plan; nothing is written."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import cast

from msgspec import Struct, field
from msgspec.structs import replace

from app.index_request import IndexRequest
from app.left_alone import failures_below
from app.planning import FailuresBelow, RootRun, merged_tally, no_failures, plan_root
from app.roots import RootScope, scopes_of_run
from app.wiring import readable_base
from domain.errors import NotBuiltError
from domain.files import Page
from domain.retry_rules import FailureStanding
from domain.settings import Settings
from scheduler.plan import NotTried, PlanPolicy
from store import files as store_files
from store.port import Snapshot, StoredFile
from store.sqlite import SqliteSnapshot
from store.state_port import RemovalCandidate, RootRecord
from store.vector_port import NO_VECTORS, VectorStatus

# measured over Markdown of open-source projects; said to be estimates wherever they are shown
TEXT_BYTES_PER_CHUNK = 430
INDEX_BYTES_PER_TEXT_BYTE = 2.3  # 2.1 for large indexes, 2.5 for small ones
TEXT_BYTES_PER_SECOND = 10_000_000
FILES_PER_SECOND = 5_000
NO_EXTENSION = "(none)"


class RootForecast(Struct, frozen=True):
    """What would become of one root's files. `check`: read, since they may have changed."""

    name: str
    path: str
    add: int
    check: int
    unchanged: int
    skip: int
    remove: int


class Forecast(Struct, frozen=True):
    """What a run would do. `check` holds every known file when all are to be cut anew (`is_reindex`)."""

    home: Path
    is_reindex: bool
    roots: tuple[RootForecast, ...]
    met: int
    add: int
    check: int
    unchanged: int
    skip: int
    remove: int
    skips: dict[str, tuple[int, str]]  # reason -> how many, the first key; those that the walk can tell
    extensions: dict[str, int]  # of files that would be read
    problems: tuple[tuple[str, str], ...]
    text_bytes: int  # of files that would be read
    free_bytes: int
    now_ns: int  # when it was planned
    vectors: VectorStatus = NO_VECTORS
    has_documents: bool = False  # in the index as it is
    not_tried: Mapping[tuple[str, FailureStanding], NotTried] = field(default_factory=dict)  # failed in earlier runs

    @property
    def chunks(self) -> int:
        """At least one for each file."""
        return max(self.add + self.check, -(-self.text_bytes // TEXT_BYTES_PER_CHUNK))

    @property
    def index_bytes(self) -> int:
        """What the files to be read will take in the index."""
        return int(self.text_bytes * INDEX_BYTES_PER_TEXT_BYTE)

    @property
    def minutes(self) -> float:
        files = self.add + self.check
        return (self.text_bytes / TEXT_BYTES_PER_SECOND + files / FILES_PER_SECOND) / 60


class _Stored:
    """What the plan asks of a store, which need not be there yet; remembers what it was told of."""

    def __init__(self, snapshot: Snapshot | None) -> None:
        self._snapshot = snapshot
        self.documents = 0
        self.skipped_keys: set[str] = set()

    def stored_files(self, prefix: str) -> Iterator[StoredFile]:
        if self._snapshot is None:
            return
        for file in self._snapshot.stored_files(prefix):
            if file.reason:
                self.skipped_keys.add(file.key)
            else:
                self.documents += 1
            yield file


class _Counted(Struct):
    """What the plan of one root yields, added up."""

    add: int = 0
    check: int = 0
    remove: int = 0


def dry_run(settings: Settings, request: IndexRequest) -> Forecast:
    """Plan a run and count. Raises what planning raises (UsageError for a path that is none of the base's)."""
    with _stored(settings) as (records, snapshot, failures):
        scopes = scopes_of_run(settings, records, request.paths)
        return forecast(settings, request, scopes, snapshot, failures)


def forecast(
    settings: Settings,
    request: IndexRequest,
    scopes: Sequence[RootScope],
    snapshot: SqliteSnapshot | None,
    failures: FailuresBelow = no_failures,
) -> Forecast:
    """What a run over these scopes would do; no snapshot: nothing is stored yet."""
    policy = PlanPolicy(
        now_ns=time.time_ns(),
        max_file_bytes=settings.max_file_bytes,
        trust_stat=settings.change_detection == "stat" and not request.rehash,
        force=request.reindex,
        retry_failed=request.rehash or request.reindex,
    )
    extensions: Counter[str] = Counter()
    roots = [RootRun(scope, failures=failures) for scope in scopes]
    counted = [_count(settings, policy, root, snapshot, extensions) for root in roots]
    vectors = NO_VECTORS if snapshot is None else snapshot.vector_status()
    has_documents = snapshot is not None and snapshot.has_documents()
    by_root = tuple(_root_forecast(root, count) for root, count in zip(roots, counted, strict=True))
    counted_up = _forecast(settings, request, roots, by_root, extensions)
    return replace(counted_up, vectors=vectors, has_documents=has_documents)


@contextmanager
def _stored(settings: Settings) -> Iterator[tuple[list[RootRecord], SqliteSnapshot | None, FailuresBelow]]:
    try:
        with readable_base(settings) as base:
            yield list(base.state.roots()), base.store.reader(), failures_below(base.state)
    except NotBuiltError:
        yield [], None, no_failures


def _count(
    settings: Settings, policy: PlanPolicy, root: RootRun, snapshot: Snapshot | None, extensions: Counter[str]
) -> _Counted:
    counted = _Counted()
    stored = _Stored(snapshot)
    for item in plan_root(settings, policy, root, cast(Snapshot, stored), 1):
        if isinstance(item, RemovalCandidate):
            counted.remove += 1
        else:
            _count_page(item, counted, stored, extensions)
    if policy.force:  # documents and new files look the same in the plan then
        documents = min(counted.add, max(0, stored.documents - counted.remove))
        counted.check += documents
        counted.add -= documents
    return counted


def _count_page(page: Page, counted: _Counted, stored: _Stored, extensions: Counter[str]) -> None:
    for file in page.files:
        extensions[PurePosixPath(file.key).suffix.lower() or NO_EXTENSION] += 1
        if file.stored_hash or file.key in stored.skipped_keys:
            counted.check += 1
        else:
            counted.add += 1


def _root_forecast(root: RootRun, counted: _Counted) -> RootForecast:
    return RootForecast(
        name=root.scope.record.name,
        path=root.scope.record.path,
        add=counted.add,
        check=counted.check,
        unchanged=root.tally.unchanged,
        skip=root.tally.skipped,
        remove=counted.remove,
    )


def _forecast(
    settings: Settings,
    request: IndexRequest,
    roots: Sequence[RootRun],
    by_root: tuple[RootForecast, ...],
    extensions: Counter[str],
) -> Forecast:
    tally = merged_tally(roots)
    return Forecast(
        home=settings.home,
        is_reindex=request.reindex,
        roots=by_root,
        met=tally.met,
        add=sum(root.add for root in by_root),
        check=sum(root.check for root in by_root),
        unchanged=tally.unchanged,
        skip=tally.skipped,
        remove=sum(root.remove for root in by_root),
        skips={reason.value: (number, tally.first_skips[reason]) for reason, number in tally.skips.items()},
        extensions=dict(extensions.most_common()),
        problems=tuple(problem for root in roots for problem in root.report.problems),
        text_bytes=tally.bytes_to_check,
        not_tried=tally.not_tried,
        free_bytes=store_files.free_bytes(_nearest_existing(settings.home)),
        now_ns=time.time_ns(),
    )


def _nearest_existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
