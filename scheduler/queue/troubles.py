"""What a worker tells the scheduler when a job of a run cannot be done for a reason outside of its files."""

import msgspec
from arq.connections import ArqRedis

from domain.decoding import UNDECODABLE
from scheduler.queue.names import QueueNames

KEPT_TROUBLES = 100


class Trouble(msgspec.Struct, frozen=True):
    """An error of a job: the run ends with it, or waits (a full disk)."""

    job_id: str
    code: str  # of the error; "unexpected" for what is none of ours
    message: str
    hint: str


_decoder = msgspec.msgpack.Decoder(Trouble)
_encoder = msgspec.msgpack.Encoder()


async def say_trouble(pool: ArqRedis, names: QueueNames, trouble: Trouble) -> None:
    async with pool.pipeline(transaction=True) as pipe:
        pipe.rpush(names.troubles, _encoder.encode(trouble))
        pipe.ltrim(names.troubles, -KEPT_TROUBLES, -1)
        await pipe.execute()


async def take_troubles(pool: ArqRedis, names: QueueNames) -> list[Trouble]:
    """The troubles since the last look, the oldest first."""
    async with pool.pipeline(transaction=True) as pipe:
        pipe.lrange(names.troubles, 0, -1)
        pipe.delete(names.troubles)
        raw, _ = await pipe.execute()
    found: list[Trouble] = []
    for item in raw:
        try:
            found.append(_decoder.decode(item))
        except UNDECODABLE:
            continue
    return found
