"""A service whose disk is short of room: writing pauses and says so, everything else goes on (P23, fault 11)."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from app.roles.calls import ApplyGroup, await_answer, place_call
from domain.errors import DiskFullError
from store.sqlite import SqliteStore
from store.write_port import GroupResult, RemoveWrite, WriteGroup
from tests.support.audit import audit
from tests.support.chaos import SLOW_S
from tests.support.command_line import CommandLine
from tests.support.service import Service, many_files, service
from tests.support.small_disk import fill, small_disk

pytestmark = pytest.mark.timeout(900)
FILES = 200
MORE = 1000


def test_writing_waits_for_room_and_goes_on_by_itself(tmp_path: Path) -> None:
    with service(tmp_path, configuration="  disk_reserve: 1000000000 GiB", files=many_files(FILES)) as it:
        it.start_all()
        run = it.first_run()
        it.wait_until(lambda: it.run(run).state == "waiting")
        assert "room on the disk" in it.run(run).cause
        with closing(SqliteStore(it.layout.database, base_id=None)) as store:
            assert not store.reader().has_documents()

        gone = WriteGroup(removes=[RemoveWrite("docs/part-00/file-00000.md", 1, 1)])
        call = place_call(it.layout.calls, ApplyGroup(gone))
        assert await_answer(it.layout.calls, call, GroupResult, lambda: None).results, "a removal is not kept waiting"

        configuration = tmp_path / "knowledge.yaml"
        text = configuration.read_text(encoding="utf-8")
        configuration.write_text(text.replace("1000000000 GiB", "1 MiB"), encoding="utf-8")
        assert it.of("writer")[0].terminate() == 0
        it.start("writer")
        ended = it.ended(run, SLOW_S)
        assert ended.state == "done"
        with closing(SqliteStore(it.layout.database, base_id=None)) as store:
            assert store.reader().document_count("docs/") >= FILES - 1


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 200) as place:
        yield place


def _full_under_a_run(it: Service, disk: Path) -> int:
    """A run whose first file is not read before the disk is full to the last byte: its worker is stopped."""
    assert it.ended(it.first_run(), SLOW_S).state == "done"
    it.wait_until(it.layout.ballast.exists)
    os.kill(it.of("worker")[0].pid, signal.SIGSTOP)
    for name, text in many_files(MORE).items():
        (disk / "docs" / name.replace("file", "later")).write_text(text, encoding="utf-8")
    run = it.submit()
    it.wait_until(lambda: it.run(run).state == "checking")
    fill(disk / "fill")
    return run


def test_a_disk_that_somebody_else_fills_to_the_last_byte_ends_nobody(disk: Path) -> None:
    """No role ends; what is stored is whole and answers; with room again the run goes on with no operator."""
    with service(disk, files=many_files(FILES), logs=disk.parent) as it:
        it.start_all()
        run = _full_under_a_run(it, disk)
        os.kill(it.of("worker")[0].pid, signal.SIGCONT)
        it.wait_until(lambda: any("disk_full" in role.said() for role in it.roles))
        command = CommandLine(disk, within_s=SLOW_S)
        assert command("status", "--config", "knowledge.yaml").status == 0
        assert command("search", "word17", "--config", "knowledge.yaml").status == 0
        assert [f"{role.name}: {role.said()}" for role in it.roles if role.process.poll() is not None] == []
        assert it.run(run).ended_ns is None

        (disk / "fill").unlink()
        ended = it.ended(run, SLOW_S)
        assert ended.state == "done"
        assert [f"{role.name}: {role.said()}" for role in it.roles if role.process.poll() is not None] == []
        with closing(SqliteStore(it.layout.database, base_id=None)) as store:
            assert store.reader().document_count("docs/") == FILES + MORE
        assert audit(it.layout.database) == []


def test_with_no_byte_left_runs_are_paused_and_cancelled_and_documents_removed(disk: Path) -> None:
    """P23, fault 11: with the room that is held for that, which is taken again when there is room; without it an
    operator is told that the disk is full."""
    with service(disk, files=many_files(FILES), logs=disk.parent) as it:
        it.start_all()
        run = _full_under_a_run(it, disk)
        command = CommandLine(disk, within_s=SLOW_S)

        def does(*verb: str) -> None:
            done = command(*verb, "--config", "knowledge.yaml")
            assert done.status == 0, (verb, done)

        does("runs", "pause", str(run))
        assert not it.layout.ballast.exists()
        does("runs", "show", str(run))
        does("rm", "docs/part-00/file-00000.md")
        does("search", "word17")
        does("runs", "cancel", str(run))
        assert it.ended(run, SLOW_S).state == "cancelled"

        fill(disk / "fill")
        refused = command("rm", "docs/part-01/file-00001.md", "--config", "knowledge.yaml")
        assert refused.status == 14 and "no space left" in refused.err, refused
        (disk / "fill").unlink()
        os.kill(it.of("worker")[0].pid, signal.SIGCONT)
        it.wait_until(it.layout.ballast.exists)
        does("rm", "docs/part-01/file-00001.md")
        assert it.ended(it.submit(), SLOW_S).state == "done"
        assert [f"{role.name}: {role.said()}" for role in it.roles if role.process.poll() is not None] == []
        assert audit(it.layout.database) == []


def test_an_answer_for_which_there_is_no_room_is_given_when_there_is(disk: Path) -> None:
    """P23: the writer does not end, and what it was asked for is done."""
    with service(disk, files=many_files(FILES), logs=disk.parent) as it:
        it.start_all()
        assert it.ended(it.first_run(), SLOW_S).state == "done"
        it.wait_until(it.layout.ballast.exists)
        (writer,) = it.of("writer")
        os.kill(writer.pid, signal.SIGSTOP)
        gone = WriteGroup(removes=[RemoveWrite("docs/part-00/file-00000.md", time.time_ns(), 1)])
        call = place_call(it.layout.calls, ApplyGroup(gone))
        it.layout.ballast.unlink()
        fill(disk / "fill")
        with pytest.raises(DiskFullError):
            place_call(it.layout.calls, ApplyGroup(gone))
        os.kill(writer.pid, signal.SIGCONT)
        it.wait_until(lambda: "disk_full" in writer.said())
        assert writer.process.poll() is None
        (disk / "fill").unlink()
        with suppress(DiskFullError):  # that is an answer too, to what was tried while there was no room
            await_answer(it.layout.calls, call, GroupResult, lambda: None)
        again = place_call(it.layout.calls, ApplyGroup(gone))
        assert await_answer(it.layout.calls, again, GroupResult, lambda: None).results
        assert audit(it.layout.database) == []


def test_a_log_that_takes_no_line_ends_nobody(tmp_path: Path) -> None:
    """The disk below the logs is full from the start, which every write to /dev/full finds: the run ends as usual."""
    with service(tmp_path, files=many_files(FILES), logs=tmp_path / "logs") as it:
        (tmp_path / "logs").mkdir()
        for number, name in enumerate(("writer", "scheduler", "worker")):
            (tmp_path / "logs" / f"{name}-{number}.log").symlink_to("/dev/full")
            it.start(name)
        ended = it.ended(it.first_run(), SLOW_S)
        assert ended.state == "done"
        assert [role.process.poll() for role in it.roles] == [None] * 3
        assert [role.terminate() for role in it.roles] == [0] * 3
        assert audit(it.layout.database) == []
