"""Builds the fault injector at test time, and runs actions under it: each in a forked child, at a chosen call.

A command of its own is armed by its environment, and counts its calls together with all that it starts.
"""

import contextlib
import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from domain.errors import KnowledgeError
from tests.support.depth import SEED

SOURCE = Path(__file__).with_name("fault.c")
KILL, HALF = -1, -2
UNEXPECTED = 70  # the child ended in an error that is none of ours
SEED_VARIABLE = "KNOWLEDGE_TEST_SEED"  # a test's own environment has lost it
_TALLY = struct.Struct("ll")
Action = Callable[[], object]


def compiler() -> str | None:
    """A C compiler's path; None: the tests that need one skip and say so."""
    return (shutil.which("cc") or shutil.which("gcc")) if sys.platform == "linux" else None


def build(directory: Path) -> Path:
    """The injector as a shared library in `directory`."""
    library = directory / "fault.so"
    command = [str(compiler()), "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def run_preloaded(
    library: Path, arguments: list[str], *, timeout_s: float, environ: Mapping[str, str] | None = None
) -> str:
    """Run a module with the injector loaded; what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        env={**os.environ, SEED_VARIABLE: str(SEED), **(environ or {}), "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        cwd=SOURCE.parents[3],
    )
    if done.returncode:
        raise AssertionError(f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Seen(NamedTuple):
    """What the processes of one command have counted."""

    calls: int
    hit_pid: int  # of the process that met the fault; 0: none did


class CommandFault(NamedTuple):
    """A fault that a command and all that it starts meet at their `at`-th call together; 0: they only count."""

    library: Path
    tally: Path  # a file that they count in; made anew by `environment`
    part: str
    at: int = 0
    mode: int = 0
    keeps_failing: bool = False

    def environment(self) -> dict[str, str]:
        self.tally.write_bytes(_TALLY.pack(0, 0))
        return {
            "LD_PRELOAD": str(self.library),
            "FAULT_TALLY": str(self.tally),
            "FAULT_PART": self.part,
            "FAULT_AT": str(self.at),
            "FAULT_MODE": str(self.mode),
            "FAULT_STICKY": str(int(self.keeps_failing)),
        }

    def seen(self) -> Seen:
        return Seen(*_TALLY.unpack(self.tally.read_bytes()))


def count_calls(part: str, action: Action) -> int:
    """How many write-family calls on files whose path holds `part` an action makes."""
    with tempfile.NamedTemporaryFile() as file:
        status = _in_child(part, 0, 0, False, action, Path(file.name))
        if status != 0:
            raise AssertionError(f"the action failed without any fault: {status}")
        return int(Path(file.name).read_text())


def run_at(part: str, at: int, mode: int, action: Action, *, sticky: bool = False) -> int:
    """The child's wait status after a fault at the `at`-th call: 0 where the action went through all the same."""
    return _in_child(part, at, mode, sticky, action, None)


def arm(part: str, at: int, mode: int, *, sticky: bool = False) -> None:
    """Let this process meet a fault; the injector is loaded."""
    fault = ctypes.CDLL(None)
    fault.fault_arm(part.encode(), ctypes.c_long(at), mode, int(sticky))


def _in_child(part: str, at: int, mode: int, sticky: bool, action: Action, count_file: Path | None) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = UNEXPECTED
    with contextlib.suppress(BaseException):
        os.umask(0)  # no file is private by the caller's grace
        status = _act(part, at, mode, sticky, action, count_file)
    os._exit(status)


def _act(part: str, at: int, mode: int, sticky: bool, action: Action, count_file: Path | None) -> int:
    arm(part, at, mode, sticky=sticky)
    fault = ctypes.CDLL(None)
    fault.fault_count.restype = ctypes.c_long
    try:
        action()
        status = 0
    except KnowledgeError as error:
        status = error.exit_status
    except Exception:  # noqa: BLE001 - whatever it is, the parent must hear of it
        fault.fault_disarm()
        traceback.print_exc()
        return UNEXPECTED
    fault.fault_disarm()
    if count_file is not None:
        count_file.write_text(str(fault.fault_count()))
    return status
