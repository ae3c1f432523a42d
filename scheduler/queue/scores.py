"""When a job was queued, as arq keeps it: the score of a sorted set that arq takes for milliseconds since 1970, and
compares with the clock of the worker that looks.

A worker whose clock is behind would not see jobs that seem to lie ahead. So the score is the time of the queue server
in hundredths of a second, which as milliseconds lies in the 1970s: in the past for every clock there is, in the order
in which jobs came, and an age can still be told from it. Never 0, which arq takes for a job that is gone.
"""

from datetime import UTC, datetime
from typing import Any, cast

from arq.connections import ArqRedis

SCORES_A_SECOND = 100

ServerTime = tuple[int, int]
"""Seconds since 1970 by the queue server's clock, and microseconds."""


async def score_now(pool: ArqRedis) -> int:
    """Raises RedisError, OSError."""
    return score_of(cast("ServerTime", await cast("Any", pool.time())))


def score_of(now: ServerTime) -> int:
    seconds, microseconds = now
    return max(1, seconds * SCORES_A_SECOND + microseconds * SCORES_A_SECOND // 1_000_000)


def score_as_date(score: int) -> datetime:
    """What arq makes the score of (`_defer_until`)."""
    return datetime.fromtimestamp(score / 1000, UTC)


def age_s(score: float, now: ServerTime) -> float:
    """How long ago a job was queued; 0 for a score that is not of this kind."""
    return max(0.0, score_of(now) - score) / SCORES_A_SECOND
