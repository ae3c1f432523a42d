"""Ticks of schedules on a real state.db (C-08, faults 2 and 3, P29): taken once, skipped, missed, ended. Times are
handed in: no test waits."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from app.run_request import RunRequest
from app.scheduling import WINDOW_CLOSED, ScheduleEvent, close_tick, due_runs, next_window_ns, window_wish
from domain.settings import RootSettings, ScheduleSettings, Settings
from store.run_port import RunRecord, RunState
from store.schedule_port import ScheduleRecord
from store.state import SqliteStateStore
from store.state_port import RootRecord

NS = 1_000_000_000
MINUTE_NS, HOUR_NS = 60 * NS, 3600 * NS
RACERS = 8
RACER = """
import sys
from pathlib import Path
from store.run_port import RunRecord
from store.state import SqliteStateStore

state = SqliteStateStore(Path(sys.argv[1]))
run = RunRecord(0, 0, "index", "schedule", (), "queued", 0, None, {}, schedule="nightly")
print("ready", flush=True)
sys.stdin.readline()
print(state.tick("nightly", int(sys.argv[2]), int(sys.argv[2]), run=run, request={"kind": "index"}).result)
state.close()
"""


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * NS


NOON_NS = ns("2026-11-30T12:00+00:00")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteStateStore]:
    store = SqliteStateStore(tmp_path / "state.db")
    yield store
    store.close()


Scheduled = Callable[..., Settings]


@pytest.fixture
def scheduled(tmp_path: Path) -> Scheduled:
    """Settings with one schedule, every ten minutes unless it is said otherwise."""

    def settings(
        cron: str = "*/10 * * * *", *more: ScheduleSettings, roots: Any = (), named: Any = (), **keys: Any
    ) -> Settings:
        schedules = (ScheduleSettings("nightly", cron, roots=named, **keys), *more)
        return Settings("knowledge", tmp_path, None, configured=True, schedules=schedules, roots=roots)

    return settings


def record_of(state: SqliteStateStore, name: str = "nightly") -> ScheduleRecord:
    return next(record for record in state.schedules() if record.name == name)


def finish(state: SqliteStateStore, run_id: int, ending: RunState = "done") -> RunRecord:
    """The life of a run that was queued."""
    assert state.start_run(run_id, floor_generation=0) is not None
    state.end_run(run_id, ending, {}, "")
    run = state.run(run_id)
    assert run is not None
    return run


def kinds(events: list[ScheduleEvent]) -> list[str]:
    return [event.kind for event in events]


def test_of_eight_processes_that_race_for_a_tick_one_takes_it(tmp_path: Path, state: SqliteStateStore) -> None:
    """Fault 2."""
    state.see_schedule("nightly", NOON_NS - HOUR_NS)
    command = [sys.executable, "-c", RACER, str(tmp_path / "state.db"), str(NOON_NS)]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(RACERS)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    ended = [racer.communicate(timeout=60) for racer in racers]
    results = sorted(out.strip() for out, _ in ended)
    assert results == ["queued", *["taken"] * (RACERS - 1)], ended
    assert len(state.queued_runs()) == 1
    assert record_of(state).skipped == 0
    assert record_of(state).last_run == state.queued_runs()[0].id


def test_a_schedule_that_is_new_does_not_run_for_the_past(state: SqliteStateStore, scheduled: Scheduled) -> None:
    settings = scheduled("0 3 * * *")
    assert due_runs(settings, state, NOON_NS) == []
    assert due_runs(settings, state, NOON_NS + HOUR_NS) == []
    assert kinds(due_runs(settings, state, ns("2026-12-01T03:00+00:00"))) == ["queued"]


def test_a_tick_queues_a_run_with_what_it_asks_for(
    tmp_path: Path, state: SqliteStateStore, scheduled: Scheduled
) -> None:
    known, new = tmp_path / "docs", tmp_path / "notes"
    known.mkdir()
    state.add_root(RootRecord("docs_2", str(known.resolve())))
    settings = scheduled(
        roots=(RootSettings(known), RootSettings(new)),
        kind="reindex",
        window="11:00-13:00",
        timezone="UTC",
        requests_per_minute=60,
        workers=2,
        named=(str(known), str(new)),
    )
    due_runs(settings, state, NOON_NS - 1)
    (event,) = due_runs(settings, state, NOON_NS)
    assert (event.kind, event.schedule, event.tick_ns) == ("queued", "nightly", NOON_NS)
    (run,) = state.queued_runs()
    assert (run.id, run.kind, run.trigger, run.schedule, run.roots) == (
        event.run_id, "reindex", "schedule", "nightly", ("docs_2",),
    )  # fmt: skip
    assert not run.full
    assert RunRequest.from_json(state.request_of(run.id)) == RunRequest(
        kind="reindex",
        paths=(str(new),),
        roots=("docs_2",),
        reindex=True,
        requests_per_minute=60,
        workers=2,
        window="11:00-13:00",
    )


def test_a_run_of_fifteen_minutes_every_ten(state: SqliteStateStore, scheduled: Scheduled) -> None:
    """Fault 3: one runs, one is recorded as skipped, none is queued twice; asked every second, as the role does."""
    settings = scheduled()
    due_runs(settings, state, NOON_NS - NS)
    events: list[ScheduleEvent] = []
    for second in range(21 * 60):
        now_ns = NOON_NS + second * NS
        if second == 1:
            assert state.start_run(events[0].run_id, floor_generation=0) is not None
        if second == 15 * 60:
            state.end_run(events[0].run_id, "done", {}, "")
        events += due_runs(settings, state, now_ns)
        if second == 14 * 60:
            assert len(state.runs()) == 1
            assert record_of(state).skipped == 1
    assert kinds(events) == ["queued", "skipped", "ended", "queued"]
    assert events[1] == ScheduleEvent("nightly", "skipped", events[0].run_id, NOON_NS + 10 * MINUTE_NS)
    assert events[3].tick_ns == NOON_NS + 20 * MINUTE_NS
    assert record_of(state).skipped == 1
    assert [run.state for run in state.runs()] == ["queued", "done"]


def test_a_tick_over_a_run_of_somebody_else_is_skipped(state: SqliteStateStore, scheduled: Scheduled) -> None:
    """One run at a time for a base, whoever asked for it; one that waits counts as well."""
    settings = scheduled()
    due_runs(settings, state, NOON_NS - 1)
    own = state.queue_run(RunRecord(0, 0, "index", "cli", (), "queued", 0, None, {}), {})
    assert due_runs(settings, state, NOON_NS) == [ScheduleEvent("nightly", "skipped", own.id, NOON_NS)]
    record = record_of(state)
    assert (record.skipped, record.last_outcome, record.last_run) == (1, "skipped", 0)
    assert due_runs(settings, state, NOON_NS + MINUTE_NS) == []
    finish(state, own.id)
    assert kinds(due_runs(settings, state, NOON_NS + 10 * MINUTE_NS)) == ["queued"]


def test_two_schedules_at_one_time_are_one_run(state: SqliteStateStore, scheduled: Scheduled) -> None:
    settings = scheduled("0 * * * *", ScheduleSettings("checks", "0 * * * *", kind="verify"))
    due_runs(settings, state, NOON_NS - 1)
    assert kinds(due_runs(settings, state, NOON_NS)) == ["queued", "skipped"]
    assert record_of(state, "checks").skipped == 1


def test_missed_ticks_are_one_run(state: SqliteStateStore, scheduled: Scheduled) -> None:
    """Nobody was there for a week: one run, for the last tick."""
    settings = scheduled()
    due_runs(settings, state, NOON_NS)
    now_ns = NOON_NS + 7 * 24 * HOUR_NS + 5 * MINUTE_NS
    (event,) = due_runs(settings, state, now_ns)
    assert (event.kind, event.tick_ns) == ("queued", now_ns - 5 * MINUTE_NS)
    finish(state, event.run_id)
    assert kinds(due_runs(settings, state, now_ns + NS)) == ["ended"]
    assert record_of(state).skipped == 0


def test_a_clock_that_jumps_back_runs_nothing_again(state: SqliteStateStore, scheduled: Scheduled) -> None:
    """P29: 25 hours back; ticks go on when the time has come up with the last one."""
    settings = scheduled("0 3 * * *")
    tick_ns = ns("2026-12-01T03:00+00:00")
    due_runs(settings, state, tick_ns - HOUR_NS)
    (event,) = due_runs(settings, state, tick_ns)
    finish(state, event.run_id)
    back_ns = tick_ns - 25 * HOUR_NS
    seen = [
        event for minute in range(25 * 60 + 30) for event in due_runs(settings, state, back_ns + minute * MINUTE_NS)
    ]
    assert kinds(seen) == ["ended"]
    assert kinds(due_runs(settings, state, tick_ns + 24 * HOUR_NS)) == ["queued"]


def test_a_clock_that_jumps_ahead_runs_once(state: SqliteStateStore, scheduled: Scheduled) -> None:
    """P29: 25 hours ahead, and back again: one run for all that was jumped over, none twice."""
    settings = scheduled()
    due_runs(settings, state, NOON_NS)
    ahead_ns = NOON_NS + 25 * HOUR_NS
    (event,) = due_runs(settings, state, ahead_ns)
    assert event.kind == "queued"
    finish(state, event.run_id)
    assert kinds(due_runs(settings, state, ahead_ns + NS)) == ["ended"]
    for minute in range(0, 25 * 60, 5):
        assert due_runs(settings, state, NOON_NS + minute * MINUTE_NS) == []
    assert kinds(due_runs(settings, state, ahead_ns + 10 * MINUTE_NS)) == ["queued"]


def test_a_clock_that_stood_wrong_by_years_stops_no_schedule(state: SqliteStateStore, scheduled: Scheduled) -> None:
    """P29: a tick taken in 2106 does not hold up those of 2026; the past is not run for."""
    settings = scheduled()
    due_runs(settings, state, ns("2106-02-07T06:00+00:00"))
    (event,) = due_runs(settings, state, ns("2106-02-07T06:28+00:00"))
    finish(state, event.run_id)
    assert kinds(due_runs(settings, state, NOON_NS + NS)) == ["ended"]
    assert due_runs(settings, state, NOON_NS + 9 * MINUTE_NS) == []
    assert kinds(due_runs(settings, state, NOON_NS + 10 * MINUTE_NS)) == ["queued"]


def test_the_end_of_a_run_is_recorded_once(state: SqliteStateStore, scheduled: Scheduled) -> None:
    settings = scheduled(heartbeat_url_env="NIGHTLY_URL")
    due_runs(settings, state, NOON_NS - 1)
    (event,) = due_runs(settings, state, NOON_NS)
    queued = state.run(event.run_id)
    assert queued is not None
    assert close_tick(settings, state, queued) is None
    run = finish(state, event.run_id)
    expected = ScheduleEvent("nightly", "ended", run.id, outcome="done", heartbeat_url_env="NIGHTLY_URL")
    assert close_tick(settings, state, run) == expected
    assert close_tick(settings, state, run) is None
    assert due_runs(settings, state, NOON_NS + NS) == []
    record = record_of(state)
    assert (record.last_outcome, record.outcome_ns, record.last_success_ns) == ("done", run.ended_ns, run.ended_ns)


def test_a_run_that_ended_while_nobody_led_is_recorded_by_who_leads_next(
    state: SqliteStateStore, scheduled: Scheduled
) -> None:
    settings = scheduled(heartbeat_url_env="NIGHTLY_URL")
    due_runs(settings, state, NOON_NS - 1)
    (event,) = due_runs(settings, state, NOON_NS)
    finish(state, event.run_id, "interrupted")
    ended, queued = due_runs(settings, state, NOON_NS + HOUR_NS)
    assert (ended.kind, ended.outcome, ended.heartbeat_url_env) == ("ended", "interrupted", "")
    assert queued.kind == "queued"
    assert record_of(state).last_success_ns == 0


@pytest.mark.parametrize("ending", ["partial", "failed", "cancelled", "needs_approval"])
def test_only_a_run_that_ended_well_is_a_success(
    state: SqliteStateStore, scheduled: Scheduled, ending: RunState
) -> None:
    settings = scheduled(heartbeat_url_env="NIGHTLY_URL")
    due_runs(settings, state, NOON_NS - 1)
    (event,) = due_runs(settings, state, NOON_NS)
    found = close_tick(settings, state, finish(state, event.run_id, ending))
    assert found == ScheduleEvent("nightly", "ended", event.run_id, outcome=ending)
    assert (record_of(state).last_outcome, record_of(state).last_success_ns) == (ending, 0)


def test_a_queued_run_that_is_cancelled_has_ended(state: SqliteStateStore, scheduled: Scheduled) -> None:
    settings = scheduled()
    due_runs(settings, state, NOON_NS - 1)
    (event,) = due_runs(settings, state, NOON_NS)
    assert state.ask(event.run_id, "cancel")
    (ended,) = due_runs(settings, state, NOON_NS + NS)
    assert (ended.kind, ended.outcome) == ("ended", "cancelled")


def test_a_schedule_that_was_taken_out_is_new_when_it_comes_back(
    state: SqliteStateStore, scheduled: Scheduled, tmp_path: Path
) -> None:
    settings = scheduled()
    due_runs(settings, state, NOON_NS)
    assert due_runs(Settings("knowledge", tmp_path, None, configured=True), state, NOON_NS + NS) == []
    assert state.schedules() == []
    assert due_runs(settings, state, NOON_NS + 25 * HOUR_NS) == []


def test_a_tick_outside_of_its_window_waits_until_that_opens(state: SqliteStateStore, scheduled: Scheduled) -> None:
    """The machine was off at three: the run is made up for at one, not at noon."""
    settings = scheduled("0 3 * * *", window="01:00-05:00", timezone="Europe/Malta")
    due_runs(settings, state, ns("2026-11-30T00:00+01:00"))
    assert due_runs(settings, state, ns("2026-11-30T12:00+01:00")) == []
    assert due_runs(settings, state, ns("2026-12-01T00:59:59+01:00")) == []
    (event,) = due_runs(settings, state, ns("2026-12-01T01:00+01:00"))
    assert event.tick_ns == ns("2026-11-30T03:00+01:00")


def paused(run: RunRecord, cause: str) -> RunRecord:
    return RunRecord(
        run.id, 1, run.kind, run.trigger, (), "paused", 1, None, {}, cause, requested="pause", schedule="nightly"
    )


def test_a_run_pauses_when_its_window_closes_and_goes_on_when_it_opens(
    state: SqliteStateStore, scheduled: Scheduled
) -> None:
    settings = scheduled("0 3 * * *", window="01:00-05:00", timezone="Europe/Malta")
    due_runs(settings, state, ns("2026-11-30T00:00+01:00"))
    (event,) = due_runs(settings, state, ns("2026-11-30T03:00+01:00"))
    run, request = state.start_run(event.run_id, floor_generation=0), RunRequest()
    assert run is not None
    closed_ns, open_ns = ns("2026-11-30T05:00+01:00"), ns("2026-12-01T01:00+01:00")
    assert window_wish(settings, run, request, closed_ns - 1) == ""
    assert window_wish(settings, run, request, closed_ns) == "pause"
    assert next_window_ns(settings, run, request, closed_ns) == open_ns
    for_window, by_hand = paused(run, WINDOW_CLOSED), paused(run, "asked for")
    assert [window_wish(settings, for_window, request, at_ns) for at_ns in (closed_ns, open_ns)] == ["", "go on"]
    assert [window_wish(settings, by_hand, request, at_ns) for at_ns in (closed_ns, open_ns)] == ["", ""]
    state.end_run(run.id, "done", {}, "")
    ended = state.run(run.id)
    assert ended is not None
    assert window_wish(settings, ended, request, closed_ns) == ""


def test_whose_window_counts(state: SqliteStateStore, scheduled: Scheduled, tmp_path: Path) -> None:
    """That of the schedule as it is configured now; of a schedule that is there no more, that of the request."""
    request = RunRequest(window="01:00-05:00", timezone="UTC")
    run = RunRecord(1, 1, "index", "schedule", (), "embedding", 1, None, {}, schedule="nightly")
    assert window_wish(scheduled(window=""), run, request, NOON_NS) == ""
    assert window_wish(scheduled(window="11:00-13:00"), run, request, NOON_NS) == ""
    assert window_wish(Settings("knowledge", tmp_path, None, configured=True), run, request, NOON_NS) == "pause"
    by_hand = RunRecord(1, 1, "index", "cli", (), "embedding", 1, None, {})
    assert window_wish(scheduled(window="01:00-05:00"), by_hand, RunRequest(), NOON_NS) == ""
    assert next_window_ns(scheduled(window=""), run, request, NOON_NS) == NOON_NS


def test_a_window_that_was_taken_out_lets_a_paused_run_go_on(state: SqliteStateStore, scheduled: Scheduled) -> None:
    run = paused(RunRecord(1, 1, "index", "schedule", (), "paused", 1, None, {}), WINDOW_CLOSED)
    assert window_wish(scheduled(window=""), run, RunRequest(window="01:00-05:00"), NOON_NS) == "go on"
