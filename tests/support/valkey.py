"""A Valkey of a test's own, on a socket that everybody may use."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler.queue.embedded import server_program
from tests.support.waiting import eventually


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Path]:
    """Started with these options besides; its socket's path. Ended when the block is left."""
    socket = folder / "valkey.sock"
    command = [server_program(), "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "777", "--save", ""]
    started = subprocess.Popen([*command, *options], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        eventually(socket.exists)
        yield socket
    finally:
        started.terminate()
        started.wait()
