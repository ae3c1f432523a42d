"""The disk brake: below a reserve of free space the writer commits no more pages, and goes on by itself when there is
room (P23). A full disk would keep removals and checkpoints from working, which are what makes room."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from app.roles.runtime import Runtime
from domain.errors import DiskFullError, StorageError
from domain.layout import sidecars
from scheduler.queue.client import PageQueue
from store.ballast import take_ballast, withheld_bytes
from store.files import free_bytes, lstat_or_none
from workers.hold_up import HoldUpVoice

LOOK_EVERY_S = 1.0
TOLD_EVERY_S = 60.0
MEBIBYTE = 1024 * 1024


class Room(Struct, frozen=True):
    """Free space, and how much of it is kept free; bytes."""

    free: int
    kept: int

    @property
    def is_short(self) -> bool:
        return self.free < self.kept


def room_of(runtime: Runtime, free: Callable[..., int] = free_bytes) -> Room:
    """Kept free is twice the write-ahead log, which a checkpoint may need, the configured reserve, and the operator's
    part (store.ballast)."""
    log = lstat_or_none(sidecars(runtime.layout.database)[1])
    kept = (
        2 * (log.st_size if log is not None else 0)
        + runtime.settings.disk_reserve_bytes
        + withheld_bytes(runtime.layout)
    )
    return Room(free(runtime.layout.home), kept)


class FullDisk:
    """A role that goes on although a write found no room: what was to be written is found to be due again later."""

    def __init__(self, runtime: Runtime, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._runtime = runtime
        self._clock_s = clock_s
        self._told_s = float("-inf")

    @contextmanager
    def passed_over(self) -> Iterator[None]:
        """DiskFullError ends the block, and is said once a minute."""
        try:
            yield
        except DiskFullError as error:
            self._runtime.status.wait_for("room on the disk")
            self.tell(error)

    def tell(self, error: DiskFullError) -> None:
        """In the log, once a minute: it happens to every page."""
        if self._clock_s() - self._told_s >= TOLD_EVERY_S:
            self._told_s = self._clock_s()
            self._runtime.log.warning("disk_full", message=error.message)


class DiskBrake:
    """`run` looks; `pass_by` waits for as long as there is too little room."""

    def __init__(self, runtime: Runtime, queue: PageQueue, look: Callable[[Runtime], Room] = room_of) -> None:
        self._runtime = runtime
        self._voice = HoldUpVoice(queue.say_hold_up)
        self._look = look
        self._is_open = asyncio.Event()
        self._is_open.set()

    async def pass_by(self) -> None:
        await self._is_open.wait()

    async def await_room(self, error: DiskFullError) -> None:
        """After a write that found none (workers.writer.inbox.Brake): until it is worth to try again."""
        if self._is_open.is_set():
            self._runtime.log.warning("disk_full", message=error.message)
        self._close(f"room on the disk: {error.message}")
        await asyncio.sleep(LOOK_EVERY_S)
        await self._is_open.wait()

    async def run(self) -> None:
        try:
            while True:
                room = self._look(self._runtime)
                self._decide(room)
                if not room.is_short:
                    with suppress(StorageError):  # it is tried again at the next look
                        take_ballast(self._runtime.layout)
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            await self._voice.aclose()

    def _close(self, what: str) -> None:
        self._is_open.clear()
        self._runtime.status.wait_for(what)
        self._voice.tell(f"the writer waits for {what}")

    def _decide(self, room: Room) -> None:
        log, status = self._runtime.log, self._runtime.status
        if room.is_short:
            said = f"room on the disk: {room.free // MEBIBYTE} MiB are free, {room.kept // MEBIBYTE} MiB are kept free"
            if self._is_open.is_set():
                log.warning("disk_short", free_bytes=room.free, kept_bytes=room.kept)
            self._close(said)
        elif not self._is_open.is_set():
            log.info("disk_has_room", free_bytes=room.free)
            self._is_open.set()
            status.wait_for("")
            self._voice.tell("")
