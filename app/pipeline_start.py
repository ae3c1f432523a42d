"""The beginning of a run that has something to queue: worker processes first, what this process imports beside them."""

from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.assignment import PipelinePlan
from app.worker_start import end_worker, start_worker

if TYPE_CHECKING:
    from app.pipeline import Phase, PipelineResult, Watching
    from scheduler.queue.embedded import EmbeddedValkey
    from store.documents import SqliteStoreWriter


async def run_with_workers(
    plan: PipelinePlan,
    store: "SqliteStoreWriter",
    phases: "Sequence[Phase]",
    watching: "Watching",
    server: "EmbeddedValkey | None",
) -> "PipelineResult":
    """Start the worker processes, then import the pipeline while they import what they need: arq and redis cost each
    of them a quarter of a second. Raises what `app.pipeline.run_pipeline` raises."""
    started: list[Process] = []
    try:
        while len(started) < plan.worker_processes:  # one by one: those that came up are ended if the next does not
            started.append(await start_worker())
        from app.pipeline import run_pipeline

        return await run_pipeline(plan, store, phases, watching, server, started)
    finally:
        for process in started:  # those that nobody came to need
            await end_worker(process)
