"""A service whose disk is short of room: writing pauses and says so, everything else goes on (P23, fault 11)."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.roles.calls import ApplyGroup, await_answer, place_call
from store.sqlite import SqliteStore
from store.write_port import GroupResult, RemoveWrite, WriteGroup
from tests.support.audit import audit
from tests.support.command_line import CommandLine
from tests.support.service import many_files, service

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
        ended = it.ended(run)
        assert ended.state == "done"
        with closing(SqliteStore(it.layout.database, base_id=None)) as store:
            assert store.reader().document_count("docs/") >= FILES - 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own; skips where this process may mount none."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a file system can be mounted by root only")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _fill(path: Path) -> None:
    """To the last byte."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        for size in (1 << 16, 1):
            try:
                while True:
                    os.write(descriptor, b"x" * size)
            except OSError:
                continue
    finally:
        os.close(descriptor)


def test_a_disk_that_somebody_else_fills_to_the_last_byte_ends_nobody(small_disk: Path) -> None:
    """No role ends; what is stored is whole and answers; with room again the run goes on with no operator."""
    with service(small_disk, files=many_files(FILES), logs=small_disk.parent) as it:
        it.start_all()
        assert it.ended(it.first_run()).state == "done"
        (worker,) = it.of("worker")
        os.kill(worker.pid, signal.SIGSTOP)  # the disk is full before the first of the new files is read
        for name, text in many_files(MORE).items():
            (small_disk / "docs" / name.replace("file", "later")).write_text(text, encoding="utf-8")
        run = it.submit()
        it.wait_until(lambda: it.run(run).state == "checking")
        ballast = small_disk / "ballast"
        _fill(ballast)
        os.kill(worker.pid, signal.SIGCONT)
        it.wait_until(lambda: any("disk_full" in role.said() for role in it.roles))
        command = CommandLine(small_disk)
        assert command("status", "--config", "knowledge.yaml").status == 0
        assert command("search", "word17", "--config", "knowledge.yaml").status == 0
        assert [f"{role.name}: {role.said()}" for role in it.roles if role.process.poll() is not None] == []
        assert it.run(run).ended_ns is None

        ballast.unlink()
        ended = it.ended(run)
        assert ended.state == "done"
        assert [f"{role.name}: {role.said()}" for role in it.roles if role.process.poll() is not None] == []
        with closing(SqliteStore(it.layout.database, base_id=None)) as store:
            assert store.reader().document_count("docs/") == FILES + MORE
        assert audit(it.layout.database) == []


def test_a_log_that_takes_no_line_ends_nobody(tmp_path: Path) -> None:
    """The disk below the logs is full from the start, which every write to /dev/full finds: the run ends as usual."""
    with service(tmp_path, files=many_files(FILES), logs=tmp_path / "logs") as it:
        (tmp_path / "logs").mkdir()
        for number, name in enumerate(("writer", "scheduler", "worker")):
            (tmp_path / "logs" / f"{name}-{number}.log").symlink_to("/dev/full")
            it.start(name)
        ended = it.ended(it.first_run())
        assert ended.state == "done"
        assert [role.process.poll() for role in it.roles] == [None] * 3
        assert [role.terminate() for role in it.roles] == [0] * 3
        assert audit(it.layout.database) == []
