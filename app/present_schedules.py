"""`schedules` in words and as JSON."""

from collections.abc import Iterator
from datetime import datetime

from app.discovery import Located
from app.present import Json, age_seconds, ago, count, duration, index_line, utc
from app.present_reasons import ending_words
from app.present_safe import name
from app.schedule_status import SchedulesStatus, ScheduleStatus
from domain.settings import ScheduleSettings, Settings
from scheduler.cron import NS
from scheduler.zones import zone_of
from store.schedule_port import QUEUED, SKIPPED

NO_SCHEDULER = "no scheduler is running, so nothing here runs by itself: start `knowledge up`, or `knowledge scheduler`"


def schedules_text(status: SchedulesStatus, located: Located, settings: Settings, now_ns: int) -> str:
    """Which index, who runs its schedules, and a few lines for each of them."""
    lines = [index_line(located, settings)]
    if not status.schedules:
        lines.append("no schedules are configured: `schedules:` in the configuration holds them")
        return "\n".join(lines) + "\n"
    lines.append(f"run by {name(status.scheduler)}" if status.scheduler else f"note: {NO_SCHEDULER}")
    for schedule in status.schedules:
        lines += ["", *_lines(schedule, now_ns, has_scheduler=bool(status.scheduler))]
    return "\n".join(lines) + "\n"


def schedules_json(status: SchedulesStatus, located: Located, settings: Settings, now_ns: int) -> Json:
    return {
        "status": "ok",
        "home": str(settings.home),
        "base": located.words(),
        "identity": settings.identity,
        "scheduler": status.scheduler or None,
        "note": NO_SCHEDULER if status.schedules and not status.scheduler else None,
        "schedules": [_json(schedule, now_ns) for schedule in status.schedules],
    }


def local_time(at_ns: int, schedule: ScheduleSettings) -> str:
    """`Tue 2026-12-01 03:00 CET`: on the clock of the schedule's zone, with seconds where there are some."""
    at = datetime.fromtimestamp(at_ns // NS, zone_of(schedule.timezone))
    return at.strftime(f"%a %Y-%m-%d %H:%M{':%S' if at.second else ''} %Z")


def _lines(status: ScheduleStatus, now_ns: int, *, has_scheduler: bool) -> Iterator[str]:
    schedule = status.schedule
    yield f"{name(schedule.name)}: {schedule.kind} at {schedule.cron} ({schedule.timezone}){_limits(schedule)}"
    first, *others = status.next_ns
    soon = duration((first - now_ns) // NS)
    yield f"  next: {local_time(first, schedule)}, in {soon}{_delay_words(schedule)}"
    yield from (f"        {local_time(tick_ns, schedule)}" for tick_ns in others)
    if status.due_ns is not None:
        yield f"  due: {local_time(status.due_ns, schedule)}, waits for {_awaited(status, has_scheduler=has_scheduler)}"
    if status.window_opens_ns is not None:
        now = "open now" if status.is_window_open else f"closed until {local_time(status.window_opens_ns, schedule)}"
        yield f"  window: {schedule.window}, {now}"
    yield f"  last: {last_words(status, now_ns)}"
    record = status.record
    if record is not None and record.skipped:
        yield f"  skipped: {count(record.skipped, 'tick')}, as another run went on"


def _awaited(status: ScheduleStatus, *, has_scheduler: bool) -> str:
    """What a tick waits for that has passed and was not taken."""
    if not has_scheduler:
        return "a scheduler"
    if not status.is_window_open:
        return "its window"
    return "its delay to pass" if status.schedule.jitter_s else "the scheduler"


def _limits(schedule: ScheduleSettings) -> str:
    told = [f"of {', '.join(name(root) for root in schedule.roots)}"] if schedule.roots else []
    if schedule.requests_per_minute:
        told.append(f"at most {count(schedule.requests_per_minute, 'request')} a minute")
    if schedule.workers:
        told.append(count(schedule.workers, "worker"))
    return "".join(f", {words}" for words in told)


def _delay_words(schedule: ScheduleSettings) -> str:
    return f", put off by up to {duration(schedule.jitter_s)}" if schedule.jitter_s else ""


def last_words(status: ScheduleStatus, now_ns: int) -> str:
    record = status.record
    if record is None:
        return "none: no scheduler has seen it yet"
    if not _has_ticked(status):
        return f"none since it was first seen, {ago(record.last_tick_ns, now_ns)}"
    tick = f"tick of {local_time(record.last_tick_ns, status.schedule)}"
    succeeded = f"; last one that ended well {ago(record.last_success_ns, now_ns)}" if record.last_success_ns else ""
    if record.last_outcome == SKIPPED:
        return f"{tick}, skipped, as another run went on{succeeded}"
    if record.last_outcome == QUEUED:
        run = status.last_run
        state = "is queued" if run is None or run.state == "queued" else f"is at it ({run.state.replace('_', ' ')})"
        return f"{tick}; run {record.last_run} {state}{succeeded}"
    ended = ending_words(record.last_outcome)
    also = succeeded if record.last_outcome != "done" else ""
    return f"{tick}; run {record.last_run} {ended} {ago(record.outcome_ns, now_ns)}{also}"


def _json(status: ScheduleStatus, now_ns: int) -> Json:
    schedule, record = status.schedule, status.record
    last_tick_ns = record.last_tick_ns if record is not None and _has_ticked(status) else None
    return {
        "name": schedule.name,
        "kind": schedule.kind,
        "cron": schedule.cron,
        "timezone": schedule.timezone,
        "window": schedule.window or None,
        "window_open": status.is_window_open if schedule.window else None,
        "window_opens_at": utc(status.window_opens_ns),
        "jitter_seconds": schedule.jitter_s,
        "roots": list(schedule.roots),
        "requests_per_minute": schedule.requests_per_minute,
        "workers": schedule.workers,
        "next": [utc(tick_ns) for tick_ns in status.next_ns],
        "next_local": [local_time(tick_ns, schedule) for tick_ns in status.next_ns],
        "due_at": utc(status.due_ns),
        "last_tick_at": utc(last_tick_ns),
        "last_run": (record.last_run or None) if record is not None else None,
        "last_outcome": (record.last_outcome or None) if record is not None else None,
        "last_outcome_at": utc((record.outcome_ns or None) if record is not None else None),
        "last_success_at": utc((record.last_success_ns or None) if record is not None else None),
        "last_success_age_seconds": age_seconds(
            (record.last_success_ns or None) if record is not None else None, now_ns
        ),
        "skipped": record.skipped if record is not None else 0,
    }


def _has_ticked(status: ScheduleStatus) -> bool:
    return status.record is not None and bool(status.record.last_run or status.record.skipped)
