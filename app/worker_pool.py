"""Worker processes of one run: started, watched, and ended with it."""

import asyncio
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from app.worker_process import READY_LINE, Assignment
from domain.errors import KnowledgeError, QueueError, StorageError
from scheduler.dispatch import Dispatcher

DEATHS_ALLOWED = 24  # in one run: enough to bisect a full window down to its files
KEPT_STDERR_BYTES = 4096
# how a worker process ends that cannot go on for a reason outside of it: another one would fare no better
_ENDINGS: dict[int, type[KnowledgeError]] = {
    StorageError.exit_status: StorageError,
    QueueError.exit_status: QueueError,
}


class WorkerPool:
    """Keeps a number of worker processes alive."""

    def __init__(self, assignment: Assignment, dispatcher: Dispatcher) -> None:
        self._assignment = msgspec.json.encode(assignment)
        self._dispatcher = dispatcher
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
        """Start a worker process and wait until it has died; its status, and what it said last.

        Cancelled, the process is ended first. Raises KnowledgeError when it does not come up at all.
        """
        process = await asyncio.create_subprocess_exec(
            # -P: a folder `app` where the command was started is none of ours; a session of its own: Ctrl-C is for us
            *(sys.executable, "-P", "-m", "app.worker_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
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
            if process.returncode is None:
                process.kill()
            await process.wait()
            listening.cancel()


async def _last_words(process: asyncio.subprocess.Process) -> str:
    """The last line that a process writes to standard error, as the end of a sentence."""
    kept = b""
    while process.stderr is not None and (part := await process.stderr.read(KEPT_STDERR_BYTES)):
        kept = (kept + part)[-KEPT_STDERR_BYTES:]
    lines = kept.decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""
