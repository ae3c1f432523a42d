"""Worker processes of one run: started, watched, and ended with it."""

import asyncio
import sys
from asyncio.subprocess import Process
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from app.assignment import READY_LINE, Assignment, PipelinePlan
from domain.errors import KnowledgeError, QueueError, StorageError

if TYPE_CHECKING:
    from app.pipeline import Observe, PipelineResult
    from domain.files import Page
    from scheduler.dispatch import Dispatcher
    from scheduler.queue.embedded import EmbeddedValkey
    from store.documents import SqliteStoreWriter
    from store.state_port import RemovalCandidate

DEATHS_ALLOWED = 24  # in one run: enough to bisect a full window down to its files
KEPT_STDERR_BYTES = 4096
# how a worker process ends that cannot go on for a reason outside of it: another one would fare no better
_ENDINGS: dict[int, type[KnowledgeError]] = {
    StorageError.exit_status: StorageError,
    QueueError.exit_status: QueueError,
}


async def run_with_workers(
    plan: PipelinePlan,
    store: "SqliteStoreWriter",
    planned: "Iterator[Page | RemovalCandidate]",
    observe: "Observe",
    server: "EmbeddedValkey | None",
) -> "PipelineResult":
    """Start the worker processes, then import the pipeline while they import what they need: arq and redis cost each
    of them a quarter of a second. Raises what `app.pipeline.run_pipeline` raises."""
    started: list[Process] = []
    try:
        while len(started) < plan.worker_processes:  # one by one: those that came up are ended if the next does not
            started.append(await start_worker())
        from app.pipeline import run_pipeline

        return await run_pipeline(plan, store, planned, observe, server, started)
    finally:
        for process in started:  # those that nobody came to need
            await end_worker(process)


async def start_worker() -> Process:
    """A worker process that waits for its assignment."""
    return await asyncio.create_subprocess_exec(
        # -P: a folder `app` where the command was started is none of ours; a session of its own: Ctrl-C is for us
        *(sys.executable, "-P", "-m", "app.worker_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )


async def end_worker(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


class WorkerPool:
    """Keeps a number of worker processes alive."""

    def __init__(self, assignment: Assignment, dispatcher: "Dispatcher", started: list[Process]) -> None:
        self._assignment = msgspec.json.encode(assignment)
        self._dispatcher = dispatcher
        self._started = started
        self._deaths = 0

    def tasks(self, count: int) -> list[Coroutine[Any, Any, None]]:
        """One task a process; each runs until cancelled."""
        return [self._keep_one() for _ in range(count)]

    async def _keep_one(self) -> None:
        """When a worker dies, what was in flight is bisected and another one is started."""
        while True:
            status, words = await self._run_one()
            if status in _ENDINGS:
                raise _ENDINGS[status](f"a worker had to stop{words}", hint="mend that, then run the command again")
            self._deaths += 1
            if self._deaths > DEATHS_ALLOWED:
                raise KnowledgeError(
                    f"{self._deaths} worker processes have died in this run{words}",
                    hint="see the system's log for the reason (memory, most often)",
                )
            await self._dispatcher.worker_died()

    async def _run_one(self) -> tuple[int, str]:
        """Give a worker process its assignment and wait until it has died; its status, and what it said last.

        Cancelled, the process is ended first. Raises KnowledgeError when it does not come up at all.
        """
        process = self._started.pop() if self._started else await start_worker()
        listening = asyncio.create_task(_last_words(process))
        try:
            if process.stdin is None or process.stdout is None:
                raise KnowledgeError("a worker process has no pipes")
            with suppress(ConnectionError):  # it died at once: its status says more
                process.stdin.write(self._assignment + b"\n")
                await process.stdin.drain()
            is_up = await process.stdout.readline() == READY_LINE
            status = await process.wait()
            words = await listening
            if not is_up and status not in _ENDINGS:
                raise KnowledgeError(f"a worker process could not start{words}", hint="run `knowledge doctor`")
            return status, words
        finally:
            await end_worker(process)
            listening.cancel()


async def _last_words(process: asyncio.subprocess.Process) -> str:
    """The last line that a process writes to standard error, as the end of a sentence."""
    kept = b""
    while process.stderr is not None and (part := await process.stderr.read(KEPT_STDERR_BYTES)):
        kept = (kept + part)[-KEPT_STDERR_BYTES:]
    lines = kept.decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""
