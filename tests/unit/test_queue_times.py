"""Times of jobs and clocks of roles: nothing of ours is compared with the clock of another process (P29, fault 16)."""

import time
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError

from app.roles.queue_fitness import clock_worries, worries
from scheduler.queue.address import QueueAddress
from scheduler.queue.client import unreachable
from scheduler.queue.probe import QueueFacts
from scheduler.queue.scores import ServerTime, age_s, score_as_date, score_of

FIT = QueueFacts("valkey 9.0.1", "noeviction", True, 0.0)
TIMES = st.tuples(st.integers(0, 4_300_000_000), st.integers(0, 999_999))


@given(TIMES, TIMES)
def test_scores_keep_the_order_of_their_times(one: ServerTime, other: ServerTime) -> None:
    first, second = sorted([one, other])
    assert 0 < score_of(first) <= score_of(second)


@given(TIMES, st.floats(0, 1e6))
def test_an_age_is_told_from_a_score_to_a_hundredth(now: ServerTime, waited_s: float) -> None:
    queued_us = now[0] * 1_000_000 + now[1]
    later_us = queued_us + int(waited_s * 1e6)
    age = age_s(score_of(now), (later_us // 1_000_000, later_us % 1_000_000))
    assert abs(age - waited_s) <= 0.011 or now[0] == 0


def test_every_clock_of_this_century_finds_a_job_due() -> None:
    """A worker that is decades behind sees it too."""
    score = score_of((int(time.time()), 0))
    assert score < time.time() * 1000 - timedelta(days=40 * 365).total_seconds() * 1000
    assert int(score_as_date(score).timestamp() * 1000) == score


def test_a_score_of_another_kind_has_no_age() -> None:
    assert age_s(1_796_000_000_000, (1_796_000_100, 0)) == 0


def test_what_is_wrong_with_a_queue_is_said_in_sentences() -> None:
    assert worries(FIT) == clock_worries(FIT) == []
    assert worries(replace(FIT, memory_policy="")) == [], "a server that does not say is not suspected"
    forgets = replace(FIT, memory_policy="allkeys-lru", clock_ahead_s=-3600.4)
    (policy, clock) = worries(forgets)
    assert "allkeys-lru" in policy and "noeviction" in policy
    assert clock == "the queue's clock is 3600 s behind this machine's: set both by NTP"
    assert clock_worries(forgets) == [clock]


def test_a_queue_without_memory_is_not_said_to_be_silent() -> None:
    """Fault 11."""
    address = QueueAddress(socket="/run/queue.sock")
    full = unreachable(address, OutOfMemoryError("command not allowed when used memory > 'maxmemory'"))
    assert "memory is full" in full.message and "maxmemory" in full.hint
    assert "does not answer" in unreachable(address, RedisConnectionError("refused")).message
