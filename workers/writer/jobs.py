"""The jobs of the write queue: a finished page comes out of the spool and into the writer's inbox."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from scheduler.queue.client import PageQueue, park
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import PayloadError, WritePayload, decode_write, encode_write
from workers import spool
from workers.checking import FinishedPage
from workers.context import CONTEXT_KEY, Stop, worker_pool
from workers.jobs import BAD_PAYLOAD, STALE_JOB
from workers.writer.inbox import DocumentWriter


class WriterContext(Struct, frozen=True):
    """What the write queue's jobs work with."""

    names: QueueNames
    spool: Path
    writer: DocumentWriter
    stop: Stop
    is_current: Callable[[int, int], bool]  # whether the run with this id and generation goes on


def writer_context(ctx: dict[Any, Any]) -> WriterContext:
    value = ctx[CONTEXT_KEY]
    if not isinstance(value, WriterContext):
        raise TypeError("the writer was wired without its context")
    return value


async def write_page(ctx: dict[Any, Any], raw: bytes) -> None:
    """Commit one page of the spool. A file that is gone means done, or planned again: nothing to do (R35)."""
    context = writer_context(ctx)
    try:
        payload = decode_write(raw)
    except PayloadError:
        await park(worker_pool(ctx), context.names, BAD_PAYLOAD, raw)
        return
    if payload.base_id != context.names.base_id or not context.is_current(payload.run, payload.generation):
        await park(worker_pool(ctx), context.names, STALE_JOB, raw)
        return
    try:
        page = spool.read_page(context.spool, payload.name)
        if page is not None:
            await context.writer.submit(page)
            spool.drop_page(context.spool, payload.name)
    except spool.SpoolError:  # the dispatcher misses the page and plans it again
        await park(worker_pool(ctx), context.names, BAD_PAYLOAD, raw)
    except Exception as error:  # noqa: BLE001 - see workers.context.Stop
        context.stop(error)


async def park_payload(ctx: dict[Any, Any], raw: bytes) -> None:
    await park(worker_pool(ctx), writer_context(ctx).names, BAD_PAYLOAD, raw)


class SpoolSink:
    """The sink of a worker process: the page to the spool, its name to the write queue (workers.sink)."""

    def __init__(
        self,
        directory: Path,
        queue: PageQueue,
        names: QueueNames,
        generation: int,
        require_room: Callable[[Path, int], None] | None = None,
    ) -> None:
        self._directory = directory
        self._queue = queue
        self._names = names
        self._generation = generation
        self._require_room = require_room

    async def commit(self, page: FinishedPage, *, attempt: int) -> None:
        name = spool.spool_name(page.run, page.number, attempt)
        spool.write_page(self._directory, name, page, self._require_room)
        payload = WritePayload(2, self._names.base_id, self._generation, page.run, attempt, page.number, name)
        await self._queue.enqueue_write(self._names.write_job(page.run, page.number, attempt), encode_write(payload))
