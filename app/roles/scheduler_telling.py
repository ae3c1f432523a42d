"""Telling somebody: notices of what has changed, and the heartbeat after a scheduled run that ended well.

In threads, since an address may take long to answer; the runs wait for none of it.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing, suppress

from msgspec import Struct, field

from app.notice_delivery import Delivery, beat
from app.notifying import Notifier
from app.roles.runtime import Runtime
from app.scheduling import ScheduleEvent
from domain.errors import DiskFullError
from store.state import SqliteStateStore

TELL_EVERY_S = 30.0
UNREMEMBERED_TOLD_EVERY_S = 600.0


class Telling(Struct):
    """Made and used in the scheduler's event loop."""

    runtime: Runtime
    notifier: Notifier
    is_soon: asyncio.Event = field(default_factory=asyncio.Event)
    beats: list[str] = field(default_factory=list)  # variables whose addresses are to be called

    def soon(self) -> None:
        """Something has changed that somebody may want to know."""
        self.is_soon.set()

    def hear(self, events: Sequence[ScheduleEvent]) -> None:
        """Of the schedules."""
        for event in events:
            if event.heartbeat_url_env:
                self.beats.append(event.heartbeat_url_env)
            self.soon()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(TELL_EVERY_S):
                    await self.is_soon.wait()
            self.is_soon.clear()
            while self.beats:
                self._log("heartbeat", await asyncio.to_thread(beat, self.beats.pop(0), self.runtime.settings.notify))
            try:
                for delivery in await asyncio.to_thread(self._tell):
                    self._log("notice", delivery)
            except DiskFullError:  # what was told is not remembered, and would be told again and again
                await asyncio.sleep(UNREMEMBERED_TOLD_EVERY_S)

    def _tell(self) -> list[Delivery]:
        with closing(SqliteStateStore(self.runtime.layout.state)) as state:
            return self.notifier.tell(state, time.time_ns())

    def _log(self, event: str, delivery: Delivery) -> None:
        if delivery.is_delivered:
            self.runtime.log.info(f"{event}_sent")
        else:
            self.runtime.log.warning(f"{event}_not_sent", message=delivery.detail)
