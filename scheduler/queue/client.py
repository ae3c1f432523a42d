"""The queue as the scheduler and the writer use it: a pool with our serializers, and a few verbs over arq.

Errors of redis do not leave this module: QueueError says what is unreachable, without the password.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import copy
from functools import partial
from typing import Self, TypeVar

from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.constants import in_progress_key_prefix, job_key_prefix, retry_key_prefix
from redis.exceptions import AuthenticationError, NoPermissionError, OutOfMemoryError, RedisError, ResponseError

from domain.errors import QueueError
from scheduler.queue.address import QueueAddress
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import CHECK_PAGE, WRITE_PAGE, deserialize_job, serialize_job
from scheduler.queue.scores import score_as_date, score_now

PARKED_KEPT = 100
CONNECT_TIMEOUT_S = 5
CONNECT_RETRIES = 3
COMMAND_RETRIES = 5
HOLD_UP_EXPIRES_S = 10
TAKEN_EXPIRES_MS = 1000
UNWRITTEN = "MISCONF"  # how a server begins its refusal while what it keeps on a disk cannot be written
JOB_EXPIRES_MS = 7 * 24 * 3600 * 1000
Result = TypeVar("Result")

# what arq says is for a log that somebody has set up, never for the terminal of a user; nor is what redis says, by way
# of asyncio, of a pipeline that the end of a run has cut off: its connection was closed with the pool
logging.getLogger("arq").addHandler(logging.NullHandler())
logging.getLogger("asyncio").addFilter(lambda record: not record.getMessage().startswith("Unclosed Pipeline client"))


def redis_settings(address: QueueAddress) -> RedisSettings:
    """arq's settings for an address. Without retries a restart of the server ends an arq worker."""
    from redis.asyncio.retry import Retry
    from redis.backoff import ExponentialBackoff
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.exceptions import TimeoutError as RedisTimeoutError

    return RedisSettings(
        host=address.host or "localhost",
        port=address.port,
        unix_socket_path=address.socket or None,
        database=address.database,
        username=address.username,
        password=address.password,
        ssl=address.tls,
        conn_timeout=CONNECT_TIMEOUT_S,
        conn_retries=CONNECT_RETRIES,
        conn_retry_delay=1,
        retry_on_timeout=True,
        retry_on_error=[RedisConnectionError, RedisTimeoutError],
        retry=Retry(ExponentialBackoff(cap=1.0, base=0.05), COMMAND_RETRIES),
    )


@asynccontextmanager
async def open_pool(address: QueueAddress) -> AsyncIterator[ArqRedis]:
    """A pool with our serializers; QueueError where nobody answers."""
    try:
        pool = await create_pool(
            redis_settings(address),
            job_serializer=serialize_job,
            job_deserializer=deserialize_job,
            expires_extra_ms=JOB_EXPIRES_MS,
        )
    except (RedisError, OSError, TimeoutError) as error:
        raise unreachable(address, error) from error
    try:
        yield pool
    finally:
        await pool.aclose()


@asynccontextmanager
async def lazy_pool(address: QueueAddress) -> AsyncIterator[ArqRedis]:
    """A pool with our serializers that connects when it is first used: a role comes up before its queue does."""
    settings = redis_settings(address)
    pool = ArqRedis(
        host=str(settings.host),
        port=settings.port,
        unix_socket_path=settings.unix_socket_path,
        db=settings.database,
        username=settings.username,
        password=settings.password,
        ssl=settings.ssl,
        socket_connect_timeout=settings.conn_timeout,
        retry=settings.retry,
        retry_on_timeout=settings.retry_on_timeout,
        retry_on_error=settings.retry_on_error,
        encoding="utf8",
    )
    pool.job_serializer = serialize_job
    pool.job_deserializer = deserialize_job
    pool.expires_extra_ms = JOB_EXPIRES_MS
    try:
        yield pool
    finally:
        await pool.aclose()


def unreachable(address: QueueAddress, error: BaseException | None = None) -> QueueError:
    """What to say of a queue that cannot be used; a refused password is not silence."""
    if _is_refusal(error):
        return QueueError(
            f"the queue at {address} refuses the user or the password",
            hint="write them into queue.url as redis://USER:PASSWORD@HOST:PORT/0, percent-encoded",
        )
    if isinstance(error, OutOfMemoryError):
        return QueueError(
            f"the queue at {address} takes nothing more: its memory is full",
            hint="raise its maxmemory, or take away what else it holds; what is stored in the index is safe",
        )
    if isinstance(error, ResponseError) and UNWRITTEN in str(error):
        return QueueError(
            f"the queue at {address} takes nothing more: it cannot write its file",
            hint="make room on the disk of that Redis or Valkey, or see its log; what is stored in the index is safe",
        )
    return QueueError(
        f"the queue at {address} does not answer",
        hint="start that Redis or Valkey, or leave queue.url empty to use the one that comes with this program",
    )


def _is_refusal(error: BaseException | None) -> bool:
    """Whether the server refused us: while it connects, redis wraps that in a plain ConnectionError."""
    while error is not None and not isinstance(error, AuthenticationError | NoPermissionError):
        error = error.__cause__
    return error is not None


@contextmanager
def queue_errors(address: QueueAddress) -> Iterator[None]:
    """Errors of redis as ours, around what uses a pool by itself."""
    try:
        yield
    except RedisError as error:
        raise unreachable(address, error) from error


Patience = Callable[[QueueError], Awaitable[None]]
"""Waits before a command that found no queue is tried again; raises where it is not to be."""


async def no_patience(error: QueueError) -> None:
    """A run on a command line ends where its queue does not answer."""
    raise error


class PageQueue:
    """Enqueues pages of one base."""

    def __init__(
        self, pool: ArqRedis, names: QueueNames, address: QueueAddress, patience: Patience = no_patience
    ) -> None:
        self._pool = pool
        self._names = names
        self._address = address
        self._patience = patience

    def patiently(self, patience: Patience) -> Self:
        """The same queue for somebody else, who waits for it in a way of his own."""
        other = copy(self)
        other._patience = patience
        return other

    async def enqueue_check(self, job_id: str, payload: bytes) -> None:
        await self._enqueue(CHECK_PAGE, self._names.checks, job_id, payload)

    async def enqueue_write(self, job_id: str, payload: bytes) -> None:
        await self._enqueue(WRITE_PAGE, self._names.writes, job_id, payload)

    async def _enqueue(self, function: str, queue: str, job_id: str, payload: bytes) -> None:
        async def enqueue() -> None:
            await self._pool.enqueue_job(
                function,
                payload,
                _job_id=job_id,
                _queue_name=queue,
                _defer_until=score_as_date(await score_now(self._pool)),
                _expires=JOB_EXPIRES_MS / 1000,
            )

        await self._guard(enqueue)

    async def drop_everything(self) -> int:
        """Drop what older runs left in the base's queues; says how many keys it was."""
        return await self._guard(lambda: drop_base_keys(self._pool, self._names))

    async def drop_jobs(self) -> int:
        """Drop every job of the base and its marks, and what was said of pages; leases and what workers hold stay."""
        return await self._guard(lambda: _drop_jobs(self._pool, self._names))

    async def withdraw_checks(self, job_ids: Sequence[str]) -> None:
        """Take checks out of the queue, also those that a worker had begun when it died."""
        if not job_ids:
            return
        prefixes = (job_key_prefix, in_progress_key_prefix, retry_key_prefix)
        await self._guard(lambda: self._pool.zrem(self._names.checks, *job_ids))
        keys = [prefix + job_id for prefix in prefixes for job_id in job_ids]
        await self._guard(lambda: self._pool.delete(*keys))

    async def say_hold_up(self, cause: str) -> None:
        """Say why work waits, for as long as it is said again; "" takes it back."""
        if cause:
            await self._guard(lambda: self._pool.set(self._names.hold_up, cause.encode(), ex=HOLD_UP_EXPIRES_S))
        else:
            await self._guard(lambda: self._pool.delete(self._names.hold_up))

    async def hold_up(self) -> str:
        """Why a worker waits for something outside of it; "" when none does."""
        said = await self._guard(lambda: self._pool.get(self._names.hold_up))
        return said.decode("utf-8", "replace") if said else ""

    async def require_room(self) -> None:
        """Find out whether the queue takes anything: one that is full still answers whoever only asks."""
        await self._guard(lambda: self._pool.set(self._names.taken, b"1", px=TAKEN_EXPIRES_MS))

    async def say_verified(self) -> None:
        """Tell the workers of this run that the embeddings server answers as it did (workers.embedding)."""
        await self._guard(lambda: self._pool.set(self._names.verified, b"1", px=JOB_EXPIRES_MS))

    async def is_verified(self) -> bool:
        return bool(await self._guard(lambda: self._pool.exists(self._names.verified)))

    async def waiting(self) -> int:
        """How many jobs wait or run: a page is in one of the two queues until it is in the store."""
        waiting = 0
        for queue in (self._names.checks, self._names.writes):
            waiting += int(await self._guard(partial(self._pool.zcard, queue)))
        return waiting

    async def _guard(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """What the queue answers; where it does not, as often as `patience` permits."""
        while True:
            try:
                return await call()
            except (RedisError, OSError) as error:
                await self._patience(unreachable(self._address, error))


async def drop_base_keys(pool: ArqRedis, names: QueueNames) -> int:
    """Delete the base's queues, its jobs and their marks; nothing of another base is touched."""
    patterns = [f"{names.prefix}*", f"arq:*:{names.prefix}*"]
    found = [key for pattern in patterns for key in [item async for item in pool.scan_iter(match=pattern, count=1000)]]
    keys = [key for key in found if not key.endswith(b":parked")]
    for start in range(0, len(keys), 1000):
        await pool.delete(*keys[start : start + 1000])
    return len(keys)


async def _drop_jobs(pool: ArqRedis, names: QueueNames) -> int:
    """Jobs by what their ids begin with; a queue that is gone has none."""
    patterns = [f"arq:*:{names.prefix}check:*", f"arq:*:{names.prefix}write:*"]
    keys = [key for pattern in patterns for key in [item async for item in pool.scan_iter(match=pattern, count=1000)]]
    keys += [name.encode() for name in names.of_a_run]
    for start in range(0, len(keys), 1000):
        await pool.delete(*keys[start : start + 1000])
    return len(keys)


async def park(pool: ArqRedis, names: QueueNames, reason: str, raw: bytes) -> None:
    """Keep a payload that nobody can work on, with the reason, for an operator to look at."""
    async with pool.pipeline(transaction=True) as pipe:
        pipe.lpush(names.parked, reason.encode() + b"\n" + raw[:4096])
        pipe.ltrim(names.parked, 0, PARKED_KEPT - 1)
        await pipe.execute()
