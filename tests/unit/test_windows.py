"""The hours in which a run may go on (C-08), also on days when the clock is moved."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.windows import NS, closes_ns, is_open, opens_ns, parse_window

MALTA, NEW_YORK, LORD_HOWE, UTC_ZONE = (
    ZoneInfo(name) for name in ("Europe/Malta", "America/New_York", "Australia/Lord_Howe", "UTC")
)
MINUTE_NS = 60 * NS


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * NS


def shown(at_ns: int, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at_ns // NS, zone).isoformat(timespec="minutes")


@pytest.mark.parametrize(
    ("window", "at", "expected"),
    [
        ("01:00-05:00", "2026-11-30T00:59:59+01:00", False),
        ("01:00-05:00", "2026-11-30T01:00+01:00", True),
        ("01:00-05:00", "2026-11-30T04:59:59+01:00", True),
        ("01:00-05:00", "2026-11-30T05:00+01:00", False),
        ("22:30-05:00", "2026-11-30T22:29+01:00", False),
        ("22:30-05:00", "2026-11-30T22:30+01:00", True),
        ("22:30-05:00", "2026-11-30T00:00+01:00", True),
        ("22:30-05:00", "2026-11-30T05:00+01:00", False),
        ("22:00-00:00", "2026-11-30T23:59+01:00", True),
        ("22:00-00:00", "2026-11-30T00:00+01:00", False),
        ("00:00-06:00", "2026-11-30T00:00+01:00", True),
    ],
)
def test_a_window_holds_its_first_minute_and_not_its_last(window: str, at: str, expected: bool) -> None:
    assert is_open(parse_window(window), MALTA, ns(at)) is expected


@pytest.mark.parametrize("written", ["1:00-5:00", "01:00", "24:00-05:00", "01:60-05:00", "01:00-05:00 ", "", "a-b"])
def test_what_is_no_window(written: str) -> None:
    with pytest.raises(ValueError, match="two times such as"):
        parse_window(written)


def test_a_window_of_no_length() -> None:
    with pytest.raises(ValueError, match="two different times"):
        parse_window("05:00-05:00")


@pytest.mark.parametrize(
    ("window", "zone", "at", "opens", "closes"),
    [
        ("01:00-05:00", UTC_ZONE, "2026-11-30T12:00+00:00", "2026-12-01T01:00+00:00", "2026-11-30T12:00+00:00"),
        ("01:00-05:00", UTC_ZONE, "2026-11-30T02:00+00:00", "2026-11-30T02:00+00:00", "2026-11-30T05:00+00:00"),
        ("22:30-05:00", UTC_ZONE, "2026-11-30T23:00+00:00", "2026-11-30T23:00+00:00", "2026-12-01T05:00+00:00"),
        # the clock goes from 02:00 to 03:00: an hour less
        ("01:00-05:00", MALTA, "2026-03-29T01:30+01:00", "2026-03-29T01:30+01:00", "2026-03-29T05:00+02:00"),
        ("01:00-02:30", MALTA, "2026-03-29T01:30+01:00", "2026-03-29T01:30+01:00", "2026-03-29T03:00+02:00"),
        ("02:30-05:00", MALTA, "2026-03-29T01:30+01:00", "2026-03-29T03:00+02:00", "2026-03-29T01:30+01:00"),
        # all of it is skipped: it opens on the next day
        ("02:00-03:00", MALTA, "2026-03-29T01:30+01:00", "2026-03-30T02:00+02:00", "2026-03-29T01:30+01:00"),
        ("02:00-02:30", LORD_HOWE, "2026-10-04T01:30+10:30", "2026-10-05T02:00+11:00", "2026-10-04T01:30+10:30"),
        # from 03:00 back to 02:00: open a second time
        ("01:00-02:30", MALTA, "2026-10-25T02:45+02:00", "2026-10-25T02:00+01:00", "2026-10-25T02:45+02:00"),
        ("01:00-02:30", NEW_YORK, "2026-11-01T01:10-04:00", "2026-11-01T01:10-04:00", "2026-11-01T02:30-05:00"),
        ("01:30-01:45", LORD_HOWE, "2026-04-05T01:50+11:00", "2026-04-05T01:30+10:30", "2026-04-05T01:50+11:00"),
    ],
)
def test_when_it_opens_and_closes(window: str, zone: ZoneInfo, at: str, opens: str, closes: str) -> None:
    parsed = parse_window(window)
    assert shown(opens_ns(parsed, zone, ns(at)), zone) == opens
    assert shown(closes_ns(parsed, zone, ns(at)), zone) == closes


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 23), st.integers(0, 59)).filter(
        lambda hours: hours[:2] != hours[2:]
    ),
    st.sampled_from([MALTA, NEW_YORK, LORD_HOWE, UTC_ZONE]),
    st.sampled_from(["2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"]),
    st.integers(-2880, 2880),
)
def test_nothing_lies_between_now_and_the_border(
    hours: tuple[int, int, int, int], zone: ZoneInfo, day: str, minute: int
) -> None:
    """Minute by minute: the border is the first one that is as it was asked for."""
    window = parse_window("{:02}:{:02}-{:02}:{:02}".format(*hours))
    at_ns = ns(f"{day}T00:00+00:00") + minute * MINUTE_NS
    for is_wanted_open, border_ns in ((True, opens_ns(window, zone, at_ns)), (False, closes_ns(window, zone, at_ns))):
        assert is_open(window, zone, border_ns) is is_wanted_open
        assert not [t for t in range(at_ns, border_ns, MINUTE_NS) if is_open(window, zone, t) is is_wanted_open]
