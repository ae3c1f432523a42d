"""When a schedule is due: cron expressions on the clock of a zone, missed ticks, jitter. The time is handed in.

Ticks are nanoseconds since the epoch and lie on whole seconds. On the days when a clock is moved, a schedule for set
times (neither minute nor hour begins with `*`) runs once: when a skipped time would have been, at its first showing
of a doubled one. Any other one runs whenever the clock shows a time that the expression names, as in Debian's cron.

cronsim reads the expressions and counts on walls without a zone; the zone is dealt with here: asked for times in a
zone, it leaves some out where a clock is moved by half an hour.
"""

import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from scheduler.zones import first_move_s, instant_of, wall_of

NS = 1_000_000_000
_FIELDS = 5
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
# how far back the last tick is looked for first: of a dense expression, the many before it are not counted through
_LOOKBACKS_NS = tuple(NS * seconds for seconds in (432, 8_640, 2 * 86_400, 70 * 86_400, 450 * 86_400))


def check_cron(expression: str) -> None:
    """Raises ValueError, in words, for an expression that cannot be read or never comes."""
    if expression.strip().startswith("@"):
        meant = _ALIASES.get(expression.strip().lower())
        raise ValueError(f"must have five fields{f', here {meant}' if meant else ''}; names with @ are not known")
    if len(expression.split()) != _FIELDS:
        raise ValueError('must have five fields such as "0 3 * * *": minute, hour, day, month, weekday')
    try:
        next(CronSim(expression, datetime(2024, 1, 1)))  # noqa: DTZ001 - a wall
    except CronSimError as error:
        raise ValueError(f"cannot be read: {str(error).lower()}") from None
    except StopIteration:
        raise ValueError("never comes: no day is like this") from None


def next_tick_ns(expression: str, zone: ZoneInfo, after_ns: int) -> int:
    """The first tick behind an instant."""
    after_s = after_ns // NS
    next_s = _next_set_time_s if _is_for_set_times(expression) else _next_shown_s
    return next_s(expression, zone, after_s) * NS


def next_ticks_ns(expression: str, zone: ZoneInfo, after_ns: int, count: int) -> tuple[int, ...]:
    def ticks() -> Iterator[int]:
        at_ns = after_ns
        while True:
            at_ns = next_tick_ns(expression, zone, at_ns)
            yield at_ns

    return tuple(islice(ticks(), count))


def last_tick_ns(expression: str, zone: ZoneInfo, after_ns: int, until_ns: int) -> int | None:
    """The last tick in (after, until]; however many were missed, this one stands for all of them."""
    for lookback_ns in (*_LOOKBACKS_NS, until_ns - after_ns):
        start_ns = max(after_ns, until_ns - lookback_ns)
        last_ns, tick_ns = None, next_tick_ns(expression, zone, start_ns)
        while tick_ns <= until_ns:
            last_ns, tick_ns = tick_ns, next_tick_ns(expression, zone, tick_ns)
        if last_ns is not None or start_ns == after_ns:
            return last_ns
    return None  # until lies before after


def jitter_ns(name: str, tick_ns: int, at_most_s: float) -> int:
    """The delay of one tick, from 0 to the most: drawn from its name and time, so the same after a restart."""
    drawn = hashlib.sha256(f"{name}\0{tick_ns}".encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(drawn) % (int(at_most_s * NS) + 1)


def due_tick_ns(
    expression: str, zone: ZoneInfo, taken_ns: int, now_ns: int, *, name: str, jitter_s: float
) -> int | None:
    """The last tick behind the one that was taken last whose delay is over; None: nothing is due."""
    tick_ns = last_tick_ns(expression, zone, taken_ns, now_ns)
    while tick_ns is not None and tick_ns + jitter_ns(name, tick_ns, jitter_s) > now_ns:
        tick_ns = last_tick_ns(expression, zone, taken_ns, tick_ns - 1)
    return tick_ns


def _is_for_set_times(expression: str) -> bool:
    minute, hour = expression.split()[:2]
    return not minute.startswith("*") and not hour.startswith("*")


def _next_set_time_s(expression: str, zone: ZoneInfo, after_s: int) -> int:
    for wall in CronSim(expression, wall_of(zone, after_s)):
        at_s = instant_of(zone, wall)
        if at_s > after_s:  # not so for a doubled time at its second showing
            return at_s
    raise OverflowError(f"{expression} has no tick behind {after_s}")


def _next_shown_s(expression: str, zone: ZoneInfo, after_s: int) -> int:
    """From one move of the clock to the next, wall and instant go on together."""
    wall, wall_s, moved_s = wall_of(zone, after_s), after_s, after_s
    while True:
        found_s = wall_s + int((next(CronSim(expression, wall)) - wall).total_seconds())
        move_s = first_move_s(zone, moved_s, found_s)
        if move_s is None:
            return found_s
        wall, wall_s, moved_s = wall_of(zone, move_s) - timedelta(seconds=1), move_s - 1, move_s
