"""The numbers of the whole service, out of state.db, a real queue and a real index."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from arq.connections import ArqRedis

from app.roles import measures as told
from app.roles import service_numbers
from app.roles.role_log import make_log
from app.roles.runtime import Runtime
from app.roles.service_numbers import IndexLook, ServiceNumbers, queue_sample, state_sample
from domain.files import Reason
from domain.layout import BaseLayout
from domain.settings import ScheduleSettings, Settings
from scheduler.cron import NS
from scheduler.queue.client import PageQueue, lazy_pool, open_pool
from scheduler.queue.embedded import EmbeddedValkey
from scheduler.queue.leases import Lease, LeaseNote
from scheduler.queue.names import QueueNames
from scheduler.queue.numbers import queue_numbers
from scheduler.queue.scores import SCORES_A_SECOND, score_now
from store import files
from store.failure_port import FailureRecord
from store.run_port import RunRecord
from store.state import SqliteStateStore
from store.state_port import RemovalCandidate, RootRecord
from tests.support.stores import build_store
from tests.support.telemetry import Recorder
from tests.support.waiting import eventually_true

NOW_NS = 1_800_000_000 * NS
NIGHTLY = ScheduleSettings("nightly", "0 3 * * *")
WEEKLY = ScheduleSettings("weekly", "0 4 * * 0")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteStateStore]:
    files.make_home(BaseLayout(tmp_path / "home"))
    with closing(SqliteStateStore(tmp_path / "home" / "state.db")) as opened:
        opened.add_root(RootRecord("docs", "/srv/docs"))
        opened.add_root(RootRecord("minutes", "/srv/minutes"))
        yield opened


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings("base", tmp_path / "home", None, configured=True, schedules=(NIGHTLY, WEEKLY))


def run_of(**changes: object) -> RunRecord:
    fields = {
        "id": 0, "generation": 0, "kind": "index", "trigger": "cli", "roots": ("docs", "minutes"), "state": "queued",
        "started_ns": NOW_NS, "ended_ns": None, "counts": {}, "full": True,
    }  # fmt: skip
    return RunRecord(**(fields | changes))  # type: ignore[arg-type]


def failure(key: str, reason: Reason, tries: int = 1) -> FailureRecord:
    return FailureRecord(key, reason.value, "", tries, NOW_NS, NOW_NS)


def ones(values: dict[tuple[str, ...], float]) -> list[str]:
    return [labels[0] for labels, value in values.items() if value]


def test_an_empty_base_has_a_value_for_every_state_and_reason(state: SqliteStateStore, settings: Settings) -> None:
    sample = state_sample(settings, state, NOW_NS, NOW_NS)
    assert len(sample[told.RUN_STATE]) == len(told.RUN_STATES)
    assert len(sample[told.FAILURES]) == len(Reason) * 3
    assert not any(value for values in (sample[told.RUN_STATE], sample[told.LAST_RUN]) for value in values.values())
    assert sample[told.RUN_SINCE] == sample[told.RUN_PROGRESSED] == {}
    assert sample[told.REMOVALS_HELD] == {("docs",): 0, ("minutes",): 0}
    assert sample[told.SCHEDULE_SUCCESS] == {("nightly",): 0, ("weekly",): 0}


def test_runs_that_wait_go_on_and_have_ended(state: SqliteStateStore, settings: Settings) -> None:
    first = state.queue_run(run_of(), {})
    state.queue_run(run_of(), {})
    sample = state_sample(settings, state, NOW_NS, NOW_NS)
    assert (sample[told.RUNS_QUEUED], ones(dict(sample[told.RUN_STATE]))) == ({(): 2}, [])

    state.start_run(first.id, floor_generation=0)
    state.set_run_state(first.id, "embedding", "")
    state.note_progress(first.id, {"checked": 3})
    sample = state_sample(settings, state, NOW_NS, NOW_NS)
    assert ones(dict(sample[told.RUN_STATE])) == ["embedding"]
    assert abs(sample[told.RUN_PROGRESSED][()] - time.time()) < 60
    assert abs(sample[told.RUN_SINCE][()] - time.time()) < 60

    state.end_run(first.id, "failed", {}, "embeddings_unavailable")
    sample = state_sample(settings, state, NOW_NS, NOW_NS)
    assert (ones(dict(sample[told.RUN_STATE])), ones(dict(sample[told.LAST_RUN]))) == ([], ["failed"])


def test_failures_by_reason_and_standing(state: SqliteStateStore, settings: Settings) -> None:
    state.record_failures([failure("docs/a", Reason.UNREADABLE), failure("docs/b", Reason.UNREADABLE)])
    state.record_failures([failure("docs/c", Reason.WORKER_DIED, tries=100), failure("docs/d", Reason.TOO_SLOW)])
    state.ignore_failures(["docs/d"])
    counts = {
        labels: value for labels, value in state_sample(settings, state, NOW_NS, 0)[told.FAILURES].items() if value
    }
    assert counts == {
        ("unreadable", "open"): 2,
        ("worker_died", "quarantined"): 1,
        ("too_slow", "ignored"): 1,
    }


def test_removals_that_are_held_are_told_by_root_until_they_are_settled(
    state: SqliteStateStore, settings: Settings
) -> None:
    run = state.queue_run(run_of(), {})
    state.start_run(run.id, floor_generation=0)
    held = [RemovalCandidate(f"docs/{number}.md", Reason.GONE) for number in range(7)]
    state.add_candidates(run.id, [*held, RemovalCandidate("docs/skip.md", Reason.FORGOTTEN)])
    state.end_run(run.id, "partial", {}, "removals_held")
    sample = state_sample(settings, state, NOW_NS, NOW_NS)
    assert sample[told.REMOVALS_HELD] == {("docs",): 7, ("minutes",): 0}
    later = state.queue_run(run_of(), {})
    state.start_run(later.id, floor_generation=0)
    state.end_run(later.id, "done", {}, "")
    assert state_sample(settings, state, NOW_NS, NOW_NS)[told.REMOVALS_HELD] == {("docs",): 0, ("minutes",): 0}


def test_schedules_by_name(state: SqliteStateStore, settings: Settings) -> None:
    day_ns = 24 * 3600 * NS
    state.see_schedule("nightly", NOW_NS - 5 * day_ns)
    state.see_schedule("gone", NOW_NS)
    tick = state.tick("nightly", NOW_NS - 4 * day_ns, NOW_NS - 4 * day_ns, run=run_of(schedule="nightly"), request={})
    state.start_run(tick.run_id, floor_generation=0)
    state.end_run(tick.run_id, "done", {}, "")
    state.close_tick("nightly", tick.run_id, "done", NOW_NS - 4 * day_ns)
    sample = state_sample(settings, state, NOW_NS, NOW_NS - day_ns)
    assert sample[told.SCHEDULE_SUCCESS] == {("nightly",): (NOW_NS - 4 * day_ns) / NS, ("weekly",): 0}
    assert sample[told.SCHEDULE_OVERDUE] == {("nightly",): 1, ("weekly",): 0}
    assert set(sample[told.SCHEDULE_NEXT]) == {("nightly",), ("weekly",)}
    assert all(NOW_NS / NS < at_s < NOW_NS / NS + 8 * 86400 for at_s in sample[told.SCHEDULE_NEXT].values())
    assert sample[told.SCHEDULE_SKIPPED] == {("nightly",): 0, ("weekly",): 0}


def runtime_of(settings: Settings, recorder: Recorder) -> Runtime:
    return Runtime(settings, BaseLayout(settings.home), "serve", "me", make_log("serve", "json"), telemetry=recorder)


def test_the_index_and_its_disk(settings: Settings) -> None:
    look = IndexLook(runtime_of(settings, Recorder()))
    files.make_home(BaseLayout(settings.home))
    assert set(look.sample()) == {told.DISK_FREE, told.DISK_RESERVE}
    build_store(settings.home, {f"docs/{number}.md": f"# {number}\n\nwords\n" for number in range(5)})
    sample = look.sample()
    assert sample[told.DOCUMENTS] == {(): 5}
    assert sample[told.CHUNKS] == {(): 5}
    assert sample[told.VECTORS] == sample[told.DEAD_VECTORS] == {(): 0}
    assert sample[told.DISK_RESERVE][()] >= settings.disk_reserve_bytes
    assert sample[told.INDEX_BYTES][()] > 0
    assert set(sample) == set(look.sample())


class FakeClock:
    """A second passes at each look."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


async def test_rows_are_counted_once_a_minute(settings: Settings) -> None:
    clock_s = FakeClock()
    build_store(settings.home, {"docs/a.md": "# A\n\nwords\n"})
    look = IndexLook(runtime_of(settings, Recorder()), clock_s)
    assert look.sample()[told.DOCUMENTS] == {(): 1}
    build_store(settings.home, {"docs/b.md": "# B\n\nwords\n"})
    assert look.sample()[told.DOCUMENTS] == {(): 1}
    clock_s.now_s += 200.0
    assert look.sample()[told.DOCUMENTS] == {(): 2}


@pytest.mark.redis
async def test_the_queue_tells_depth_age_and_who_lives() -> None:
    server = EmbeddedValkey()
    try:
        address = server.start()
        names = QueueNames("base")
        async with open_pool(address) as pool:
            empty = await queue_numbers(pool, names)
            assert (empty.jobs, empty.oldest_s, empty.parked) == ({"check": 0, "write": 0}, {"check": 0, "write": 0}, 0)
            queue = PageQueue(pool, names, address)
            for number in range(3):
                await queue.enqueue_check(names.check_job(1, number, 1), b"payload")
            await pool.zadd(names.writes, {"write": await score_now(pool) - 90 * SCORES_A_SECOND})
            await pool.lpush(names.parked, b"one")  # type: ignore[misc]
            await say_lease(pool, names, "writer", is_active=True)
            await say_lease(pool, names, "worker", is_active=True)
            seen = await queue_numbers(pool, names)
        assert (seen.jobs, seen.parked) == ({"check": 3, "write": 1}, 1)
        assert 0 <= seen.oldest_s["check"] < 60 < 90 <= seen.oldest_s["write"] < 150
        assert seen.memory_bytes
        sample = queue_sample(seen)
        roles = {labels: value for labels, value in sample[told.ROLES].items() if value}
        assert roles == {("writer", "active"): 1, ("worker", "active"): 1}
        assert len(sample[told.ROLES]) == 8
    finally:
        server.stop()


async def say_lease(pool: ArqRedis, names: QueueNames, role: str, *, is_active: bool) -> None:
    note = LeaseNote(role, f"{role}-1", "host", 1, is_active, "", 0)
    await Lease(pool, names, lambda: note).say()


@pytest.mark.redis
async def test_a_queue_that_goes_has_no_numbers_and_the_rest_goes_on(
    settings: Settings, state: SqliteStateStore, tmp_path: Path
) -> None:
    """P22: nothing else is kept waiting, and no old number is told as if it were new."""
    recorder = Recorder()
    server = EmbeddedValkey()
    address = server.start()
    try:
        async with lazy_pool(address) as pool:
            runtime = runtime_of(settings, recorder)
            numbers = ServiceNumbers(runtime, pool, QueueNames("base"))
            await once(numbers, recorder)
            assert runtime.status.queue is not None
            assert runtime.status.queue.jobs == {"check": 0, "write": 0}
            assert recorder.gauges["knowledge_queue_up"] == {(): 1.0}
            assert recorder.gauges["knowledge_queue_jobs"]
            server.stop()
            recorder.gauges.clear()
            await once(numbers, recorder)
    finally:
        server.stop()
    assert runtime.status.queue is None
    assert recorder.gauges["knowledge_queue_up"] == {(): 0.0}
    assert recorder.gauges["knowledge_queue_jobs"] == recorder.gauges["knowledge_roles"] == {}
    assert recorder.gauges["knowledge_runs_queued"] == {(): 0}
    assert recorder.gauges["knowledge_disk_free_bytes"]


@pytest.mark.redis
async def test_the_queue_is_looked_at_while_the_rest_waits(
    settings: Settings, state: SqliteStateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting the rows of a large index takes long, and is done rarely; depths are watched as they change."""
    monkeypatch.setattr(service_numbers, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(service_numbers, "BUSY_AT_MOST", 1e-9)
    server = EmbeddedValkey()
    try:
        names = QueueNames("base")
        async with lazy_pool(server.start()) as pool:
            runtime = runtime_of(settings, Recorder())
            running = asyncio.create_task(ServiceNumbers(runtime, pool, names).run())
            await eventually_true(lambda: runtime.status.queue is not None)
            await pool.lpush(names.parked, b"one")  # type: ignore[misc]
            await eventually_true(lambda: runtime.status.queue is not None and runtime.status.queue.parked == 1)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    finally:
        server.stop()


async def once(numbers: ServiceNumbers, recorder: Recorder) -> None:
    """One round of looking."""
    running = asyncio.create_task(numbers.run())
    try:
        await eventually_true(lambda: "knowledge_sampled_timestamp_seconds" in recorder.gauges)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
