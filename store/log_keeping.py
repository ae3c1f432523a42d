"""Keeping the write-ahead log small while readers come and go (P25).

SQLite folds the log into the file by itself every so many pages, but only as far as the oldest reader permits, and
begins it anew only when there is none: readers that overlap starve it, and it grows by what is written. A truncating
checkpoint waits a little for the readers to be gone; it is tried when the log has become large. Whether it has done
anything is told by the frames, never by the busy flag.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from domain.layout import sidecars
from store import driver
from store.connection import BUSY_TIMEOUT_S

LARGE_LOG_BYTES = 32 * 1024 * 1024
WAIT_FOR_READERS_MS = 300
TRY_EVERY_S = 1.0


class LogKeeper:
    """Of one writing connection; called between its transactions."""

    def __init__(
        self, connection: driver.Connection, database: Path, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = connection
        self._log = sidecars(database)[1]
        self._clock_s = clock_s
        self._tried_s = float("-inf")

    def keep(self, large_bytes: int = LARGE_LOG_BYTES) -> bool:
        """Truncate the log where it is large, at most once a second; says whether that was done."""
        if self.log_bytes() <= large_bytes or self._clock_s() - self._tried_s < TRY_EVERY_S:
            return False
        self._tried_s = self._clock_s()
        return truncate_log(self._connection)

    def log_bytes(self) -> int:
        with suppress(OSError):
            return os.lstat(self._log).st_size
        return 0


def truncate_log(connection: driver.Connection) -> bool:
    """Fold the whole log in and begin it anew; False where a reader holds a part of it. Waits 0.3 s at most."""
    connection.execute(f"PRAGMA busy_timeout = {WAIT_FOR_READERS_MS}")
    try:
        _, in_log, folded_in = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_TIMEOUT_S * 1000)}")
    return int(in_log) == int(folded_in) == 0
