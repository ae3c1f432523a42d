"""The room that a base holds for its operator: held once, given up where the disk is full, and nowhere else (P23)."""

import os
import stat
from pathlib import Path

import pytest

from app import last_room
from app.last_room import with_last_room
from domain.errors import DiskFullError, StorageError
from domain.layout import BaseLayout
from store import ballast
from store.ballast import BALLAST_BYTES, give_up_ballast, require_room, take_ballast


@pytest.fixture
def layout(tmp_path: Path) -> BaseLayout:
    return BaseLayout(tmp_path)


def test_it_takes_room_on_the_disk_that_nobody_else_may_read(layout: BaseLayout) -> None:
    take_ballast(layout)
    status = layout.ballast.stat()
    assert status.st_size == BALLAST_BYTES
    assert status.st_blocks * 512 >= BALLAST_BYTES
    assert stat.S_IMODE(status.st_mode) == 0o600
    take_ballast(layout)
    assert layout.ballast.stat().st_ino == status.st_ino
    assert [path.name for path in layout.home.iterdir()] == ["ballast"]


def test_where_a_system_cannot_be_asked_for_room_it_is_written(
    layout: BaseLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    take_ballast(layout)
    assert layout.ballast.stat().st_size == BALLAST_BYTES
    assert layout.ballast.read_bytes().count(0) < BALLAST_BYTES // 100


def test_a_disk_without_the_room_for_it_keeps_nothing_of_it(
    layout: BaseLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(descriptor: int, offset: int, length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuses, raising=False)
    with pytest.raises(DiskFullError):
        take_ballast(layout)
    assert list(layout.home.iterdir()) == []


def test_a_link_in_its_way_is_not_followed(layout: BaseLayout, tmp_path: Path) -> None:
    target = tmp_path.parent / "somebody-elses"
    layout.ballast.with_name("ballast.part").symlink_to(target)
    with pytest.raises(StorageError):
        take_ballast(layout)
    assert not target.exists()


def test_it_is_given_up_only_where_the_disk_is_full(layout: BaseLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    take_ballast(layout)
    monkeypatch.setattr(ballast, "free_bytes", lambda directory: BALLAST_BYTES + 1)
    assert not give_up_ballast(layout)
    assert layout.ballast.exists()
    monkeypatch.setattr(ballast, "free_bytes", lambda directory: 0)
    assert give_up_ballast(layout)
    assert not give_up_ballast(layout), "there is no more"


def test_a_service_leaves_what_was_given_up_to_the_operator(
    layout: BaseLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P23: a page is refused as on a disk that is full; where the ballast is held, the disk itself says no."""
    monkeypatch.setattr(ballast, "free_bytes", lambda directory: BALLAST_BYTES + 10)
    page = layout.spool / "1-1-1.page.part"
    require_room(layout, page, 10)
    with pytest.raises(DiskFullError) as refused:
        require_room(layout, page, 11)
    assert str(page) in refused.value.message
    take_ballast(layout)
    require_room(layout, page, 11)


def test_what_fails_for_want_of_room_is_done_once_more_with_more(
    layout: BaseLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []
    room = [False, False]

    def action() -> str:
        tried.append(room.pop(0))
        if not tried[-1]:
            raise DiskFullError("no space left", hint="free some")
        return "done"

    monkeypatch.setattr(last_room, "give_up_ballast", lambda given: given == layout)
    with pytest.raises(DiskFullError):
        with_last_room(layout, action)
    assert tried == [False, False]
    room[:] = [False, True]
    assert with_last_room(layout, action) == "done"
    room[:] = [False, True]
    monkeypatch.setattr(last_room, "give_up_ballast", lambda given: False)
    with pytest.raises(DiskFullError):
        with_last_room(layout, action)
    assert room == [True], "without more room it is not tried again"
