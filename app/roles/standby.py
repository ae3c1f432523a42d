"""A role that stands by until it gets the lock of its work, and shows meanwhile that it lives."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from arq.connections import ArqRedis

from app.roles.runtime import TRY_AGAIN_S, Runtime
from domain.errors import KnowledgeError, LockedError
from scheduler.queue.leases import Lease
from scheduler.queue.names import QueueNames
from store.files import lstat_or_none
from store.lock import WriteLock, holder_of
from store.state import SqliteStateStore

STANDBY_LOOKS_EVERY_S = 0.25
LOCK_LOOKED_AT_EVERY_S = 0.5


@asynccontextmanager
async def locked(runtime: Runtime, lock: WriteLock, pool: ArqRedis) -> AsyncIterator[bool]:
    """A lock, however long another has it; False where the role is told to end before.

    Raises LockedError when the lock was lost: its file is not what was locked any more.
    """
    if not await _acquired(runtime, lock, pool):
        yield False
        return
    runtime.status.wait_for("")
    runtime.status.stands_by = False
    lost = asyncio.Event()
    watching = asyncio.create_task(_end_when_lost(runtime, lock, lost))
    try:
        yield True
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        lock.release()
    if lost.is_set():
        raise LockedError(f"{lock.path} was removed or replaced", hint="leave the files of the index's folder alone")


def known_base_id(runtime: Runtime) -> str:
    """The id by which the queue knows the base; "" while it is not made. Raises KnowledgeError where it is being
    made, or cannot be read."""
    if lstat_or_none(runtime.layout.state) is None:
        return ""
    state = SqliteStateStore(runtime.layout.state, read_only=True)
    try:
        return state.base_id()
    finally:
        state.close()


async def _acquired(runtime: Runtime, lock: WriteLock, pool: ArqRedis) -> bool:
    if runtime.stopping.is_set():
        return False
    if _takes(runtime, lock):
        return True
    leased = asyncio.create_task(_say_that_it_lives(runtime, pool))  # the queue may be slow: the lock waits for nothing
    is_ours = False
    try:
        while not is_ours and not runtime.stopping.is_set():
            await runtime.pause(STANDBY_LOOKS_EVERY_S)
            is_ours = not runtime.stopping.is_set() and _takes(runtime, lock)
        return is_ours
    finally:
        leased.cancel()
        (lease,) = await asyncio.gather(leased, return_exceptions=True)
        if isinstance(lease, Lease) and not is_ours:
            await lease.end()


def _takes(runtime: Runtime, lock: WriteLock) -> bool:
    try:
        lock.acquire()
    except LockedError:
        holder = holder_of(lock.path) or "another process"
        if runtime.status.waits_for != holder:
            runtime.log.info("stands_by", holder=holder)
        runtime.status.wait_for(holder)
        runtime.status.stands_by = True
        return False
    return True


async def _say_that_it_lives(runtime: Runtime, pool: ArqRedis) -> Lease | None:
    """Until cancelled; the lease then, where there was one."""
    lease: Lease | None = None
    try:
        while lease is None:
            try:
                base_id = known_base_id(runtime)
                lease = Lease(pool, QueueNames(base_id), runtime.lease_note) if base_id else None
            except KnowledgeError:  # it is being made, or cannot be read: the one at work says so
                pass
            if lease is None:
                await asyncio.sleep(TRY_AGAIN_S)
        await lease.run()
    except asyncio.CancelledError:
        if lease is None:
            raise
    return lease


async def _end_when_lost(runtime: Runtime, lock: WriteLock, lost: asyncio.Event) -> None:
    """End the role in order when its lock keeps nobody out any more: another process may have taken its place."""
    while lock.is_at_its_path():  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(LOCK_LOOKED_AT_EVERY_S)
    runtime.log.error("lock_lost", path=str(lock.path))
    lost.set()
    runtime.stopping.set()
