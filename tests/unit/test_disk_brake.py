"""The disk brake: writing stops below a reserve and goes on by itself (P23)."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from app.roles import disk_brake
from app.roles.disk_brake import DiskBrake, FullDisk, Room, room_of
from app.roles.role_log import make_log
from app.roles.runtime import Runtime
from domain.errors import DiskFullError, StorageError
from domain.layout import BaseLayout, sidecars
from domain.settings import Settings
from scheduler.queue.client import PageQueue
from store.ballast import take_ballast
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
    take_ballast(runtime.layout)
    assert room_of(runtime, lambda _: 5) == Room(5, 64 * MIB)
    sidecars(runtime.layout.database)[1].write_bytes(b"x" * 1000)
    assert room_of(runtime, lambda _: 64 * MIB + 1999).is_short
    assert not room_of(runtime, lambda _: 64 * MIB + 2000).is_short


def test_what_was_given_up_for_an_operator_is_not_room_for_pages(tmp_path: Path) -> None:
    """P23: the megabyte that a removal on a full disk is done with would be eaten by the next pages."""
    runtime = runtime_of(tmp_path, reserve_bytes=MIB)
    take_ballast(runtime.layout)
    assert not room_of(runtime, lambda _: MIB).is_short
    runtime.layout.ballast.unlink()
    assert room_of(runtime, lambda _: 2 * MIB - 1).is_short
    assert not room_of(runtime, lambda _: 2 * MIB).is_short


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


async def test_a_write_that_found_no_room_is_tried_again_once_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P23, fault 11: somebody else has filled the disk between two looks; the brake is shut at once."""
    monkeypatch.setattr(disk_brake, "LOOK_EVERY_S", 0.01)
    runtime, said, room = runtime_of(tmp_path), Said(), [Room(0, 64 * MIB)]
    brake = DiskBrake(runtime, cast(PageQueue, said), lambda _: room[0])
    waiting = asyncio.create_task(brake.await_room(DiskFullError("no space left to write k.db", hint="free some")))
    async with braking(brake):
        await eventually_true(lambda: bool(said.causes))
        assert "room on the disk" in said.causes[0]
        assert not await _passes(brake)
        assert not waiting.done()
        room[0] = Room(100 * MIB, 64 * MIB)
        await waiting
        assert await _passes(brake)


def test_a_full_disk_is_said_once_a_minute_and_any_other_error_is_raised(tmp_path: Path) -> None:
    runtime, now_s = runtime_of(tmp_path), [0.0]
    written = io.StringIO()
    runtime = replace(runtime, log=make_log("scheduler", "json", written))
    disk = FullDisk(runtime, lambda: now_s[0])
    for now_s[0] in (0.0, 1.0, 59.0, 61.0):
        with disk.passed_over():
            raise DiskFullError("no space left to write state.db", hint="free some")
    assert written.getvalue().count("disk_full") == 2
    assert runtime.status.waits_for == "room on the disk"
    with pytest.raises(StorageError), disk.passed_over():
        raise StorageError("broken", hint="none")
