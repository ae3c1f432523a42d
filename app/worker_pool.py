"""Worker processes of one run: started, watched, and ended with it."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from app.assignment import READY_LINE, Assignment, LastWords
from app.worker_start import end_worker, start_worker
from domain.decoding import UNDECODABLE
from domain.errors import (
    ConfigurationError,
    DiskFullError,
    EmbeddingsChangedError,
    EmbeddingsUnavailableError,
    FormatError,
    IntegrityError,
    KnowledgeError,
    QueueError,
    StorageError,
)

if TYPE_CHECKING:
    from scheduler.dispatch import Dispatcher

DEATHS_ALLOWED = 24  # without a page that is done in between
KEPT_STDERR_BYTES = 4096
MEND_HINT = "mend that, then run the command again"
# how a worker process ends that cannot go on for a reason outside of it: another one would fare no better
_ENDINGS: tuple[type[KnowledgeError], ...] = (
    ConfigurationError,
    FormatError,
    IntegrityError,
    StorageError,
    DiskFullError,
    EmbeddingsUnavailableError,
    EmbeddingsChangedError,
    QueueError,
)
_ONLY_BY_NAME = (ConfigurationError,)  # an interpreter that cannot start what it is to run ends with this status too


def ending(status: int, last_line: str) -> KnowledgeError | None:
    """What ends the run with a worker process that ended so; None where another one may be started."""
    words = _last_words_of(last_line)
    named = [kind for kind in _ENDINGS if (kind.exit_status, kind.code) == (status, words.code)]
    of_status = [kind for kind in _ENDINGS if kind.exit_status == status and kind not in _ONLY_BY_NAME]
    for kind in named or of_status:
        if words.code:
            return kind(words.message, hint=words.hint or MEND_HINT)
        return kind(f"a worker had to stop{_said(last_line)}", hint=MEND_HINT)
    return None


class WorkerPool:
    """Keeps a number of worker processes alive."""

    def __init__(self, assignment: Assignment, dispatcher: "Dispatcher", started: list[Process]) -> None:
        self._assignment = msgspec.json.encode(assignment)
        self._dispatcher = dispatcher
        self._started = started
        self._deaths = 0
        self._done_before = 0

    def tasks(self, count: int) -> list[Coroutine[Any, Any, None]]:
        """One task a process; each runs until cancelled."""
        return [self._keep_one() for _ in range(count)]

    async def _keep_one(self) -> None:
        """When a worker dies, what was in flight is bisected and another one is started."""
        while True:
            status, last_line = await self._run_one()
            if error := ending(status, last_line):
                raise error
            if self._done_before != self._dispatcher.done_count:
                self._done_before, self._deaths = self._dispatcher.done_count, 0
            self._deaths += 1
            if self._deaths > DEATHS_ALLOWED:
                raise KnowledgeError(
                    f"{self._deaths} worker processes have died, one after the other{_said(last_line)}",
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
            last_line = await listening
            if not is_up and ending(status, last_line) is None:
                raise KnowledgeError(
                    f"a worker process could not start{_said(last_line)}", hint="run `knowledge doctor`"
                )
            return status, last_line
        finally:
            await end_worker(process)
            listening.cancel()


async def _last_words(process: asyncio.subprocess.Process) -> str:
    """The last line that a process writes to standard error; "" where it says nothing."""
    kept = b""
    while process.stderr is not None and (part := await process.stderr.read(KEPT_STDERR_BYTES)):
        kept = (kept + part)[-KEPT_STDERR_BYTES:]
    lines = kept.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def _last_words_of(last_line: str) -> LastWords:
    """What a worker process said last; without a code where it did not choose its words."""
    with suppress(*UNDECODABLE):
        return msgspec.json.decode(last_line, type=LastWords)
    return LastWords("", last_line, "")


def _said(last_line: str) -> str:
    """A last line as the end of a sentence."""
    message = _last_words_of(last_line).message
    return f": {message}" if message else ""
