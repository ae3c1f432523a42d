"""Leases: how the processes of a service show each other that they live, and how the jobs of a dead one are freed.

A lease is a key that its holder sets again several times before it expires. arq itself gives a dead worker's job back
only after the longest time that a job may take (and ten seconds more); here the reaper frees it as soon as the lease
is gone. Durations are the queue server's own: no clock of ours is compared with another.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec
from arq.connections import ArqRedis
from arq.constants import in_progress_key_prefix
from msgspec import Struct
from redis.exceptions import RedisError

from domain.decoding import UNDECODABLE
from scheduler.queue.names import QueueNames

LEASE_MS = 2000
SAY_EVERY_S = 0.4
FORGET_HELD_AFTER_S = 24 * 3600  # of a worker that nobody has reaped


class LeaseNote(msgspec.Struct, frozen=True):
    """What a lease says of its holder."""

    role: str
    holder: str
    host: str
    pid: int
    is_active: bool  # False: it stands by
    doing: str  # in a few words; "" = nothing to say
    since_ns: int


_notes = msgspec.json.Decoder(LeaseNote)


def holder_id() -> str:
    """A name for this process that no other one has: two containers may have one host name, and one process id."""
    return f"{socket.gethostname()[:32]}-{os.getpid()}-{os.urandom(4).hex()}"


class Lease:
    """Says again and again that a process lives. `note` is asked each time: what it says may change."""

    def __init__(self, pool: ArqRedis, names: QueueNames, note: Callable[[], LeaseNote]) -> None:
        self._pool = pool
        self._names = names
        self._note = note
        self.is_heard = False  # whether the queue has taken the last one

    async def run(self) -> None:
        """Until cancelled; a queue that is away is asked again."""
        while True:
            try:
                await self.say()
                self.is_heard = True
            except (RedisError, OSError):
                self.is_heard = False
            await asyncio.sleep(SAY_EVERY_S)

    async def end(self) -> None:
        """The holder leaves in order: nobody has to wait for the lease to expire."""
        note = self._note()
        try:
            await self._pool.delete(self._names.lease(note.role, note.holder))
        except (RedisError, OSError):
            return

    async def say(self) -> None:
        """Say it now. A worker does before it takes its first job: one that died unheard would be nobody's dead.
        Raises RedisError, OSError."""
        note = self._note()
        key = self._names.lease(note.role, note.holder)
        async with self._pool.pipeline(transaction=False) as pipe:
            pipe.set(key, msgspec.json.encode(note), px=LEASE_MS)
            if note.role == "worker":
                pipe.sadd(self._names.workers, note.holder)
                pipe.expire(self._names.held(note.holder), FORGET_HELD_AFTER_S)
            await pipe.execute()


async def live_leases(pool: ArqRedis, names: QueueNames) -> Sequence[LeaseNote]:
    """Every lease of the base, by role and holder."""
    keys = sorted([key async for key in pool.scan_iter(match=f"{names.leases}*", count=1000)])
    values = await pool.mget(keys) if keys else []
    return read_notes(values)


def read_notes(values: Iterable[bytes | None]) -> list[LeaseNote]:
    """Those that are leases of ours and have not just run out (None)."""
    found: list[LeaseNote] = []
    for value in values:
        if value is not None:
            with suppress(*UNDECODABLE):
                found.append(_notes.decode(value))
    return found


async def hold(pool: ArqRedis, names: QueueNames, worker: str, job_id: str) -> None:
    """A worker has taken a job."""
    await cast("Awaitable[int]", pool.sadd(names.held(worker), job_id))


async def let_go(pool: ArqRedis, names: QueueNames, worker: str, job_id: str) -> None:
    """A worker has finished a job."""
    await cast("Awaitable[int]", pool.srem(names.held(worker), job_id))


async def stand_at(pool: ArqRedis, names: QueueNames, worker: str, job_id: str) -> None:
    """A worker begins to read the files of a job; "" when it has done so."""
    if job_id:
        await pool.set(names.at(worker), job_id.encode(), ex=FORGET_HELD_AFTER_S)
    else:
        await pool.delete(names.at(worker))


class DeadWorker(Struct, frozen=True):
    """A worker whose lease has expired: the jobs that it held, and the one among them whose files it was reading."""

    worker: str
    held: tuple[str, ...]
    at: str  # "" = none: whatever ended the worker, no file has


async def dead_workers(pool: ArqRedis, names: QueueNames) -> Sequence[DeadWorker]:
    """The workers that have taken jobs and have no lease any more. They are named until `forget_worker`."""
    workers = sorted(text(item) for item in await cast("Awaitable[Any]", pool.smembers(names.workers)))
    dead: list[DeadWorker] = []
    for worker in workers:
        if await pool.exists(names.lease("worker", worker)):
            continue
        held = sorted(text(item) for item in await cast("Awaitable[Any]", pool.smembers(names.held(worker))))
        at = await pool.get(names.at(worker))
        dead.append(DeadWorker(worker, tuple(held), text(at) if at else ""))
    return dead


async def forget_worker(pool: ArqRedis, names: QueueNames, dead: DeadWorker) -> None:
    """Free a dead worker's jobs, for any other to take, and forget it."""
    await free_jobs(pool, dead.held)
    await pool.delete(names.held(dead.worker), names.at(dead.worker))
    await cast("Awaitable[int]", pool.srem(names.workers, dead.worker))


async def free_jobs(pool: ArqRedis, job_ids: Sequence[str]) -> None:
    """Take away the marks by which arq keeps others from jobs that a dead process had begun."""
    if job_ids:
        await pool.delete(*(in_progress_key_prefix + job_id for job_id in job_ids))


async def ownerless_checks(pool: ArqRedis, names: QueueNames) -> set[str]:
    """Checks that are marked as begun and that no worker says it has: what a process leaves that dies in the instant
    between arq's mark and its own word, or after a queue that has lost the word. A live worker may be in that instant
    too, so only one that is met here twice, some time apart, is to be freed."""
    queued = [text(item) for item in await pool.zrange(names.checks, 0, -1)]
    if not queued:
        return set()
    workers = sorted(text(item) for item in await cast("Awaitable[Any]", pool.smembers(names.workers)))
    async with pool.pipeline(transaction=True) as pipe:
        pipe.mget(*(in_progress_key_prefix + job_id for job_id in queued))
        for worker in workers:
            pipe.smembers(names.held(worker))
        marks, *held_by = await pipe.execute()
    held = {text(item) for items in held_by for item in items}
    return {job_id for job_id, mark in zip(queued, marks, strict=True) if mark is not None} - held


async def free_writes(pool: ArqRedis, names: QueueNames) -> None:
    """The same for every write: the one writer that may take them has the lock, and has begun none yet."""
    queued = [text(item) for item in await pool.zrange(names.writes, 0, -1)]
    await free_jobs(pool, queued)


def text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
