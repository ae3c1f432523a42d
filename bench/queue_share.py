"""The same pages through the same queue with a job that does nothing: what the queue itself costs of a run."""

import asyncio
import time
from typing import Any

from arq.worker import Worker, func

from app.worker_process import PAGES_AT_A_TIME, POLL_DELAY_S
from domain.files import FileCheck, Page
from scheduler.queue.client import open_pool
from scheduler.queue.embedded import EmbeddedValkey
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import CHECK_PAGE, decode_check, deserialize_job, encode_check, serialize_job


async def _nothing(ctx: dict[Any, Any], raw: bytes) -> None:
    decode_check(raw)


async def _through(address: Any, pages: list[Page]) -> float:
    names = QueueNames("bench")
    async with open_pool(address) as pool:
        began = time.perf_counter()
        for page in pages:
            payload = encode_check("bench", 1, 1, 1, page)
            job_id = names.check_job(1, page.number, 1)
            await pool.enqueue_job(CHECK_PAGE, payload, _job_id=job_id, _queue_name=names.checks)
        worker = Worker(
            functions=[func(_nothing, name=CHECK_PAGE)],
            queue_name=names.checks,
            redis_pool=pool,
            burst=True,
            handle_signals=False,
            max_jobs=PAGES_AT_A_TIME,
            keep_result=0,
            poll_delay=POLL_DELAY_S,
            job_serializer=serialize_job,
            job_deserializer=deserialize_job,
            log_results=False,
        )
        await worker.async_run()
        return time.perf_counter() - began


def queue_seconds(keys: list[str], files_per_page: int = 64) -> float:
    """Seconds for all pages of these keys to be queued, picked up and acknowledged."""
    pages = [
        Page(number, "c", tuple(FileCheck(key) for key in keys[start : start + files_per_page]))
        for number, start in enumerate(range(0, len(keys), files_per_page), 1)
    ]
    server = EmbeddedValkey()
    address = server.start()
    try:
        return asyncio.run(_through(address, pages))
    finally:
        server.stop()
