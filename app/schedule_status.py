"""The schedules of a base as values: when each runs next, what came of its last run, who is there to run it."""

from msgspec import Struct

from domain.layout import BaseLayout
from domain.settings import ScheduleSettings, Settings
from scheduler.cron import last_tick_ns, next_ticks_ns
from scheduler.windows import is_open, opens_ns, parse_window
from scheduler.zones import zone_of
from store.files import lstat_or_none
from store.lock import holder_of, is_held
from store.run_port import RunRecord
from store.schedule_port import ScheduleRecord
from store.state import SqliteStateStore

SHOWN_TICKS = 3


class ScheduleStatus(Struct, frozen=True):
    """A schedule, its next ticks without their delays, and what is on record of it. Times in nanoseconds."""

    schedule: ScheduleSettings
    next_ns: tuple[int, ...]
    due_ns: int | None  # a tick that has passed and is still to be taken
    window_opens_ns: int | None  # None: it has no window; now, where that is open
    is_window_open: bool
    record: ScheduleRecord | None  # None: no scheduler has seen it yet
    last_run: RunRecord | None  # None: there was none, or it is forgotten


class SchedulesStatus(Struct, frozen=True):
    schedules: tuple[ScheduleStatus, ...]
    scheduler: str  # who runs them, in words; "" = nobody


def schedules_status(settings: Settings, now_ns: int) -> SchedulesStatus:
    """Reads only; there need be no index yet."""
    layout = BaseLayout(settings.home)
    records: dict[str, ScheduleRecord] = {}
    runs: dict[str, RunRecord | None] = {}
    if lstat_or_none(layout.state) is not None:
        state = SqliteStateStore(layout.state, read_only=True)
        try:
            records = {record.name: record for record in state.schedules()}
            runs = {name: state.run(record.last_run) for name, record in records.items() if record.last_run}
        finally:
            state.close()
    schedules = tuple(
        _status(schedule, records.get(schedule.name), runs.get(schedule.name), now_ns)
        for schedule in settings.schedules
    )
    return SchedulesStatus(schedules, _scheduler(layout))


def _status(
    schedule: ScheduleSettings, record: ScheduleRecord | None, run: RunRecord | None, now_ns: int
) -> ScheduleStatus:
    zone = zone_of(schedule.timezone)
    window = parse_window(schedule.window) if schedule.window else None
    return ScheduleStatus(
        schedule,
        next_ticks_ns(schedule.cron, zone, now_ns, SHOWN_TICKS),
        last_tick_ns(schedule.cron, zone, record.last_tick_ns, now_ns) if record is not None else None,
        opens_ns(window, zone, now_ns) if window is not None else None,
        window is None or is_open(window, zone, now_ns),
        record,
        run,
    )


def _scheduler(layout: BaseLayout) -> str:
    if not is_held(layout.scheduler_lock):
        return ""
    return holder_of(layout.scheduler_lock) or "another process"
