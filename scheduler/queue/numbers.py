"""What a monitor wants to know of the queue: how much waits for how long, who lives, how much memory is left."""

from collections.abc import Mapping
from typing import Literal

from arq.connections import ArqRedis
from msgspec import Struct
from redis.exceptions import ResponseError

from scheduler.queue.leases import live_leases
from scheduler.queue.names import QueueNames
from scheduler.queue.scores import ServerTime, age_s

Stage = Literal["check", "write"]
STAGES: tuple[Stage, ...] = ("check", "write")


class QueueNumbers(Struct, frozen=True):
    jobs: Mapping[Stage, int]  # waiting or in hand
    oldest_s: Mapping[Stage, float]  # 0 = there is none
    parked: int
    roles: Mapping[tuple[str, bool], int]  # processes that live, by role and whether they are active
    memory_bytes: int | None  # None: the server does not say
    memory_limit_bytes: int | None  # 0 = none


async def queue_numbers(pool: ArqRedis, names: QueueNames) -> QueueNumbers:
    """Raises RedisError, OSError."""
    async with pool.pipeline(transaction=False) as pipe:
        for queue in (names.checks, names.writes):
            pipe.zcard(queue)
            pipe.zrange(queue, 0, 0, withscores=True)
        pipe.llen(names.parked)
        pipe.time()
        *queues, parked, now = await pipe.execute()
    roles: dict[tuple[str, bool], int] = {}
    for note in await live_leases(pool, names):
        roles[note.role, note.is_active] = roles.get((note.role, note.is_active), 0) + 1
    memory = await _memory(pool)
    return QueueNumbers(
        jobs=dict(zip(STAGES, map(int, queues[::2]), strict=True)),
        oldest_s=dict(zip(STAGES, (_age_s(first, now) for first in queues[1::2]), strict=True)),
        parked=int(parked),
        roles=roles,
        memory_bytes=memory.get("used_memory"),
        memory_limit_bytes=memory.get("maxmemory"),
    )


def _age_s(first: list[tuple[bytes, float]], now: ServerTime) -> float:
    return age_s(first[0][1], now) if first else 0.0


async def _memory(pool: ArqRedis) -> dict[str, int]:
    try:
        return {name: value for name, value in (await pool.info("memory")).items() if isinstance(value, int)}
    except ResponseError:  # this user may not ask
        return {}
