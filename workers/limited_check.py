"""Checking a suspected file in a process of its own, with limits: whatever it does there ends no worker (R23)."""

import os
import signal
import subprocess
import sys
from threading import Timer
from typing import Literal

import msgspec
from msgspec import Struct

from domain.decoding import UNDECODABLE
from domain.files import FileCheck, FileFailure, FileStat, Page, Reason
from workers.checking import Checked, CheckRules, FinishedPage, finished_page, stat_of
from workers.reading import RootReader

READY = b"\n"  # what the process says before it touches the file
OUT_OF_MEMORY = 81  # its status when it has been refused memory
_MIB = 1024 * 1024
_STARTER_IS_GONE = 0


class CheckLimits(Struct, frozen=True):
    """What one file may take. The largest file of the default size takes a hundredth of each."""

    cpu_s: int = 30
    memory_bytes: int = 1024 * _MIB  # of address space, the interpreter's own included
    wall_s: float = 60.0

    def for_files_of(self, max_file_bytes: int) -> "CheckLimits":
        """More memory where larger files than the default may be read."""
        return CheckLimits(self.cpu_s, max(self.memory_bytes, 64 * max_file_bytes), self.wall_s)

    def for_a_group(self) -> "CheckLimits":
        """Of several files in one process: a page of them takes a second or two. One that takes longer is halved."""
        return CheckLimits(max(1, self.cpu_s // 3), self.memory_bytes, max(1.0, self.wall_s / 6))


LIMITS = CheckLimits()


class LimitedCheck(msgspec.Struct, frozen=True, array_like=True):
    """What the process is told: the files, and the rules of their root."""

    files: tuple[tuple[str, bytes], ...]  # keys with their stored hashes
    root: str
    root_path: str
    generation: int
    max_file_bytes: int
    substring_index: Literal["auto", "on", "off"]
    cpu_s: int
    memory_bytes: int


class _Ended(Struct, frozen=True):
    """How a process has ended. `is_overdue`: it was killed for taking too long."""

    status: int
    said: bytes
    is_overdue: bool


_encoder = msgspec.msgpack.Encoder()
_pages = msgspec.msgpack.Decoder(FinishedPage)


def check_alone(page: Page, run: int, rules: CheckRules, limits: CheckLimits = LIMITS) -> FinishedPage:
    """Check a page's files in processes of their own. One that crashes, hangs or wants too much of the machine is a
    failure of its file; it is found by halving, so that the others take few processes and little time."""
    limits = limits.for_files_of(rules.max_file_bytes)
    return finished_page(page, run, _check_halving(page.files, page.root, rules, limits))


def check_suspect(file: FileCheck, root: str, rules: CheckRules, limits: CheckLimits = LIMITS) -> Checked:
    """What is to be stored of one file of the root of this name, or why nothing is."""
    limits = limits.for_files_of(rules.max_file_bytes)
    with RootReader(rules.root_path, max_file_bytes=rules.max_file_bytes) as reader:
        before = stat_of(file.key, reader)
    try:
        ended = _run(_told((file,), root, rules, limits), limits.wall_s)
    except OSError as error:
        return _not_started(file.key, error.strerror or "")
    if ended.said[:1] != READY:
        return _not_started(file.key, f"status {ended.status}")
    if (checked := _answer(ended, (file,))) is not None:
        return checked[0]
    return _failure(file.key, ended, limits, before)


def _check_halving(files: tuple[FileCheck, ...], root: str, rules: CheckRules, limits: CheckLimits) -> list[Checked]:
    """What came of each, in their order."""
    if len(files) == 1:
        return [check_suspect(files[0], root, rules, limits)]
    group = limits.for_a_group()
    try:
        checked = _answer(_run(_told(files, root, rules, group), group.wall_s), files)
    except OSError as error:
        return [_not_started(file.key, error.strerror or "") for file in files]
    if checked is not None:
        return checked
    middle = len(files) // 2
    halves = (files[:middle], files[middle:])
    return [one for half in halves for one in _check_halving(half, root, rules, limits)]


def _told(files: tuple[FileCheck, ...], root: str, rules: CheckRules, limits: CheckLimits) -> bytes:
    named = tuple((file.key, file.stored_hash) for file in files)
    return _encoder.encode(
        LimitedCheck(
            named, root, str(rules.root_path), rules.generation, rules.max_file_bytes, rules.substring_index,
            limits.cpu_s, limits.memory_bytes,
        )
    )  # fmt: skip


def _not_started(key: str, detail: str) -> FileFailure:
    """No fault of the file: it is tried again later."""
    return FileFailure(key, Reason.UNEXPECTED, f"the process that was to read it alone did not start ({detail})")


def _answer(ended: _Ended, files: tuple[FileCheck, ...]) -> list[Checked] | None:
    """Each file's part of the page that the process has finished, in their order; None for anything else."""
    if ended.status != 0 or ended.said[:1] != READY:
        return None
    try:
        page = _pages.decode(ended.said[1:])
    except UNDECODABLE:
        return None
    found: list[Checked] = [*page.documents, *page.rechecks, *page.skips, *page.failures]
    by_key = {checked.key: checked for checked in found}
    if len(found) != len(files) or by_key.keys() != {file.key for file in files}:
        return None
    return [by_key[file.key] for file in files]


def _failure(key: str, ended: _Ended, limits: CheckLimits, stat: FileStat | None) -> FileFailure:
    reason, detail = Reason.OVER_LIMIT, ""
    if ended.is_overdue:
        detail = f"no answer after {limits.wall_s:g} s"
    elif ended.status == OUT_OF_MEMORY:
        detail = f"more than {limits.memory_bytes // _MIB} MiB of memory"
    elif ended.status == -signal.SIGXCPU:
        detail = f"more than {limits.cpu_s} s of processor time"
    elif ended.status < 0:
        reason, detail = Reason.WORKER_DIED, f"ended by {_signal_name(-ended.status)} in a process of its own"
    else:
        how = f"with status {ended.status}" if ended.status else "without an answer"
        reason, detail = Reason.WORKER_DIED, f"ended {how} in a process of its own"
    return FileFailure(key, reason, detail, stat)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _run(told: bytes, wall_s: float) -> _Ended:
    """Start the process, tell it what to do, and take what it says; it is killed after `wall_s`. Raises OSError where
    there can be no process."""
    overdue: list[bool] = []
    with subprocess.Popen(
        # -P: a folder `workers` where the command was started is none of ours; its own session: Ctrl-C is for us
        (sys.executable, "-P", "-m", "workers.limited_child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:

        def kill() -> None:
            overdue.append(True)
            process.kill()

        timer = Timer(wall_s, kill)
        timer.daemon = True
        timer.start()
        try:
            said = _talk(process, told)
            process.wait()
        finally:
            timer.cancel()
            process.kill()
    return _Ended(process.returncode, said, bool(overdue))


def _talk(process: "subprocess.Popen[bytes]", told: bytes) -> bytes:
    """Standard input stays open until the answer is there: the process ends itself when it closes."""
    if process.stdin is None or process.stdout is None:
        raise OSError("a process without pipes")
    try:
        process.stdin.write(len(told).to_bytes(4, "big") + told)
        process.stdin.flush()
    except BrokenPipeError:  # it ended at once: its status says more
        return b""
    return process.stdout.read()


def leave_with_starter() -> None:
    """In the process: end when the one that started it is gone."""
    while os.read(0, 4096):
        pass
    os._exit(_STARTER_IS_GONE)
