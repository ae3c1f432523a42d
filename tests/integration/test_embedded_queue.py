"""The bundled Valkey: up on a private socket, gone with its starter."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import QueueError
from scheduler.queue import embedded
from scheduler.queue.client import open_pool
from scheduler.queue.embedded import OWNER_NAME, RUNTIME_PREFIX, EmbeddedValkey, sweep_runtime_directories
from tests.support.runs import children, is_running, runtime_directories
from tests.support.waiting import eventually

pytestmark = pytest.mark.redis


@pytest.fixture
def server() -> Iterator[EmbeddedValkey]:
    made = EmbeddedValkey()
    try:
        yield made
    finally:
        made.stop()


async def test_it_answers_on_a_private_socket_and_writes_nothing(server: EmbeddedValkey) -> None:
    address = server.start()
    socket = Path(address.socket)
    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (socket.parent, socket)]  # noqa: PTH116
    assert modes == [0o700, 0o600]
    assert len(os.fsencode(socket)) <= 107
    async with open_pool(address) as pool:
        assert (await pool.config_get("port"))["port"] == "0"
        assert (await pool.config_get("save"))["save"] == ""
        assert (await pool.config_get("appendonly"))["appendonly"] == "no"
        assert (await pool.config_get("maxmemory-policy"))["maxmemory-policy"] == "noeviction"
    assert sorted(path.name for path in socket.parent.iterdir()) == [OWNER_NAME, "queue.sock"]


def test_it_is_gone_after_stop(server: EmbeddedValkey) -> None:
    before = set(children())
    server.start()
    assert len(set(children()) - before) == 1
    server.stop()
    assert set(children()) <= before
    assert runtime_directories() == []
    server.stop()
    assert server.pid is None


def test_two_of_them_do_not_meet(server: EmbeddedValkey) -> None:
    other = EmbeddedValkey()
    try:
        assert server.start() != other.start()
        assert server.pid != other.pid
    finally:
        other.stop()


STARTER = """
import sys, time
from scheduler.queue.embedded import EmbeddedValkey
server = EmbeddedValkey()
address = server.start()
print(server.pid, address.socket, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part of it is Linux's")
def test_it_dies_with_its_starter() -> None:
    """Kill -9 of the starter leaves no server; its directory goes with the next start."""
    starter = subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True)
    try:
        assert starter.stdout is not None
        pid, socket = starter.stdout.readline().split()
        starter.kill()
        starter.wait()
        eventually(lambda: not is_running(int(pid)))
        assert Path(socket).parent.exists()
        sweep_runtime_directories()
        assert not Path(socket).parent.exists()
    finally:
        starter.kill()
        starter.wait()
        if starter.stdout is not None:
            starter.stdout.close()


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of its own for runtime directories."""
    monkeypatch.setattr(embedded, "_runtime_parent", lambda: tmp_path)
    return tmp_path


def left_behind(runtime: Path, owner: str | None, name: str = "left") -> Path:
    directory = runtime / f"{RUNTIME_PREFIX}{name}"
    directory.mkdir()
    if owner is not None:
        (directory / OWNER_NAME).write_text(owner, "ascii")
    return directory


def a_dead_pid() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_only_what_a_dead_starter_left_is_swept(runtime: Path) -> None:
    """Never a directory of somebody who lives, or whose owner cannot be told."""
    dead = left_behind(runtime, f"{a_dead_pid()}\n", "dead")
    kept = [
        left_behind(runtime, f"{os.getpid()} 1\n", "living"),
        left_behind(runtime, "", "just-being-written"),
        left_behind(runtime, None, "without-owner"),
        left_behind(runtime, "no number", "odd"),
    ]
    (runtime / f"{RUNTIME_PREFIX}file").touch()
    (runtime / f"{RUNTIME_PREFIX}link").symlink_to(kept[0])
    sweep_runtime_directories()
    assert not dead.exists()
    assert all(directory.exists() for directory in kept)


def test_a_server_of_a_dead_starter_is_ended_and_no_other_process(runtime: Path) -> None:
    """Where the kernel does not do it: a pid may have been given to another process since."""
    directory = left_behind(runtime, None)
    idle = "import sys,time; time.sleep(60)"
    server = subprocess.Popen([sys.executable, "-c", idle, str(directory)])
    other = subprocess.Popen([sys.executable, "-c", idle])
    try:
        (directory / OWNER_NAME).write_text(f"{a_dead_pid()} {server.pid} {other.pid}\n", "ascii")
        sweep_runtime_directories()
        assert server.wait(20) == -signal.SIGTERM
        assert other.poll() is None
        assert not directory.exists()
    finally:
        for process in (server, other):
            process.kill()
            process.wait()


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/valkey-server"])
def test_a_server_that_does_not_come_up_is_a_queue_error(
    server: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(embedded, "server_program", lambda: program)
    with pytest.raises(QueueError) as refused:
        server.start()
    assert refused.value.exit_status == 16
    assert runtime_directories() == []


def test_without_a_server_program_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(QueueError, match="no Valkey or Redis") as refused:
        EmbeddedValkey().start()
    assert "queue.url" in refused.value.hint


def test_a_place_with_too_long_a_path_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Socket paths end at 107 bytes."""
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    parent = embedded._runtime_parent()
    assert parent != deep
    assert len(os.fsencode(parent / f"{RUNTIME_PREFIX}xxxxxxxx" / "queue.sock")) <= 107
