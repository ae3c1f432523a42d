"""What the scheduler role does for the schedules: takes ticks that are due, holds runs to their windows, records ends.

The time is handed in; nothing here waits. Everything may be called again, by another process too: a tick is taken
once, an end recorded once.
"""

import os
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from app.run_request import RunRequest
from domain.settings import ScheduleSettings, Settings
from scheduler.cron import NS, due_tick_ns
from scheduler.windows import is_open, parse_window
from scheduler.zones import zone_of
from store.run_port import RunRecord
from store.schedule_port import ScheduleRecord
from store.state_port import StateStore

WINDOW_CLOSED = "window closed"  # the cause of a run that pauses for its window, and for nothing else
# a tick recorded further ahead was taken by a clock that stood wrong by days: it holds nothing up any more
TRUSTED_AHEAD_NS = 48 * 3600 * NS
WindowWish = Literal["pause", "go on", ""]


class ScheduleEvent(Struct, frozen=True):
    """What has become of a tick, to be logged, counted and told."""

    schedule: str
    kind: Literal["queued", "skipped", "ended"]
    run_id: int  # the run that was queued, that was in the way, that has ended
    tick_ns: int = 0
    outcome: str = ""  # of a run that has ended: its state
    heartbeat_url_env: str = ""  # of a run that ended well: the variable with the address to call


def due_runs(settings: Settings, state: StateStore, now_ns: int) -> list[ScheduleEvent]:
    """Everything that is to be done for the schedules at this time, done; to be called about once a second.

    Records the ends of scheduled runs that `close_tick` has not, and queues a run for each tick that is due.
    """
    records = {record.name: record for record in state.schedules()}
    events = [event for record in records.values() if (event := _closed(settings, state, record)) is not None]
    configured = {schedule.name for schedule in settings.schedules}
    if records.keys() - configured:
        state.forget_schedules(configured)
    for schedule in settings.schedules:
        record = records.get(schedule.name)
        if record is None or record.last_tick_ns > now_ns + TRUSTED_AHEAD_NS:
            state.see_schedule(schedule.name, now_ns)
        elif (event := _taken(settings, state, schedule, record, now_ns)) is not None:
            events.append(event)
    return events


def close_tick(settings: Settings, state: StateStore, run: RunRecord) -> ScheduleEvent | None:
    """Record how a run ended where it is the last one of a schedule; None: it is not, or that is on record."""
    if not run.schedule or run.ended_ns is None:
        return None
    if not state.close_tick(run.schedule, run.id, run.state, run.ended_ns):
        return None
    return _ended(settings, run.schedule, run.id, run.state)


def window_wish(settings: Settings, run: RunRecord, request: RunRequest, now_ns: int) -> WindowWish:
    """What the window of a run asks for now: of one that is queued, "pause" is not to begin yet.

    "go on" is asked only of a run that pauses for its window (its cause is WINDOW_CLOSED); one that somebody has
    paused stays so. Where its schedule is still configured, the window there counts, not the one of its request.
    """
    if run.ended_ns is not None:
        return ""
    window, timezone = _window_of(settings, run, request)
    is_paused_by_window = run.state == "paused" and run.cause == WINDOW_CLOSED
    if not window or is_open(parse_window(window), zone_of(timezone), now_ns):
        return "go on" if is_paused_by_window else ""
    return "" if run.requested or run.state == "paused" else "pause"


def next_window_ns(settings: Settings, run: RunRecord, request: RunRequest, now_ns: int) -> int:
    """When the window of a run is open next; now where it is, or where there is none."""
    from scheduler.windows import opens_ns

    window, timezone = _window_of(settings, run, request)
    return opens_ns(parse_window(window), zone_of(timezone), now_ns) if window else now_ns


def request_of_schedule(schedule: ScheduleSettings, recorded: Mapping[str, str]) -> RunRequest:
    """What a tick asks for; `recorded` are the names of the roots by their paths. A root that has no name yet goes by
    its path."""
    names = [recorded.get(os.path.realpath(root)) for root in schedule.roots]
    unnamed = tuple(root for root, name in zip(schedule.roots, names, strict=True) if name is None)
    return RunRequest(
        kind=schedule.kind,
        paths=tuple(root for root in unnamed if os.path.isabs(root)),  # noqa: PTH117 - a text
        roots=(*(name for name in names if name), *(root for root in unnamed if not os.path.isabs(root))),  # noqa: PTH117
        reindex=schedule.kind == "reindex",
        requests_per_minute=schedule.requests_per_minute,
        workers=schedule.workers,
        window=schedule.window,
        timezone=schedule.timezone,
    )


def _taken(
    settings: Settings, state: StateStore, schedule: ScheduleSettings, record: ScheduleRecord, now_ns: int
) -> ScheduleEvent | None:
    """A tick that falls outside of the window stays due until that opens."""
    zone = zone_of(schedule.timezone)
    if schedule.window and not is_open(parse_window(schedule.window), zone, now_ns):
        return None
    tick_ns = due_tick_ns(
        schedule.cron,
        zone,
        record.last_tick_ns,
        now_ns,
        name=f"{settings.home}\0{schedule.name}",  # bases that share a schedule and a server do not call it at once
        jitter_s=schedule.jitter_s,
    )
    if tick_ns is None:
        return None
    request = request_of_schedule(schedule, {root.path: root.name for root in state.roots()})
    run = RunRecord(
        id=0,
        generation=0,
        kind=schedule.kind,
        trigger="schedule",
        roots=request.roots,
        state="queued",
        started_ns=0,
        ended_ns=None,
        counts={},
        full=not schedule.roots,
        schedule=schedule.name,
    )
    tick = state.tick(schedule.name, tick_ns, now_ns, run=run, request=request.to_json())
    return None if tick.result == "taken" else ScheduleEvent(schedule.name, tick.result, tick.run_id, tick_ns)


def _closed(settings: Settings, state: StateStore, record: ScheduleRecord) -> ScheduleEvent | None:
    """The end of a schedule's last run, where nobody has recorded it: whoever led it may be gone."""
    if record.is_run_recorded:
        return None
    run = state.run(record.last_run)
    if run is not None:
        return close_tick(settings, state, run)
    # one of so many runs ago that it is forgotten
    if state.close_tick(record.name, record.last_run, "interrupted", record.outcome_ns):
        return _ended(settings, record.name, record.last_run, "interrupted")
    return None


def _ended(settings: Settings, name: str, run_id: int, outcome: str) -> ScheduleEvent:
    variables = (schedule.heartbeat_url_env for schedule in settings.schedules if schedule.name == name)
    return ScheduleEvent(
        name,
        "ended",
        run_id,
        outcome=outcome,
        heartbeat_url_env=next(variables, "") if outcome == "done" else "",
    )


def _window_of(settings: Settings, run: RunRecord, request: RunRequest) -> tuple[str, str]:
    for schedule in settings.schedules:
        if run.schedule and schedule.name == run.schedule:
            return schedule.window, schedule.timezone
    return request.window, request.timezone
