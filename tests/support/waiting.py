"""Waiting for what happens elsewhere: as short as it takes, with an end."""

import asyncio
import time
from collections.abc import Awaitable, Callable

LIMIT_S = 90.0


def eventually(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition holds; fails when it never does."""
    latest = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < latest, "it never came"
        time.sleep(0.01)


async def eventually_in_loop(condition: Callable[[], Awaitable[bool]]) -> None:
    """The same where the loop has to go on."""
    latest = time.monotonic() + LIMIT_S
    while not await condition():
        assert time.monotonic() < latest, "it never came"
        await asyncio.sleep(0.01)


async def eventually_true(condition: Callable[[], bool]) -> None:
    """`eventually`, while the loop goes on."""

    async def asked() -> bool:
        return condition()

    await eventually_in_loop(asked)
