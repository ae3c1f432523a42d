"""Clocks on walls: what a zone's clock shows at an instant, when it shows a time, when it is moved.

Instants are whole seconds since the epoch, walls are naive datetimes. Pure, but for the zone files that are read once.
"""

from datetime import datetime
from zoneinfo import ZoneInfo

_SCAN_STEP_S = 86_400  # no zone moves its clock twice within a day


def zone_of(name: str) -> ZoneInfo:
    """Raises ValueError, in words, for a name that is no IANA zone's."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # unknown, unfit as a path, a folder such as Europe
        raise ValueError("must be an IANA name such as Europe/Malta, as it is written there") from None


def wall_of(zone: ZoneInfo, at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, zone).replace(tzinfo=None, fold=0)


def instant_of(zone: ZoneInfo, wall: datetime) -> int:
    """When the clock shows this first; where it skips it, when it has been moved."""
    first_s = _timestamp(zone, wall, fold=0)
    if wall_of(zone, first_s) == wall:
        return first_s
    # a skipped time reads with the offset before as an instant behind the move, with the one after as one before it
    return first_move_s(zone, _timestamp(zone, wall, fold=1), first_s) or first_s


def first_move_s(zone: ZoneInfo, after_s: int, until_s: int) -> int | None:
    """The first instant in (after, until] at which the clock goes on with another offset."""
    low_s, offset = after_s, _offset(zone, after_s)
    while low_s < until_s:
        high_s = min(low_s + _SCAN_STEP_S, until_s)
        if _offset(zone, high_s) != offset:
            while high_s - low_s > 1:
                middle_s = (low_s + high_s) // 2
                if _offset(zone, middle_s) == offset:
                    low_s = middle_s
                else:
                    high_s = middle_s
            return high_s
        low_s = high_s
    return None


def _timestamp(zone: ZoneInfo, wall: datetime, *, fold: int) -> int:
    return int(wall.replace(tzinfo=zone, fold=fold).timestamp())


def _offset(zone: ZoneInfo, at_s: int) -> object:
    return datetime.fromtimestamp(at_s, zone).utcoffset()
