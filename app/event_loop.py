"""Running coroutines for a command that SIGTERM interrupts as Ctrl-C does."""

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_interruptibly(main: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run`, which cancels its task at Ctrl-C and then raises KeyboardInterrupt; here SIGTERM is the same.

    That is so where whoever calls has made SIGTERM raise KeyboardInterrupt, and only while the loop runs. It is not
    handed on as a SIGINT: a job in the background of a script ignores those.
    """
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.default_int_handler:
        return asyncio.run(main)
    interrupted = False

    async def interruptible() -> Result:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            nonlocal interrupted
            if interrupted or task is None:  # the second: whatever the task is at, it is not waited for
                raise KeyboardInterrupt
            interrupted = True
            task.cancel()
            loop.call_soon_threadsafe(lambda: None)  # wakes the loop up

        signal.signal(signal.SIGTERM, interrupt)
        try:
            return await main
        finally:
            signal.signal(signal.SIGTERM, before)

    try:
        return asyncio.run(interruptible())
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
