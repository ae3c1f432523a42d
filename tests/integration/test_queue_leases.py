"""Jobs whose worker is gone without a word (P2, fault 1), over a real queue."""

from collections.abc import AsyncIterator

import pytest
from arq.connections import ArqRedis
from arq.constants import in_progress_key_prefix

from scheduler.queue.client import PageQueue, open_pool
from scheduler.queue.embedded import EmbeddedValkey
from scheduler.queue.leases import Lease, LeaseNote, dead_workers, forget_worker, hold, ownerless_checks
from scheduler.queue.names import QueueNames

pytestmark = pytest.mark.redis
NAMES = QueueNames("base")


@pytest.fixture
async def queued() -> AsyncIterator[ArqRedis]:
    """Three checks wait."""
    server = EmbeddedValkey()
    try:
        address = server.start()
        async with open_pool(address) as pool:
            queue = PageQueue(pool, NAMES, address)
            for number in range(3):
                await queue.enqueue_check(_job(number), b"payload")
            yield pool
    finally:
        server.stop()


def _job(number: int) -> str:
    return NAMES.check_job(1, number, 1)


async def _begin(pool: ArqRedis, number: int) -> None:
    """What arq does before it calls anything of ours."""
    await pool.psetex(in_progress_key_prefix + _job(number), 7 * 24 * 3600 * 1000, b"1")


async def test_a_job_that_nobody_says_to_have_is_found(queued: ArqRedis) -> None:
    """A process may die between arq's mark and its own word: nobody else would begin that job for a week."""
    await queued.sadd(NAMES.workers, "a")  # type: ignore[misc]
    await _begin(queued, 0)
    await _begin(queued, 1)
    await hold(queued, NAMES, "a", _job(0))
    assert await ownerless_checks(queued, NAMES) == {_job(1)}


async def test_jobs_that_wait_or_are_over_belong_to_nobody_and_are_left_alone(queued: ArqRedis) -> None:
    assert await ownerless_checks(queued, NAMES) == set()
    await _begin(queued, 2)
    await queued.zrem(NAMES.checks, _job(2))
    assert await ownerless_checks(queued, NAMES) == set()
    await queued.delete(NAMES.checks)
    assert await ownerless_checks(queued, NAMES) == set()


async def test_a_worker_without_a_lease_is_dead_and_its_jobs_are_free(queued: ArqRedis) -> None:
    def note() -> LeaseNote:
        return LeaseNote("worker", "a", "host", 1, True, "", 0)

    lease = Lease(queued, NAMES, note)
    await lease.say()
    await _begin(queued, 0)
    await hold(queued, NAMES, "a", _job(0))
    assert await dead_workers(queued, NAMES) == []
    await lease.end()
    (dead,) = await dead_workers(queued, NAMES)
    assert dead.held == (_job(0),)
    await forget_worker(queued, NAMES, dead)
    assert not await queued.exists(in_progress_key_prefix + _job(0))
    assert await dead_workers(queued, NAMES) == []


async def test_a_live_worker_that_begins_anew_gives_back_what_it_had(queued: ArqRedis) -> None:
    """P2: its queue went away while it had jobs, which it could not give back then; no reaper frees those of the
    living, and the marks of a server that keeps what it has are good for a week."""
    from app.roles.worker_role import _let_all_go

    for number in (0, 1):
        await _begin(queued, number)
        await hold(queued, NAMES, "a", _job(number))
    await _begin(queued, 2)
    await hold(queued, NAMES, "b", _job(2))
    await _let_all_go(queued, NAMES, "a")
    marks = [await queued.exists(in_progress_key_prefix + _job(number)) for number in range(3)]
    assert marks == [0, 0, 1]


async def test_jobs_are_taken_in_the_order_in_which_they_came(queued: ArqRedis) -> None:
    """Whatever clocks say: the queue's own is asked."""
    scores = [score for _, score in await queued.zrange(NAMES.checks, 0, -1, withscores=True)]
    assert scores == sorted(scores)
    seconds, _ = await queued.time()
    assert all(abs(score / 100 - seconds) < 60 for score in scores)
