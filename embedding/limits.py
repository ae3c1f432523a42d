"""How much is asked of a server at a time, and how much is taken from it."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_ANSWER_BYTES = 64 * 1024 * 1024
ANSWER_FRAME_BYTES = 64 * 1024  # all that is not vectors
BYTES_PER_NUMBER = 32  # of JSON; a double needs 24 and its comma
ASSUMED_DIMENSION = 16 * 1024  # where none is known yet: longer than any model's
LONGEST_RETRY_AFTER_S = 86_400.0
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)


def answer_cap_bytes(count: int, dimension: int | None) -> int:
    """How long the answer to `count` texts may be."""
    numbers = count * (dimension or ASSUMED_DIMENSION)
    return min(MAX_ANSWER_BYTES, numbers * BYTES_PER_NUMBER + ANSWER_FRAME_BYTES)


def share_of_concurrency(concurrency: int, share: float) -> int:
    """A process's part of the requests at a time: rounded down, that all together keep the limit, but never none."""
    return max(1, int(concurrency * share + 1e-9))


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """Seconds from `now`, of both forms of RFC 9110, section 10.2.3; None where there is no sense in it."""
    if header is None:
        return None
    text = header.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_RETRY_AFTER_S)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return min(max(0.0, (at - now).total_seconds()), LONGEST_RETRY_AFTER_S)


class Pace:
    """Lets requests begin at even distances: so many a minute, and no burst after a pause."""

    def __init__(
        self,
        requests_per_minute: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """0: no limit."""
        self._interval_s = 60.0 / requests_per_minute if requests_per_minute > 0 else 0.0
        self._clock = clock
        self._sleep = sleep
        self._next_s = float("-inf")

    async def wait_turn(self) -> None:
        """Returns when the next request may begin. A turn that is not used is lost, not saved up."""
        if not self._interval_s:
            return
        now_s = self._clock()
        at_s = max(now_s, self._next_s)
        self._next_s = at_s + self._interval_s
        if at_s > now_s:
            await self._sleep(at_s - now_s)
