"""What is in a database's write-ahead log, and who keeps it from being folded in. Looks only."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from domain.layout import sidecars
from store import driver

LOCK_TABLE = Path("/proc/locks")
_NOOP_SINCE = (3, 51, 0)  # an older SQLite takes the unknown word for PASSIVE, which writes
# SQLite locks single bytes of the shared memory file: 123 to 127 for as long as a read transaction lasts
# (https://www.sqlite.org/walformat.html, section 2.3.1), 128 for as long as a connection does
_READ_BYTES = range(123, 128)
_CONNECTION_BYTE = 128
_LOCK = re.compile(r"\d+: POSIX +ADVISORY +\w+ (-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) (\d+) (\d+)$")


class LogFrames(NamedTuple):
    """Frames (pages with their headers) of a write-ahead log."""

    in_log: int
    folded_in: int  # of them are in the database file already

    @property
    def lag(self) -> int:
        return max(0, self.in_log - self.folded_in)


def log_frames(connection: driver.Connection) -> LogFrames | None:
    """Frames in the log, and those that are folded in; None where this SQLite cannot tell without doing it.

    The busy flag is not looked at: a checkpoint that did nothing leaves it 0 as well.
    """
    if driver.sqlite_version_info < _NOOP_SINCE:
        return None
    _, in_log, folded_in = connection.execute("PRAGMA wal_checkpoint(NOOP)").fetchone()
    return LogFrames(max(0, int(in_log)), max(0, int(folded_in)))


class ReadLock(NamedTuple):
    """A read transaction of another process."""

    pid: int  # 0 or less: of a process that this one cannot see
    lock: int  # which of the five read locks; what its readers see, store.wal_index says


def reading_processes(database: Path, table: Path = LOCK_TABLE) -> tuple[int, ...] | None:
    """Other processes with a read transaction open now, 0 for one that this one cannot see (of another container);
    None as of `read_locks`."""
    locks = read_locks(database, table)
    return None if locks is None else tuple(sorted({max(0, held.pid) for held in locks}))


def read_locks(database: Path, table: Path = LOCK_TABLE) -> tuple[ReadLock, ...] | None:
    """The read locks that other processes hold now, by process.

    The caller has a connection to the database open. None where the system does not tell: there is no table of locks,
    or it does not show the caller's own (a file system that gives other numbers there than to stat).
    """
    try:
        status = sidecars(database)[2].lstat()
        lines = table.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    place = (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)
    held = [found for line in lines if (found := _LOCK.match(line)) and _place(found) == place]
    own = os.getpid()
    if not any(int(found[1]) == own and int(found[5]) <= _CONNECTION_BYTE <= int(found[6]) for found in held):
        return None
    locks = [
        ReadLock(int(found[1]), byte - _READ_BYTES[0])
        for found in held
        for byte in _READ_BYTES
        if int(found[5]) <= byte <= int(found[6]) and int(found[1]) != own
    ]
    return tuple(sorted(set(locks)))


def _place(found: re.Match[str]) -> tuple[int, int, int]:
    return int(found[2], 16), int(found[3], 16), int(found[4])
