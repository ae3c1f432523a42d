"""Starting a worker process, and ending it."""

import asyncio
import sys
from asyncio.subprocess import Process
from contextlib import suppress

from app.config import process_environ
from app.tracing import asks_for_traces

LAST_SPANS_S = 2.0  # twice what a worker itself waits for


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
    if process.returncode is None and process.stdin is not None and asks_for_traces(process_environ()):
        process.stdin.close()  # it sends its last spans, and goes
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), LAST_SPANS_S)
    if process.returncode is None:
        process.kill()
    await process.wait()
