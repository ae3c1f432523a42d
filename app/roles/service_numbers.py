"""The numbers of the whole service, as the role that others ask sees them: sampled, never measured by waiting.

Three things are looked at, each by itself: the queue, state.db, the index with its disk. What cannot be looked at has
no value until it can, rather than its last one.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from arq.connections import ArqRedis
from redis.exceptions import RedisError

from app.approving import HELD, why_not_approvable
from app.index_numbers import BUSY_AT_MOST, IndexWatch
from app.overdue import overdue_since_ns
from app.roles import measures as told
from app.roles.disk_brake import room_of
from app.roles.runtime import Runtime
from domain.errors import KnowledgeError
from domain.settings import Settings
from domain.telemetry import Measure, Values
from scheduler.cron import NS, next_ticks_ns
from scheduler.queue.names import QueueNames
from scheduler.queue.numbers import STAGES, QueueNumbers, queue_numbers
from scheduler.zones import zone_of
from store.failure_port import FailureCount
from store.run_port import RunRecord
from store.state import SqliteStateStore
from store.state_port import StateStore

LOOK_EVERY_S = 5.0
LOOK_AT_LEAST_EVERY_S = 60.0
QUEUE_ANSWERS_WITHIN_S = 2.0
RUNS_LOOKED_AT = 100
STANDINGS = ("open", "quarantined", "ignored")

Sample = Mapping[Measure, Values]

QUEUE_MEASURES = (
    told.QUEUE_JOBS,
    told.QUEUE_OLDEST,
    told.QUEUE_PARKED,
    told.QUEUE_MEMORY,
    told.QUEUE_MEMORY_LIMIT,
    told.ROLES,
)
STATE_MEASURES = (
    told.RUN_STATE,
    told.RUN_SINCE,
    told.RUN_PROGRESSED,
    told.RUNS_QUEUED,
    told.LAST_RUN,
    told.FAILURES,
    told.REMOVALS_HELD,
    told.SCHEDULE_SUCCESS,
    told.SCHEDULE_NEXT,
    told.SCHEDULE_SKIPPED,
    told.SCHEDULE_OVERDUE,
)
INDEX_MEASURES = (
    told.INDEX_BYTES,
    told.INDEX_FREE,
    told.LOG_BYTES,
    told.LOG_WAITING,
    told.CHECKPOINT_AGE,
    told.OLDEST_READER,
    told.SEGMENTS,
    told.DOCUMENTS,
    told.CHUNKS,
    told.VECTORS,
    told.DEAD_VECTORS,
    told.DISK_FREE,
    told.DISK_RESERVE,
)


class ServiceNumbers:
    """Looks every few seconds, and tells the role's telemetry. Used from one event loop; reads in threads."""

    def __init__(self, runtime: Runtime, pool: ArqRedis | None, names: QueueNames) -> None:
        """`pool` None: there is no queue."""
        self._runtime = runtime
        self._pool = pool
        self._names = names
        self._sampled: dict[tuple[str, ...], float] = {}
        self._since_ns = time.time_ns()
        self._index = IndexLook(runtime)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            began_s = time.monotonic()
            await self._look_at_queue()
            await self._look("state", STATE_MEASURES, self._state)
            await self._look("index", INDEX_MEASURES, self._index.sample)
            self._runtime.telemetry.gauge(told.SAMPLED, self._sampled)
            took_s = time.monotonic() - began_s
            await self._wait(min(max(LOOK_EVERY_S, took_s / BUSY_AT_MOST), LOOK_AT_LEAST_EVERY_S))

    async def _wait(self, rest_s: float) -> None:
        """The queue costs little, and is looked at meanwhile."""
        while rest_s > LOOK_EVERY_S:
            await asyncio.sleep(LOOK_EVERY_S)
            await self._look_at_queue()
            self._runtime.telemetry.gauge(told.SAMPLED, self._sampled)
            rest_s -= LOOK_EVERY_S
        await asyncio.sleep(rest_s)

    async def _look_at_queue(self) -> None:
        if self._pool is None:
            return
        telemetry = self._runtime.telemetry
        try:
            async with asyncio.timeout(QUEUE_ANSWERS_WITHIN_S):
                numbers = await queue_numbers(self._pool, self._names)
        except (RedisError, OSError, TimeoutError):
            self._runtime.status.queue = None
            telemetry.gauge(told.QUEUE_UP, {(): 0.0})
            self._tell({}, QUEUE_MEASURES)
            return
        self._runtime.status.queue = numbers
        telemetry.gauge(told.QUEUE_UP, {(): 1.0})
        self._sampled["queue",] = time.time()
        self._tell(queue_sample(numbers), QUEUE_MEASURES)

    async def _look(self, of: str, measures: Iterable[Measure], sample: Callable[[], Sample]) -> None:
        try:
            found = await asyncio.to_thread(sample)
            self._sampled[of,] = time.time()
        except (KnowledgeError, OSError) as error:
            found = {}
            words = error.message if isinstance(error, KnowledgeError) else str(error.strerror)
            self._runtime.log.warning("not_sampled", of=of, message=words)
        self._tell(found, measures)

    def _tell(self, sample: Sample, measures: Iterable[Measure]) -> None:
        for measure in measures:
            self._runtime.telemetry.gauge(measure, sample.get(measure, {}))

    def _state(self) -> Sample:
        with closing(SqliteStateStore(self._runtime.layout.state, read_only=True)) as state:
            return state_sample(self._runtime.settings, state, time.time_ns(), self._since_ns)


def queue_sample(numbers: QueueNumbers) -> Sample:
    standings = {True: "active", False: "standby"}
    return {
        told.QUEUE_JOBS: {(stage,): numbers.jobs[stage] for stage in STAGES},
        told.QUEUE_OLDEST: {(stage,): numbers.oldest_s[stage] for stage in STAGES},
        told.QUEUE_PARKED: {(): numbers.parked},
        told.QUEUE_MEMORY: _known(numbers.memory_bytes),
        told.QUEUE_MEMORY_LIMIT: _known(numbers.memory_limit_bytes),
        told.ROLES: {
            (role, words): numbers.roles.get((role, is_active), 0)
            for role in told.ROLE_NAMES
            for is_active, words in standings.items()
        },
    }


def state_sample(settings: Settings, state: StateStore, now_ns: int, since_ns: int) -> Sample:
    """What state.db says. `since_ns`: since when there is somebody to look, for schedules that never had a success."""
    runs = state.runs(RUNS_LOOKED_AT)
    going_on = next((run for run in runs if run.is_open), None)
    last = max((run for run in runs if run.ended_ns is not None), key=lambda run: run.ended_ns or 0, default=None)
    return {
        told.RUN_STATE: _one_of(told.RUN_STATES, going_on),
        told.RUN_SINCE: _known(going_on.since_ns / NS if going_on else None),
        told.RUN_PROGRESSED: _known((going_on.progressed_ns or going_on.started_ns) / NS if going_on else None),
        told.RUNS_QUEUED: {(): len(state.queued_runs())},
        told.LAST_RUN: _one_of(told.ENDINGS, last),
        told.FAILURES: _failures(state.failure_counts()),
        told.REMOVALS_HELD: _held(state, runs),
        **_schedules(settings, state, now_ns, since_ns),
    }


def _one_of(states: Iterable[str], run: RunRecord | None) -> Values:
    return {(state,): float(run is not None and run.state == state) for state in states}


def _known(value: float | None) -> Values:
    return {} if value is None else {(): value}


def _failures(counts: Iterable[FailureCount]) -> Values:
    """Every reason and standing, so that the first failure is seen as one more than none."""
    values: dict[tuple[str, ...], float] = {
        (reason, standing): 0.0 for reason in told.FAILURE_REASONS for standing in STANDINGS
    }
    for count in counts:
        if (count.reason, count.standing) in values:
            values[count.reason, count.standing] = count.files
    return values


def _held(state: StateStore, runs: Iterable[RunRecord]) -> Values:
    """By root, what the newest run that holds removals of it waits to have approved."""
    values: dict[tuple[str, ...], float] = {(root.name,): 0.0 for root in state.roots()}
    for run in runs:
        if run.state == "partial" and run.cause == HELD and not why_not_approvable(state, run):
            for root in run.roots:
                values[root,] = values.get((root,)) or float(state.candidate_count(run.id, f"{root}/"))
    return values


def _schedules(settings: Settings, state: StateStore, now_ns: int, since_ns: int) -> Sample:
    records = {record.name: record for record in state.schedules()}
    names = [schedule.name for schedule in settings.schedules]
    known = [records[name] for name in names if name in records]
    overdue = overdue_since_ns(settings, known, dict.fromkeys(names, since_ns), now_ns)
    return {
        told.SCHEDULE_SUCCESS: {
            (name,): records[name].last_success_ns / NS if name in records else 0.0 for name in names
        },
        told.SCHEDULE_SKIPPED: {(name,): records[name].skipped if name in records else 0 for name in names},
        told.SCHEDULE_OVERDUE: {(name,): float(overdue.get(name) is not None) for name in names},
        told.SCHEDULE_NEXT: {
            (schedule.name,): ticks[0] / NS
            for schedule in settings.schedules
            if (ticks := next_ticks_ns(schedule.cron, zone_of(schedule.timezone), now_ns, 1))
        },
    }


class IndexLook:
    """The index and its disk. Used by one thread at a time."""

    def __init__(self, runtime: Runtime, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._runtime = runtime
        self._index = IndexWatch(runtime.layout.database, clock_s)

    def sample(self) -> Sample:
        """Raises KnowledgeError, OSError."""
        room = room_of(self._runtime)
        disk: Sample = {told.DISK_FREE: {(): room.free}, told.DISK_RESERVE: {(): room.kept}}
        seen = self._index.look()
        if seen is None:
            return disk
        quick, rows, log = seen
        return {
            **disk,
            told.INDEX_BYTES: {(): quick.database_bytes},
            told.INDEX_FREE: {(): quick.free_bytes},
            told.LOG_BYTES: {(): quick.log_bytes},
            told.SEGMENTS: {(): quick.segments},
            told.LOG_WAITING: _known(log and log.waiting_bytes),
            told.CHECKPOINT_AGE: _known(log and log.age_s),
            told.OLDEST_READER: _known(log and log.oldest_reader_s),
            told.DOCUMENTS: {(): rows.documents},
            told.CHUNKS: {(): rows.chunks},
            told.VECTORS: {(): rows.vectors},
            told.DEAD_VECTORS: {(): rows.unused_vectors / max(1, rows.vectors)},
        }
