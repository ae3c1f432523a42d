"""The jobs of the check queue. Every one is idempotent and ends by itself: nothing is left to arq's retries (C-04)."""

import asyncio
import time
from typing import Any

from domain.measures import CHECK_SECONDS, CHUNKS_CUT, FILES_CHECKED, PAGES_CHECKED
from domain.telemetry import Telemetry
from scheduler.queue.client import park
from scheduler.queue.payloads import CheckPayload, PayloadError, decode_check
from workers.check_watch import check_in_time
from workers.checking import FinishedPage
from workers.context import WorkerContext, worker_host, worker_pool

STALE_JOB = "stale_job"
BAD_PAYLOAD = "bad_payload"


async def check_page(ctx: dict[Any, Any], raw: bytes) -> None:
    """Check a page's files and hand the finished page over; a payload of another run or base is parked."""
    host = worker_host(ctx)
    try:
        payload = decode_check(raw)
    except PayloadError:
        await park(worker_pool(ctx), host.names, BAD_PAYLOAD, raw)
        return
    context = await host.context_of(payload.run, payload.generation)
    if context is None or not is_current(payload, context):
        await park(worker_pool(ctx), host.names, STALE_JOB, raw)
        return
    try:
        page = await _finish(payload, context, str(ctx.get("job_id", "")))
        await context.sink.commit(page, attempt=payload.attempt)
    except Exception as error:  # noqa: BLE001 - see workers.context.Stop
        context.stop(error)


async def _finish(payload: CheckPayload, context: WorkerContext, job_id: str) -> FinishedPage:
    """The page of a payload, ready to be written."""
    page = payload.page()
    if page.kind == "vectors" and context.embedder is not None:
        keys = [file.key for file in page.files]
        return await context.embedder.embed_stored(payload.run, page.number, page.root, keys, payload.generation)
    async with context.reading(job_id):
        began_s = time.monotonic()
        checked = await asyncio.get_running_loop().run_in_executor(
            context.executor, check_in_time, page, payload.run, context.rules(payload.root), context.check_limit_s
        )
    _tell_checked(context.telemetry, checked, time.monotonic() - began_s)
    return checked if context.embedder is None else await context.embedder.embed_page(checked)


def _tell_checked(telemetry: Telemetry, page: FinishedPage, took_s: float) -> None:
    telemetry.count(PAGES_CHECKED)
    telemetry.observe(CHECK_SECONDS, took_s)
    telemetry.count(CHUNKS_CUT, sum(len(document.chunks) for document in page.documents))
    counts = {
        "document": len(page.documents),
        "unchanged": len(page.rechecks),
        "skipped": len(page.skips),
        "failed": len(page.failures),
    }
    for outcome, files in counts.items():
        telemetry.count(FILES_CHECKED, files, outcome)


async def park_payload(ctx: dict[Any, Any], raw: bytes) -> None:
    """What the deserializer makes of a payload that is no job of ours."""
    await park(worker_pool(ctx), worker_host(ctx).names, BAD_PAYLOAD, raw)


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
