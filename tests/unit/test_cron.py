"""When a schedule is due: against a clock that is asked minute by minute (C-08), across moved clocks (S1: DST)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.cron import NS, check_cron, due_tick_ns, jitter_ns, last_tick_ns, next_tick_ns, next_ticks_ns
from scheduler.zones import zone_of

MALTA, NEW_YORK, LORD_HOWE, UTC_ZONE = (
    ZoneInfo(name) for name in ("Europe/Malta", "America/New_York", "Australia/Lord_Howe", "UTC")
)
HAVANA = ZoneInfo("America/Havana")  # moved at midnight
ZONES = (MALTA, NEW_YORK, LORD_HOWE, HAVANA, UTC_ZONE)
# days around which these zones move their clocks, and one on which none does
DAYS = ("2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01", "2026-06-15", "2027-12-31")
MINUTE_NS = 60 * NS
HOUR_NS = 60 * MINUTE_NS


def ns(text: str) -> int:
    """Of an ISO time with its offset."""
    return int(datetime.fromisoformat(text).timestamp()) * NS


def shown(tick_ns: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(tick_ns // NS, zone).isoformat(timespec="minutes")


def ticks_between(expression: str, zone: ZoneInfo, after_ns: int, until_ns: int) -> list[int]:
    found: list[int] = []
    tick_ns = next_tick_ns(expression, zone, after_ns)
    while tick_ns <= until_ns:
        assert not found or tick_ns > found[-1]
        found.append(tick_ns)
        tick_ns = next_tick_ns(expression, zone, tick_ns)
    return found


def named(expression: str, around_ns: int) -> set[datetime]:
    """The minutes that an expression names of a clock that is never moved, for days around an instant."""
    middle = datetime.fromtimestamp(around_ns // NS, UTC).replace(tzinfo=None)
    walls = CronSim(expression, middle - timedelta(days=3))
    return set(takewhile(lambda wall: wall < middle + timedelta(days=5), walls))


def minutes(zone: ZoneInfo, after_ns: int, until_ns: int) -> Iterator[tuple[int, datetime]]:
    """Every whole minute of the world, and what the zone's clock shows then."""
    for at_ns in range(after_ns - after_ns % MINUTE_NS + MINUTE_NS, until_ns + 1, MINUTE_NS):
        yield at_ns, datetime.fromtimestamp(at_ns // NS, zone).replace(tzinfo=None, fold=0)


minute_fields = st.sampled_from(["*", "*/7", "*/20", "0", "30", "15,45", "59", "10-20"])
hour_fields = st.sampled_from(["*", "*/5", "0", "1", "2", "3", "0-3", "1,2,23"])
expressions = st.builds(
    lambda minute, hour, day, weekday: f"{minute} {hour} {day} * {weekday}",
    minute_fields,
    hour_fields,
    st.sampled_from(["*", "*", "1", "25", "L"]),
    st.sampled_from(["*", "*", "SUN", "1-5"]),
)
starts = st.builds(
    lambda day, seconds: ns(f"{day}T00:00+00:00") + seconds * NS,
    st.sampled_from(DAYS),
    st.integers(-86_400, 86_400),
)


@settings(max_examples=120, deadline=None)
@given(expressions, st.sampled_from(ZONES), starts)
def test_ticks_are_the_minutes_that_the_clock_shows(expression: str, zone: ZoneInfo, after_ns: int) -> None:
    """Each lies behind now; none is missing, none comes twice; set times run once where a clock is moved."""
    until_ns = after_ns + 30 * HOUR_NS
    ticks = ticks_between(expression, zone, after_ns, until_ns)
    assert all(after_ns < tick_ns <= until_ns for tick_ns in ticks)
    walls = named(expression, after_ns)
    shows = [(at_ns, wall) for at_ns, wall in minutes(zone, after_ns, until_ns) if wall in walls]
    minute, hour = expression.split()[:2]
    if minute.startswith("*") or hour.startswith("*"):
        assert ticks == [at_ns for at_ns, _ in shows]
        return
    before = [wall for _, wall in minutes(zone, after_ns - 3 * HOUR_NS, after_ns)]
    seen = set(before)  # shown a second time, it is none any more
    once = [at_ns for at_ns, wall in shows if wall not in seen and not seen.add(wall)]  # type: ignore[func-returns-value]
    assert set(once) <= set(ticks)
    for extra_ns in set(ticks) - set(once):  # stands for a skipped time
        now = datetime.fromtimestamp(extra_ns // NS, zone).utcoffset()
        earlier = datetime.fromtimestamp(extra_ns // NS - 60, zone).utcoffset()
        assert now is not None
        assert earlier is not None
        assert now > earlier
        skipped_s = int((now - earlier).total_seconds())
        wall = datetime.fromtimestamp(extra_ns // NS, zone).replace(tzinfo=None)
        assert walls & {wall - timedelta(minutes=gone) for gone in range(1, skipped_s // 60 + 1)}


@settings(max_examples=60, deadline=None)
@given(expressions, st.sampled_from(ZONES), starts, st.integers(0, 100))
def test_the_last_tick_is_the_last_of_all_that_were_missed(
    expression: str, zone: ZoneInfo, after_ns: int, hours: int
) -> None:
    until_ns = after_ns + hours * HOUR_NS + 17 * NS
    ticks = ticks_between(expression, zone, after_ns, until_ns)
    assert last_tick_ns(expression, zone, after_ns, until_ns) == (ticks[-1] if ticks else None)


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        # the clock goes from 02:00 to 03:00, from 02:00 to 02:30, from 00:00 to 01:00: once, when it has been moved
        ("30 2 * * *", MALTA, "2026-03-29T00:00+01:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
        ("0 2 * * *", NEW_YORK, "2026-03-08T00:00-05:00", ["2026-03-08T03:00-04:00", "2026-03-09T02:00-04:00"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-04T00:00+10:30", ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"]),
        ("30 0 * * *", HAVANA, "2026-03-07T12:00-05:00", ["2026-03-08T01:00-04:00", "2026-03-09T00:30-04:00"]),
        # two skipped times are one, and one with the time at which the clock goes on
        ("0,30 2,3 * * *", MALTA, "2026-03-29T00:00+01:00", ["2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"]),
        # from 03:00 back to 02:00, from 02:00 back to 01:30: once, at its first showing
        ("30 2 * * *", MALTA, "2026-10-25T00:00+02:00", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
        ("30 2 * * *", MALTA, "2026-10-25T02:10+01:00", ["2026-10-26T02:30+01:00"]),
        ("30 1 * * *", NEW_YORK, "2026-11-01T00:00-04:00", ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"]),
        ("45 1 * * *", LORD_HOWE, "2026-04-05T00:00+11:00", ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"]),
        # every half hour is every half hour, whatever the clock shows
        ("*/30 2 * * *", MALTA, "2026-10-25T02:10+02:00", ["2026-10-25T02:30+02:00", "2026-10-25T02:00+01:00"]),
        ("*/30 2 * * *", MALTA, "2026-03-29T00:00+01:00", ["2026-03-30T02:00+02:00", "2026-03-30T02:30+02:00"]),
        ("*/15 3 * * *", LORD_HOWE, "2026-10-04T00:00+10:30", ["2026-10-04T03:00+11:00", "2026-10-04T03:15+11:00"]),
        ("0 3 29 2 *", UTC_ZONE, "2026-01-01T00:00+00:00", ["2028-02-29T03:00+00:00", "2032-02-29T03:00+00:00"]),
        ("0 3 * * 7", MALTA, "2026-11-30T00:00+01:00", ["2026-12-06T03:00+01:00", "2026-12-13T03:00+01:00"]),
    ],
)
def test_a_moved_clock(expression: str, zone: ZoneInfo, after: str, expected: list[str]) -> None:
    found = next_ticks_ns(expression, zone, ns(after), len(expected))
    assert [shown(tick_ns, zone) for tick_ns in found] == expected


def test_missed_ticks_are_one() -> None:
    """A machine that was off for a year owes one run, not 8,760."""
    now_ns = ns("2027-11-30T10:20+00:00")
    due_ns = due_tick_ns("0 * * * *", UTC_ZONE, ns("2026-11-30T10:00+00:00"), now_ns, name="n", jitter_s=0)
    assert due_ns == ns("2027-11-30T10:00+00:00")
    assert due_tick_ns("0 * * * *", UTC_ZONE, due_ns, now_ns, name="n", jitter_s=0) is None


def test_a_rare_tick_is_found_however_far_back_it_lies() -> None:
    taken_ns, now_ns = ns("2023-01-01T00:00+00:00"), ns("2027-11-30T00:00+00:00")
    assert last_tick_ns("0 3 29 2 *", UTC_ZONE, taken_ns, now_ns) == ns("2024-02-29T03:00+00:00")
    assert last_tick_ns("0 3 29 2 *", UTC_ZONE, ns("2025-01-01T00:00+00:00"), now_ns) is None
    assert last_tick_ns("0 0 * 2 MON#5", UTC_ZONE, 0, now_ns) == ns("2016-02-29T00:00+00:00")
    assert last_tick_ns("* * * * *", UTC_ZONE, 0, now_ns) == now_ns
    assert last_tick_ns("* * * * *", UTC_ZONE, now_ns, taken_ns) is None


def test_the_delay_of_a_tick_is_drawn_once_and_within_its_bounds() -> None:
    tick_ns = ns("2026-11-30T03:00+00:00")
    drawn = [jitter_ns("nightly", tick_ns + day * 24 * HOUR_NS, 300.0) for day in range(200)]
    assert drawn == [jitter_ns("nightly", tick_ns + day * 24 * HOUR_NS, 300.0) for day in range(200)]
    assert all(0 <= delay_ns <= 300 * NS for delay_ns in drawn)
    assert max(drawn) > 200 * NS
    assert min(drawn) < 100 * NS
    assert len(set(drawn)) > 190
    assert jitter_ns("other", tick_ns, 300.0) != drawn[0]
    assert jitter_ns("nightly", tick_ns, 0.0) == 0


def test_a_tick_is_due_when_its_delay_is_over() -> None:
    tick_ns = ns("2026-11-30T03:00+00:00")
    delay_ns = jitter_ns("nightly", tick_ns, 300.0)

    def due(now_ns: int) -> int | None:
        taken_ns = tick_ns - 24 * HOUR_NS
        return due_tick_ns("0 3 * * *", UTC_ZONE, taken_ns, now_ns, name="nightly", jitter_s=300.0)

    assert due(tick_ns) is None
    assert due(tick_ns + delay_ns - 1) is None
    assert due(tick_ns + delay_ns) == tick_ns


def test_delays_longer_than_the_time_between_ticks_keep_their_order() -> None:
    """Each tick that is taken lies behind the one before, and ticks go on coming."""
    start_ns = ns("2026-11-30T00:00+00:00")
    taken_ns, taken = start_ns, []
    for second in range(0, 7200, 15):
        due_ns = due_tick_ns("* * * * *", UTC_ZONE, taken_ns, start_ns + second * NS, name="n", jitter_s=600.0)
        if due_ns is not None:
            assert due_ns > taken_ns
            taken.append(due_ns)
            taken_ns = due_ns
    assert len(taken) > 20
    assert start_ns + 7200 * NS - taken_ns <= 600 * NS


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* *", "five fields"),
        ("", "five fields"),
        ("0 0 3 * * *", "five fields"),
        ("@daily", "here 0 0 * * *"),
        ("@reboot", "five fields"),
        ("60 3 * * *", "bad minute"),
        ("0 24 * * *", "bad hour"),
        ("0 3 32 * *", "bad day-of-month"),
        ("0 3 * 13 *", "bad month"),
        ("0 3 * * 8", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("5-1 * * * *", "bad minute"),
        ("0 3 31 2 *", "bad day-of-month"),
        ("0 3 30 2 *", "bad day-of-month"),
        ("a b c d e", "bad minute"),
        ("0 3 * * ²", "bad day-of-week"),
    ],
)
def test_an_expression_that_cannot_be_read_is_told(expression: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_cron(expression)


@pytest.mark.parametrize("expression", ["0 3 * * *", "*/5 * * * *", "0 3 * JAN MON#2", "0 3 L * *", " 0  3 * * sun "])
def test_an_expression_that_can_be_read(expression: str) -> None:
    check_cron(expression)
    assert next_tick_ns(expression, MALTA, ns("2026-11-30T00:00+00:00")) > ns("2026-11-30T00:00+00:00")


@pytest.mark.parametrize("name", ["", "Europe", "europe/malta", "Mars/Base", "../x", "/etc/passwd", "a\0b", "x" * 300])
def test_a_zone_that_is_none(name: str) -> None:
    with pytest.raises(ValueError, match="IANA name"):
        zone_of(name)


@pytest.mark.parametrize("at", ["1969-12-31T23:59:30+00:00", "2106-02-07T06:28:20+00:00"])
def test_clocks_that_stand_wrong(at: str) -> None:
    """P29: nothing of this breaks before the epoch or beyond 32 bits."""
    at_ns = ns(at)
    assert at_ns < next_tick_ns("*/5 * * * *", MALTA, at_ns) <= at_ns + 300 * NS
    assert datetime.fromtimestamp(next_tick_ns("0 3 * * *", UTC_ZONE, at_ns) // NS, UTC).hour == 3
