"""What a worker says while it waits for something outside of it: to the queue, where the run looks."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from domain.errors import QueueError

SAY_EVERY_S = 2.0

Say = Callable[[str], Awaitable[None]]


class HoldUpVoice:
    """Says a cause again and again until it is over. `tell` may be called from the worker's event loop only."""

    def __init__(self, say: Say, every_s: float = SAY_EVERY_S) -> None:
        self._say = say
        self._every_s = every_s
        self._cause = ""
        self._saying: asyncio.Task[None] | None = None

    def tell(self, cause: str) -> None:
        """A cause in a few words, or "" when it is over (embedding.port.Waiting)."""
        self._cause = cause
        if self._saying is None or self._saying.done():
            self._saying = asyncio.get_running_loop().create_task(self._keep_saying())

    async def aclose(self) -> None:
        if self._saying is not None:
            self._saying.cancel()
            with suppress(asyncio.CancelledError):
                await self._saying

    async def _keep_saying(self) -> None:
        """The queue may be away itself: then there is nobody to say it to."""
        while True:
            cause = self._cause
            with suppress(QueueError):
                await self._say(cause)
            if not cause and not self._cause:
                return
            await asyncio.sleep(self._every_s if self._cause else 0)
