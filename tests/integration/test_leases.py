"""Leases, held jobs and notes over a real queue: who lives, what the dead held, what is in the store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from arq.connections import ArqRedis

from scheduler.queue import leases
from scheduler.queue.address import QueueAddress
from scheduler.queue.client import PageQueue, lazy_pool
from scheduler.queue.done_notes import KEPT_NOTES, DoneNote, FailedFile, say_done, take_done
from scheduler.queue.embedded import EmbeddedValkey
from scheduler.queue.leases import DeadWorker, Lease, LeaseNote
from scheduler.queue.names import QueueNames
from scheduler.queue.troubles import Trouble, say_trouble, take_troubles
from tests.support.waiting import eventually_in_loop

pytestmark = pytest.mark.redis

NAMES = QueueNames("base")
OTHERS = QueueNames("other")
ADDRESS = QueueAddress(socket="where the pool is")


@pytest.fixture
async def pool() -> AsyncIterator[ArqRedis]:
    server = EmbeddedValkey()
    try:
        async with lazy_pool(server.start()) as opened:
            yield opened
    finally:
        server.stop()


def note(holder: str, role: str = "worker", doing: str = "") -> LeaseNote:
    return LeaseNote(role, holder, "host", 4711, True, doing, 5)


@asynccontextmanager
async def living(pool: ArqRedis, said: LeaseNote) -> AsyncIterator[Lease]:
    lease = Lease(pool, NAMES, lambda: said)
    task = asyncio.create_task(lease.run())
    await eventually_in_loop(lambda: _is_alive(pool, said))
    try:
        yield lease
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _is_alive(pool: ArqRedis, said: LeaseNote) -> bool:
    return said in await leases.live_leases(pool, NAMES)


async def test_a_lease_says_who_lives_and_what_it_does(pool: ArqRedis) -> None:
    scheduler, worker = note("a", "scheduler", "run 4"), note("b")
    async with living(pool, scheduler), living(pool, worker) as lease:
        assert list(await leases.live_leases(pool, NAMES)) == [scheduler, worker]
        assert list(await leases.live_leases(pool, OTHERS)) == []
        assert lease.is_heard
        await lease.end()
        assert list(await leases.live_leases(pool, NAMES)) == [scheduler]


async def test_what_is_no_lease_of_ours_is_passed_over(pool: ArqRedis) -> None:
    await pool.set(NAMES.lease("worker", "x"), b"\xff not json")
    await pool.set(NAMES.lease("worker", "y"), b'{"role": 5}')
    assert list(await leases.live_leases(pool, NAMES)) == []


async def test_a_worker_without_a_lease_is_dead_and_its_jobs_are_freed(
    pool: ArqRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 1: nobody waits for the longest time that a job may take."""
    monkeypatch.setattr(leases, "LEASE_MS", 300)
    monkeypatch.setattr(leases, "SAY_EVERY_S", 0.05)
    alive, dying = note("alive"), note("dying")
    async with living(pool, alive):
        async with living(pool, dying):
            for job_id in ("j1", "j2"):
                await leases.hold(pool, NAMES, "dying", job_id)
                await pool.set(f"arq:in-progress:{job_id}", b"1")
            await leases.hold(pool, NAMES, "alive", "j3")
            await pool.set("arq:in-progress:j3", b"1")
            await leases.stand_at(pool, NAMES, "dying", "j2")
            assert list(await leases.dead_workers(pool, NAMES)) == []

        async def is_found_dead() -> bool:
            return list(await leases.dead_workers(pool, NAMES)) == [DeadWorker("dying", ("j1", "j2"), "j2")]

        await eventually_in_loop(is_found_dead)
        await leases.forget_worker(pool, NAMES, DeadWorker("dying", ("j1", "j2"), "j2"))
        assert [await pool.exists(f"arq:in-progress:{job_id}") for job_id in ("j1", "j2", "j3")] == [0, 0, 1]
        assert list(await leases.dead_workers(pool, NAMES)) == []


async def test_what_a_worker_has_finished_is_not_freed(pool: ArqRedis) -> None:
    async with living(pool, note("w")) as lease:
        await leases.hold(pool, NAMES, "w", "j1")
        await leases.let_go(pool, NAMES, "w", "j1")
        await leases.stand_at(pool, NAMES, "w", "j1")
        await leases.stand_at(pool, NAMES, "w", "")
        await lease.end()
    await pool.delete(NAMES.lease("worker", "w"))
    assert list(await leases.dead_workers(pool, NAMES)) == [DeadWorker("w", (), "")]


async def test_a_new_writer_frees_what_the_one_before_had_begun(pool: ArqRedis) -> None:
    await pool.zadd(NAMES.writes, {"w1": 1, "w2": 2})
    for job_id in ("w1", "w2", "c1"):
        await pool.set(f"arq:in-progress:{job_id}", b"1")
    await leases.free_writes(pool, NAMES)
    assert [await pool.exists(f"arq:in-progress:{job_id}") for job_id in ("w1", "w2", "c1")] == [0, 0, 1]


def done(page: int) -> DoneNote:
    failures = (FailedFile("docs/a", "unreadable", "no"),)
    return DoneNote(3, page, "check", {"added": 2}, {"empty": (1, "docs/e")}, failures, 2, 5, 100, 1, 2, 0)


async def test_notes_come_in_their_order_and_once(pool: ArqRedis) -> None:
    await say_done(pool, NAMES, [done(1), done(2)])
    await say_done(pool, NAMES, [done(3)])
    await pool.rpush(NAMES.done, b"\xff", b"\x90")  # type: ignore[misc]
    assert list(await take_done(pool, NAMES, wait_s=0)) == [done(1), done(2), done(3)]
    assert list(await take_done(pool, NAMES, wait_s=0)) == []
    assert list(await take_done(pool, OTHERS, wait_s=0)) == []


async def test_notes_that_nobody_takes_do_not_pile_up(pool: ArqRedis) -> None:
    for _ in range(3):
        await say_done(pool, NAMES, [done(number) for number in range(KEPT_NOTES // 2)])
    assert len(await pool.lrange(NAMES.done, 0, -1)) == KEPT_NOTES  # type: ignore[misc]


async def test_troubles_are_taken_once(pool: ArqRedis) -> None:
    first, second = Trouble("j", "disk_full", "no room", "make some"), Trouble("", "unexpected", "m", "")
    await say_trouble(pool, NAMES, first)
    await say_trouble(pool, NAMES, second)
    await pool.rpush(NAMES.troubles, b"junk")  # type: ignore[misc]
    assert await take_troubles(pool, NAMES) == [first, second]
    assert await take_troubles(pool, NAMES) == []


async def test_dropping_jobs_leaves_leases_and_what_is_of_another_base(pool: ArqRedis) -> None:
    queue = PageQueue(pool, NAMES, ADDRESS)
    async with living(pool, note("w")):
        await leases.hold(pool, NAMES, "w", "j1")
        await queue.enqueue_check(NAMES.check_job(1, 1, 1), b"x")
        await queue.enqueue_write(NAMES.write_job(1, 2, 1), b"x")
        await PageQueue(pool, OTHERS, ADDRESS).enqueue_check(OTHERS.check_job(1, 1, 1), b"x")
        await say_done(pool, NAMES, [done(1)])
        assert await queue.drop_jobs()
        assert await queue.waiting() == 0
        left = sorted(leases.text(key) for key in await pool.keys("*"))
    assert left == sorted(
        [
            f"arq:job:{OTHERS.check_job(1, 1, 1)}",
            OTHERS.checks,
            NAMES.lease("worker", "w"),
            NAMES.workers,
            NAMES.held("w"),
        ]
    )
