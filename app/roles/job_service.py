"""An arq worker that is kept at work: built again when its queue comes back, and drained when its role ends."""

import asyncio
from collections.abc import Awaitable, Callable

from arq.worker import Worker
from redis.exceptions import RedisError

from app.pipeline import end_worker
from app.roles.runtime import DRAIN_S, TRY_AGAIN_S, Runtime


class JobService:
    """`run` until cancelled; `drain` first, so that what is in hand comes to its end and no try is burned."""

    def __init__(self, runtime: Runtime, build: Callable[[], Worker], before: Callable[[], Awaitable[None]]) -> None:
        """`before` speaks to the queue each time before a worker begins; what it raises is as if the queue was away."""
        self._runtime = runtime
        self._build = build
        self._before = before
        self._worker: Worker | None = None
        self._running: asyncio.Task[None] | None = None
        self._is_draining = False

    @property
    def in_hand(self) -> int:
        """Jobs that are worked on now."""
        return len(self._worker.tasks) if self._worker is not None else 0

    async def run(self) -> None:
        while not self._is_draining:
            try:
                await self._before()
                await self._work()
            except (RedisError, OSError) as error:
                self._runtime.waits_for_queue(error)
                await asyncio.sleep(TRY_AGAIN_S)
        await asyncio.Event().wait()  # the role ends it

    async def drain(self) -> None:
        """Take no more jobs, and let those in hand end."""
        self._is_draining = True
        if self._worker is not None and self._running is not None:
            await end_worker(self._worker, self._running, within_s=DRAIN_S)

    async def _work(self) -> None:
        self._worker = worker = self._build()
        self._running = running = asyncio.create_task(worker.async_run())
        self._runtime.goes_on()
        try:
            await asyncio.wait([running])
            if not self._is_draining:
                running.result()
        finally:
            if not self._is_draining:
                await end_worker(worker, running, within_s=TRY_AGAIN_S)
