"""Starting a worker process, and ending it."""

import asyncio
import sys
from asyncio.subprocess import Process


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
