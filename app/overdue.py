"""Which schedules are overdue: two of their ticks have passed, the second an hour ago, and no run has ended well."""

from collections.abc import Mapping, Sequence

from domain.settings import Settings
from scheduler.cron import NS, next_ticks_ns
from scheduler.zones import zone_of
from store.schedule_port import ScheduleRecord

GRACE_NS = 3600 * NS
TICKS_WITHOUT_SUCCESS = 2  # one run that failed is told as such


def overdue_since_ns(
    settings: Settings, records: Sequence[ScheduleRecord], first_seen_ns: Mapping[str, int], now_ns: int
) -> dict[str, int | None]:
    """By name, since when (nanoseconds) no run of a schedule has ended well, where that is too long; else None.

    `first_seen_ns`: since when there was somebody to look, for schedules whose runs never ended well; what is not in it
    is not overdue yet.
    """
    success = {record.name: record.last_success_ns for record in records}
    overdue: dict[str, int | None] = {}
    for schedule in settings.schedules:
        since_ns = success.get(schedule.name) or first_seen_ns.get(schedule.name, now_ns)
        ticks = next_ticks_ns(schedule.cron, zone_of(schedule.timezone), since_ns, TICKS_WITHOUT_SUCCESS)
        late_ns = ticks[-1] + round(schedule.jitter_s * NS) + GRACE_NS
        overdue[schedule.name] = since_ns if late_ns <= now_ns else None
    return overdue
