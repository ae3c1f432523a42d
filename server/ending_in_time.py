"""A role that is told to end, and the time that it has for it."""

import asyncio
from collections.abc import Awaitable, Callable

from app.roles.runtime import DRAIN_S, Runtime


async def ended_in_time(runtime: Runtime, role: Callable[[], Awaitable[None]]) -> None:
    """The role to its end. Told to end, it has as long as what it has in hand may take, and no more."""
    working = asyncio.ensure_future(role())
    stopping = asyncio.create_task(runtime.stopping.wait())
    await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        _, late = await asyncio.wait([working], timeout=DRAIN_S + 1)
        if late:
            runtime.log.warning("left_in_hand")
            working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    if not working.cancelled() and (error := working.exception()) is not None:
        raise error
