"""The numbers of an index for somebody who looks again and again: rows are counted more rarely than the rest."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from store.connection import open_reader
from store.files import lstat_or_none
from store.numbers import LogNumbers, LogWatch, QuickNumbers, SlowNumbers, quick_numbers, slow_numbers

COUNT_EVERY_S = 60.0  # documents, chunks and vectors
BUSY_AT_MOST = 0.01  # of the time: what takes long is done more rarely


class IndexNumbers(NamedTuple):
    quick: QuickNumbers
    rows: SlowNumbers  # as they were counted last
    log: LogNumbers | None  # None: there is no log


class IndexWatch:
    """Of one knowledge.db. Used by one thread at a time."""

    def __init__(self, database: Path, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock_s = clock_s
        self._log = LogWatch(database)
        self._rows: SlowNumbers | None = None
        self._count_at_s = float("-inf")

    def look(self) -> IndexNumbers | None:
        """None where there is no index. Raises KnowledgeError, OSError."""
        if lstat_or_none(self._database) is None:
            return None
        with closing(open_reader(self._database)) as connection:
            quick = quick_numbers(connection, self._database)
            log = self._log.look()
            if self._rows is None or self._clock_s() >= self._count_at_s:
                began_s = self._clock_s()
                self._rows = slow_numbers(connection, self._database)
                took_s = self._clock_s() - began_s
                self._count_at_s = began_s + max(COUNT_EVERY_S, took_s / BUSY_AT_MOST)
        return IndexNumbers(quick, self._rows, log)
