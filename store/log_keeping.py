"""Keeping the write-ahead log small while readers come and go (P25).

SQLite folds the log into the file by itself every so many pages, but only as far as the oldest reader permits, and
begins it anew only when there is none: readers that overlap starve it, and it grows by what is written. A truncating
checkpoint waits a little for the readers to be gone; it is tried when the log has become large. Whether it has done
anything is told by the frames, never by the busy flag alone.

The wait is made of short ones, because a long one can be in vain from its first moment: a checkpoint waits for those
who read an older state by the number of their read lock, and where the last of them goes and a new reader takes the
same lock for the newest state before the checkpoint looks again, it goes on to wait for that one, and for all who join
it there, as long as they overlap. A checkpoint that begins anew sees that nobody reads an older state.
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
_WAIT_AT_ONCE_MS = 100
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
        return truncate_log(self._connection, WAIT_FOR_READERS_MS)

    def log_bytes(self) -> int:
        with suppress(OSError):
            return os.lstat(self._log).st_size
        return 0


def truncate_log(connection: driver.Connection, wait_ms: int) -> bool:
    """Fold the whole log in and begin it anew; False where a reader holds a part of it.

    Waits for readers `wait_ms` at most. Raises the driver's errors.
    """
    connection.execute(f"PRAGMA busy_timeout = {_WAIT_AT_ONCE_MS}")
    try:
        return any(_truncate(connection) for _ in range(max(1, wait_ms // _WAIT_AT_ONCE_MS)))
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_TIMEOUT_S * 1000)}")


def _truncate(connection: driver.Connection) -> bool:
    """Not busy and no frames. Either alone proves nothing: beside a writer there may be none, and the file stands."""
    return tuple(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()) == (0, 0, 0)
