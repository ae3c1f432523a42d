"""Files that end, hang or bloat whoever reads them: Python started with `poisoned(...)` does so at a name.

What a poisonous file does to a parser is put in the place of the read; processes are told by way of PYTHONPATH, so
that everything else about them is as it is delivered.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

POISONS = {
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "crash": "os.abort()",
    "exit": "os._exit(3)",
    "spin": "[None for _ in iter(int, 1)]",
    "bloat": "b'x' * (1 << 40)",
    "hang": "threading.Event().wait()",
    "fault": "raise RuntimeError('a fault of ours')",
}
_LINES = """
import os, signal, threading
import workers.reading
read = workers.reading.RootReader.read
def poisoned(self, relative):
    if "poison" in relative:
        {poison}
    return read(self, relative)
workers.reading.RootReader.read = poisoned
"""


def poisoned(where: Path, monkeypatch: pytest.MonkeyPatch, poison: str, *more: str) -> None:
    """From now on processes that are started find files with `poison` in their name to be so; `more` lines come
    after."""
    folder = where / "first"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_LINES.format(poison=POISONS[poison]) + "\n".join(more), "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))


_MOVED_CLOCK = """
import time
now, now_ns = time.time, time.time_ns
time.time = lambda: now() + {seconds}
time.time_ns = lambda: now_ns() + {seconds} * 1_000_000_000
"""


@contextmanager
def clock_moved(where: Path, monkeypatch: pytest.MonkeyPatch, seconds: int) -> Iterator[None]:
    """Processes that are started in the block have a wall clock that is so far ahead, or behind."""
    folder = where / f"clock{seconds:+}"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(_MOVED_CLOCK.format(seconds=seconds), "utf-8")
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", str(folder))
        yield


_JUMPING_CLOCK = """
import pathlib, time
now, now_ns, told = time.time, time.time_ns, pathlib.Path({told!r})
def ahead():
    try:
        return int(told.read_text() or 0)
    except FileNotFoundError:
        return 0
time.time = lambda: now() + ahead()
time.time_ns = lambda: now_ns() + ahead() * 1_000_000_000
"""


class JumpingClock:
    """The wall clock of processes that are started in `of`: it goes on wherever it is set to, at once."""

    def __init__(self, where: Path, name: str) -> None:
        self._folder = where / f"jumping-{name}"
        self._folder.mkdir()
        self._told = self._folder / "ahead"
        (self._folder / "sitecustomize.py").write_text(_JUMPING_CLOCK.format(told=str(self._told)), "utf-8")

    @contextmanager
    def of(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setenv("PYTHONPATH", str(self._folder))
            yield

    def set(self, seconds: int) -> None:
        """So far ahead of the machine's clock; negative: behind."""
        aside = self._told.with_suffix(".part")
        aside.write_text(str(seconds), "utf-8")
        aside.replace(self._told)
