"""Builds the fault injector at test time, and runs actions under it: each in a forked child, at a chosen call."""

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from domain.errors import KnowledgeError

SOURCE = Path(__file__).with_name("fault.c")
KILL, HALF = -1, -2
UNEXPECTED = 70  # the child ended in an error that is none of ours
Action = Callable[[], None]


def compiler() -> str | None:
    """A C compiler's path; None: the tests that need one skip and say so."""
    return (shutil.which("cc") or shutil.which("gcc")) if sys.platform == "linux" else None


def build(directory: Path) -> Path:
    """The injector as a shared library in `directory`."""
    library = directory / "fault.so"
    command = [str(compiler()), "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def run_preloaded(library: Path, arguments: list[str], *, timeout_s: float) -> str:
    """Run a module with the injector loaded; what it prints."""
    environ = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        env=environ, capture_output=True, text=True, timeout=timeout_s, check=False, cwd=SOURCE.parents[3],
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


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


def _in_child(part: str, at: int, mode: int, sticky: bool, action: Action, count_file: Path | None) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = UNEXPECTED
    with contextlib.suppress(BaseException):
        status = _act(part, at, mode, sticky, action, count_file)
    os._exit(status)


def _act(part: str, at: int, mode: int, sticky: bool, action: Action, count_file: Path | None) -> int:
    fault = ctypes.CDLL(None)
    fault.fault_count.restype = ctypes.c_long
    fault.fault_arm(part.encode(), ctypes.c_long(at), mode, int(sticky))
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
