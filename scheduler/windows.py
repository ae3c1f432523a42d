"""The hours in which a run may go on: `01:00-05:00` on the clock of a zone, over midnight too.

A window is open whenever the clock shows a time in it, from its first minute up to, and without, its last: twice where
the clock is set back into it, and not at all where it skips all of it. Times are nanoseconds since the epoch.
"""

import re
from zoneinfo import ZoneInfo

from msgspec import Struct

from scheduler.zones import first_move_s, wall_of

NS = 1_000_000_000
_DAY_S = 86_400
_WRITTEN = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")


class Window(Struct, frozen=True):
    """Seconds of the day; a window that closes before it opens goes over midnight."""

    opens_s: int
    closes_s: int

    def holds(self, second_of_day: int) -> bool:
        if self.opens_s < self.closes_s:
            return self.opens_s <= second_of_day < self.closes_s
        return second_of_day >= self.opens_s or second_of_day < self.closes_s


def parse_window(written: str) -> Window:
    """Raises ValueError, in words."""
    found = _WRITTEN.fullmatch(written)
    if found is None:
        raise ValueError("must be two times such as 01:00-05:00")
    hours = [int(part) for part in found.groups()]
    window = Window(hours[0] * 3600 + hours[1] * 60, hours[2] * 3600 + hours[3] * 60)
    if window.opens_s == window.closes_s:
        raise ValueError("must have two different times; leave it empty for any time")
    return window


def is_open(window: Window, zone: ZoneInfo, at_ns: int) -> bool:
    return window.holds(_second_of_day(zone, at_ns // NS))


def closes_ns(window: Window, zone: ZoneInfo, at_ns: int) -> int:
    """The first instant from this one on at which the window is closed."""
    return _first(window, zone, at_ns, is_wanted_open=False)


def opens_ns(window: Window, zone: ZoneInfo, at_ns: int) -> int:
    """The first instant from this one on at which the window is open."""
    return _first(window, zone, at_ns, is_wanted_open=True)


def _first(window: Window, zone: ZoneInfo, at_ns: int, *, is_wanted_open: bool) -> int:
    if is_open(window, zone, at_ns) is is_wanted_open:
        return at_ns
    at_s, border_s = at_ns // NS, window.opens_s if is_wanted_open else window.closes_s
    while window.holds(second := _second_of_day(zone, at_s)) is not is_wanted_open:
        border_at_s = at_s + ((border_s - second) % _DAY_S or _DAY_S)
        at_s = first_move_s(zone, at_s, border_at_s) or border_at_s
    return at_s * NS


def _second_of_day(zone: ZoneInfo, at_s: int) -> int:
    wall = wall_of(zone, at_s)
    return wall.hour * 3600 + wall.minute * 60 + wall.second
