"""What every role of a service has: its settings, its name, its log, and how it is told to end."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field

from app.roles.role_log import RoleLog
from domain.errors import QueueError
from domain.layout import BaseLayout
from domain.settings import Settings
from domain.telemetry import SILENCE, Telemetry
from scheduler.queue.leases import LeaseNote

if TYPE_CHECKING:
    from scheduler.queue.numbers import QueueNumbers

DRAIN_S = 8.0  # what is in hand may take this long when a role is told to end
TRY_AGAIN_S = 0.5
THE_QUEUE = "the queue"


class LeavingError(BaseException):  # passes by whatever records failures: nothing has failed
    """The role is told to end while a run goes on: the run stays open, for whoever takes over."""


class RoleStatus(Struct):
    """How a role stands. It alone writes; its lease, its health page and its metrics read."""

    is_active: bool = False  # False: it stands by, or has not got what it needs
    waits_for: str = "its start"  # in a few words; "" = nothing
    doing: str = ""
    warns: str = ""  # what an operator should mend though the role works, in sentences
    stands_by: bool = False  # another one does the work, and this one waits to take over
    since_ns: int = field(default_factory=time.time_ns)
    queue: "QueueNumbers | None" = None  # as the role that others ask has seen the queue last; None: not known

    @property
    def is_ready(self) -> bool:
        return self.is_active and not self.waits_for

    def wait_for(self, what: str) -> None:
        if what != self.waits_for:
            self.waits_for, self.since_ns = what, time.time_ns()


class Runtime(Struct, frozen=True):
    """A role that runs. `stopping` is set once it is told to end: it drains, and returns."""

    settings: Settings
    layout: BaseLayout
    role: str
    holder: str  # its name in the queue
    log: RoleLog
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    status: RoleStatus = field(default_factory=RoleStatus)
    telemetry: Telemetry = SILENCE

    def lease_note(self) -> LeaseNote:
        import os
        import socket

        status = self.status
        doing = status.doing or (f"waits for {status.waits_for}" if status.waits_for else "")
        if status.warns:
            doing = f"{doing}; warning: {status.warns}" if doing else f"warning: {status.warns}"
        host = socket.gethostname()
        return LeaseNote(self.role, self.holder, host, os.getpid(), status.is_active, doing, status.since_ns)

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until the role is told to end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stopping.wait()

    async def patience(self, error: QueueError) -> None:
        """Wait for the queue, as long as it takes (scheduler.queue.client.Patience). Raises LeavingError when the
        role is to end meanwhile."""
        self.waits_for_queue(error)
        if self.stopping.is_set():
            raise LeavingError
        await self.pause(TRY_AGAIN_S)

    def waits_for_queue(self, error: Exception) -> None:
        """Said once for each time that it is away, and not each time that it is asked."""
        if self.status.waits_for != THE_QUEUE:
            said = error.message if isinstance(error, QueueError) else type(error).__name__
            self.log.warning("queue_away", message=said)
        self.status.wait_for(THE_QUEUE)

    def goes_on(self) -> None:
        """What was waited for has come."""
        if self.status.waits_for:
            self.log.info("goes_on", waited_for=self.status.waits_for)
        self.status.wait_for("")


async def beside(main: Callable[[], Awaitable[object]], others: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
    """Run `main` to its end beside tasks that have none. An error of any ends all, and is raised."""
    leading = asyncio.ensure_future(main())
    followers = {asyncio.ensure_future(other()): name for name, other in others.items()}
    try:
        await asyncio.wait([leading, *followers], return_when=asyncio.FIRST_COMPLETED)
        for task in (*followers, leading):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error
        ended = [name for task, name in followers.items() if task.done()]
        if not leading.done():
            raise RuntimeError(f"a part of the role has ended by itself: {', '.join(ended)}")
    finally:
        for task in (leading, *followers):
            task.cancel()
        await asyncio.gather(leading, *followers, return_exceptions=True)
