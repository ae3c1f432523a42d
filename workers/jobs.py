"""The jobs of the check queue. Every one is idempotent and ends by itself: nothing is left to arq's retries (C-04)."""

import asyncio
from typing import Any

from scheduler.queue.client import park
from scheduler.queue.payloads import CheckPayload, PayloadError, decode_check
from workers.checking import FinishedPage
from workers.checking import check_page as check_files
from workers.context import WorkerContext, worker_context, worker_pool

STALE_JOB = "stale_job"
BAD_PAYLOAD = "bad_payload"


async def check_page(ctx: dict[Any, Any], raw: bytes) -> None:
    """Check a page's files and hand the finished page over; a payload of another run or base is parked."""
    context = worker_context(ctx)
    try:
        payload = decode_check(raw)
    except PayloadError:
        await park(worker_pool(ctx), context.names, BAD_PAYLOAD, raw)
        return
    if not is_current(payload, context):
        await park(worker_pool(ctx), context.names, STALE_JOB, raw)
        return
    try:
        await context.sink.commit(await _finish(payload, context), attempt=payload.attempt)
    except Exception as error:  # noqa: BLE001 - see workers.context.Stop
        context.stop(error)


async def _finish(payload: CheckPayload, context: WorkerContext) -> FinishedPage:
    """The page of a payload, ready to be written."""
    page = payload.page()
    if page.kind == "vectors" and context.embedder is not None:
        keys = [file.key for file in page.files]
        return await context.embedder.embed_stored(payload.run, page.number, page.root, keys, payload.generation)
    checked = await asyncio.get_running_loop().run_in_executor(
        context.executor, check_files, page, payload.run, context.rules(payload.root)
    )
    return checked if context.embedder is None else await context.embedder.embed_page(checked)


async def park_payload(ctx: dict[Any, Any], raw: bytes) -> None:
    """What the deserializer makes of a payload that is no job of ours."""
    await park(worker_pool(ctx), worker_context(ctx).names, BAD_PAYLOAD, raw)


def is_current(payload: CheckPayload, context: WorkerContext) -> bool:
    """Whether a payload is of this worker's base, run, generation, roots and tier, and its keys below the root."""
    prefix = payload.root + "/"
    return (
        payload.base_id == context.names.base_id
        and payload.run == context.run
        and payload.generation == context.generation
        and payload.root in context.roots
        and (payload.kind == "check" or context.embedder is not None)
        and all(_is_key_below(key, prefix) for key, _ in payload.files)
    )


def _is_key_below(key: str, prefix: str) -> bool:
    """Whether a key names a path below its root: no empty, `.` or `..` part, no NUL (S2-07's rule for keys)."""
    parts = key[len(prefix) :].split("/")
    return key.startswith(prefix) and "\x00" not in key and all(part not in ("", ".", "..") for part in parts)
