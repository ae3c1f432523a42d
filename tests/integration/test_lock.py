"""One writer at a time, freed by the kernel, its holder named (P9, S0-60..62)."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import LockedError
from store import lock as lock_module
from store.lock import WriteLock, holder_of, is_held

PROJECT = Path(__file__).parents[2]
# waits for the starting shot, tries once; a winner stays until its input is closed
RACER = """
import sys, time
sys.path.insert(0, {project!r})
from pathlib import Path
from store.lock import WriteLock
from domain.errors import LockedError
print("ready", flush=True)
sys.stdin.readline()
began = time.monotonic()
try:
    lock = WriteLock(Path({path!r}), purpose="knowledge index")
    lock.acquire()
except LockedError as error:
    print("lost", round((time.monotonic() - began) * 1000), error.exit_status, error.message, flush=True)
else:
    print("won", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "knowledge.lock"


@pytest.fixture
def racers(path: Path) -> Iterator[list["subprocess.Popen[str]"]]:
    code = RACER.format(project=str(PROJECT), path=str(path))
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(20)
    ]
    yield started
    for process in started:
        process.kill()
        process.communicate()


def told(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def shoot(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_of_twenty_one_wins_and_the_others_name_it(racers: list["subprocess.Popen[str]"], path: Path) -> None:
    assert {told(process) for process in racers} == {"ready"}
    for process in racers:
        shoot(process)
    answers = {process: told(process) for process in racers}
    winners = [process for process, answer in answers.items() if answer == "won"]
    assert len(winners) == 1
    (winner,) = winners
    for process, answer in answers.items():
        if process is not winner:
            _, milliseconds, status, message = answer.split(" ", 3)
            assert int(milliseconds) < 1000  # 100 on an idle machine
            assert status == "11"
            assert f"process {winner.pid}" in message
            assert "knowledge index" in message
    assert is_held(path)
    winner.send_signal(signal.SIGKILL)
    winner.wait()
    began = time.monotonic()
    with WriteLock(path, purpose="knowledge rm"):
        assert time.monotonic() - began < 0.5
        assert holder_of(path) == f"`knowledge rm`, process {os.getpid()}"
    assert not is_held(path)
    assert holder_of(path) == ""


def test_a_child_does_not_inherit_the_lock(path: Path) -> None:
    lock = WriteLock(path, purpose="test")
    lock.acquire()
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        lock.release()
        assert not is_held(path)
    finally:
        child.communicate()


def test_it_is_held_in_this_process_too(path: Path) -> None:
    with WriteLock(path, purpose="first"), pytest.raises(LockedError, match="first"):
        WriteLock(path, purpose="second").acquire()
    WriteLock(path, purpose="third").release()  # never taken: nothing to do


def test_a_lock_file_that_was_replaced_gives_no_second_holder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock = fcntl.flock

    def replace_then_lock(descriptor: int, operation: int) -> None:
        path.unlink()
        path.write_bytes(b"")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", replace_then_lock)
    with pytest.raises(LockedError):
        WriteLock(path, purpose="test").acquire()


def test_a_holder_sees_that_its_file_keeps_nobody_out_any_more(path: Path) -> None:
    """P9: removed or replaced by hand, another process could have it too."""
    lock = WriteLock(path, purpose="test")
    assert not lock.is_at_its_path()
    with lock:
        assert lock.is_at_its_path()
        path.unlink()
        assert not lock.is_at_its_path()
        path.touch()
        assert not lock.is_at_its_path()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x", "command": 1}', b"\xff\xfe", b"null"])
def test_a_holder_that_cannot_be_read_is_nobody(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert holder_of(path) == ""


def test_a_pipe_at_its_place_does_not_keep_a_look_waiting(path: Path) -> None:
    os.mkfifo(path)
    assert holder_of(path) == ""
    assert is_held(path) in (True, False)


def test_nobody_holds_what_is_not_there(path: Path) -> None:
    assert not is_held(path)
    assert holder_of(path) == ""


def test_without_flock_creation_is_the_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "HAS_FLOCK", False)
    with WriteLock(path, purpose="first"):
        assert is_held(path)
        with pytest.raises(LockedError, match="first"):
            WriteLock(path, purpose="second").acquire()
    assert not path.exists()
    path.write_bytes(b"left behind by a crash")
    with pytest.raises(LockedError):
        WriteLock(path, purpose="third").acquire()


def test_a_full_disk_takes_no_name_but_the_lock_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        lock = WriteLock(path, purpose="test")
        lock.acquire()
    assert is_held(path)
    lock.release()
    assert not is_held(path)
