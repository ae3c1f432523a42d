"""Bases that a server keeps open for reading, so that a question does not pay for opening one."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from app.heap import give_back_free_memory
from app.wiring import ReadableBase, readable_base
from domain.layout import BaseLayout
from domain.settings import Settings
from store import files

MOST_IDLE = 8  # open and lent to nobody
IDLE_S = 30.0  # then its cache of pages is worth less than its memory


class _Opened(NamedTuple):
    base: ReadableBase
    inodes: tuple[int, int]
    closing: ExitStack


class _Idle(NamedTuple):
    opened: _Opened
    since_s: float


class OpenBases:
    """Lends an open base to one thread at a time. A reset, a restore or an upgrade is followed without a restart: a
    base whose files are no longer those in its place is closed and opened anew.

    The base that came back last is lent first, so that as many stay in use as are asked at a time. Whoever has not been
    lent for IDLE_S is closed within as long again, with its cache of up to 4 MiB: an agent that asks once an hour
    keeps nothing meanwhile.
    """

    def __init__(self, settings: Settings, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._layout = BaseLayout(settings.home)
        self._lock = threading.Lock()
        self._clock_s = clock_s
        self._idle: list[_Idle] = []  # who came back last stands last
        self._is_closed = False
        self._tidying: threading.Timer | None = None

    @contextmanager
    def borrowed(self) -> Iterator[ReadableBase]:
        """Nothing is written, not even the last step of a restore. Raises NotBuiltError, and what opening raises; a
        base in whose use something was raised is not lent again."""
        opened = self._taken() or self._opened()
        try:
            yield opened.base
        except BaseException:
            opened.closing.close()
            raise
        self._put_back(opened)

    def close(self) -> None:
        """What is lent is closed when it comes back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
            if self._tidying is not None:
                self._tidying.cancel()
        for one in idle:
            one.opened.closing.close()

    def _taken(self) -> _Opened | None:
        now = files.inodes(self._layout)
        while True:
            with self._lock:
                opened = self._idle.pop().opened if self._idle else None
            if opened is None or opened.inodes == now:
                return opened
            opened.closing.close()

    def _opened(self) -> _Opened:
        closing = ExitStack()
        before = files.inodes(self._layout)
        base = closing.enter_context(readable_base(self._settings, finishes_restores=False))
        # where they were exchanged meanwhile, the older ones are kept: at worst, it is opened once more
        return _Opened(base, before, closing)

    def _put_back(self, opened: _Opened) -> None:
        with self._lock:
            is_kept = not self._is_closed and len(self._idle) < MOST_IDLE
            if is_kept:
                self._idle.append(_Idle(opened, self._clock_s()))
                self._tidy_later()
        if not is_kept:
            opened.closing.close()

    def _tidy_later(self) -> None:
        """Under the lock."""
        if self._tidying is None and self._idle and not self._is_closed:
            self._tidying = threading.Timer(IDLE_S, self._tidy)
            self._tidying.daemon = True
            self._tidying.start()

    def _tidy(self) -> None:
        now_s = self._clock_s()
        with self._lock:
            leaving = [one.opened for one in self._idle if now_s - one.since_s >= IDLE_S]
            del self._idle[: len(leaving)]
            self._tidying = None
            self._tidy_later()
        for each in leaving:
            each.closing.close()
        if leaving:
            give_back_free_memory()
