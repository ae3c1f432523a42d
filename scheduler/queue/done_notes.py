"""What the writer tells the scheduler of a page that is in the store. Lost ones are made good from state.db (R35)."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, cast

import msgspec
from arq.connections import ArqRedis

from domain.decoding import UNDECODABLE
from domain.files import PageKind
from scheduler.queue.names import QueueNames

KEPT_NOTES = 10_000  # of a run whose scheduler is away
TAKEN_AT_A_TIME = 256


class FailedFile(msgspec.Struct, frozen=True, array_like=True):
    key: str
    reason: str
    detail: str


class DoneNote(msgspec.Struct, frozen=True, array_like=True):
    """A committed page in numbers; the texts stay where they are."""

    run: int
    page: int
    kind: PageKind
    counts: dict[str, int]  # by domain.files.Outcome
    skips: dict[str, tuple[int, str]]  # reason -> how many, the first key
    failures: tuple[FailedFile, ...]
    documents: int
    chunks: int
    text_bytes: int
    embedded: int
    reused: int
    from_parts: int


_decoder = msgspec.msgpack.Decoder(DoneNote)
_encoder = msgspec.msgpack.Encoder()


async def say_done(pool: ArqRedis, names: QueueNames, notes: Sequence[DoneNote]) -> None:
    async with pool.pipeline(transaction=False) as pipe:
        pipe.rpush(names.done, *(_encoder.encode(note) for note in notes))
        pipe.ltrim(names.done, -KEPT_NOTES, -1)
        await pipe.execute()


async def take_done(pool: ArqRedis, names: QueueNames, *, wait_s: float) -> Sequence[DoneNote]:
    """The next notes, at least one where any comes within `wait_s`. What is no note of ours is passed over."""
    raw = await cast("Awaitable[Any]", pool.lpop(names.done, TAKEN_AT_A_TIME))
    if not raw:
        await asyncio.sleep(wait_s)
        raw = await cast("Awaitable[Any]", pool.lpop(names.done, TAKEN_AT_A_TIME)) or []
    notes: list[DoneNote] = []
    for item in raw:
        try:
            notes.append(_decoder.decode(item))
        except UNDECODABLE:
            continue
    return notes
