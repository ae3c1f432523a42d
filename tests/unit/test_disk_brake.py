"""The disk brake: writing stops below a reserve and goes on by itself (P23)."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from app.roles import disk_brake
from app.roles.disk_brake import DiskBrake, Room, room_of
from app.roles.role_log import make_log
from app.roles.runtime import Runtime
from domain.layout import BaseLayout, sidecars
from domain.settings import Settings
from scheduler.queue.client import PageQueue
from tests.support.waiting import eventually_true

MIB = 1024 * 1024


class Said:
    """The queue, where the cause of a wait is said."""

    def __init__(self) -> None:
        self.causes: list[str] = []

    async def say_hold_up(self, cause: str) -> None:
        self.causes.append(cause)


def runtime_of(home: Path, *, reserve_bytes: int = 64 * MIB) -> Runtime:
    settings = Settings("base", home, None, configured=False, disk_reserve_bytes=reserve_bytes)
    return Runtime(settings, BaseLayout(home), "writer", "me", make_log("writer", "json", io.StringIO()))


def test_kept_free_is_the_reserve_and_twice_the_write_ahead_log(tmp_path: Path) -> None:
    runtime = runtime_of(tmp_path)
    assert room_of(runtime, lambda _: 5) == Room(5, 64 * MIB)
    sidecars(runtime.layout.database)[1].write_bytes(b"x" * 1000)
    assert room_of(runtime, lambda _: 64 * MIB + 1999).is_short
    assert not room_of(runtime, lambda _: 64 * MIB + 2000).is_short


@asynccontextmanager
async def braking(brake: DiskBrake) -> AsyncIterator[None]:
    task = asyncio.create_task(brake.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _passes(brake: DiskBrake) -> bool:
    try:
        async with asyncio.timeout(0.05):
            await brake.pass_by()
    except TimeoutError:
        return False
    return True


async def test_writing_waits_says_why_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_brake, "LOOK_EVERY_S", 0.01)
    runtime, said, room = runtime_of(tmp_path), Said(), [Room(100 * MIB, 64 * MIB)]
    brake = DiskBrake(runtime, cast(PageQueue, said), lambda _: room[0])
    async with braking(brake):
        assert await _passes(brake)
        assert runtime.status.waits_for == "its start"
        room[0] = Room(12 * MIB, 64 * MIB)
        await eventually_true(lambda: bool(said.causes))
        assert not await _passes(brake)
        assert said.causes[-1] == "the writer waits for room on the disk: 12 MiB are free, 64 MiB are kept free"
        assert "12 MiB" in runtime.status.waits_for
        room[0] = Room(65 * MIB, 64 * MIB)
        await eventually_true(lambda: said.causes[-1] == "")
        assert await _passes(brake)
        assert runtime.status.waits_for == ""
