"""The shared memory beside a database in WAL mode, read as bytes: how much is in the log, and what readers keep in it.

Nothing is opened by SQLite and nothing is locked; the layout is that of https://www.sqlite.org/walformat.html, section
2. What is read may be half a change of another process, so one look alone proves nothing.
"""

import struct
import sys
from pathlib import Path
from typing import NamedTuple

from domain.layout import sidecars

_SIZE_BYTES = 136  # two headers of 48 bytes, then what checkpoints and readers agree on
_VERSION = 3_007_000
_FORMAT = "<" if sys.byteorder == "little" else ">"
_HEADER = struct.Struct(f"{_FORMAT}III BB H II 8x 8s")  # version, _, change, made, _, page size, frames, pages, salts
_MARKS = struct.Struct(f"{_FORMAT}6I")  # frames that are folded in, then a mark for each of five read locks
_MARKS_AT = 96


class WalIndex(NamedTuple):
    """Frames (pages with their headers) of a write-ahead log."""

    page_bytes: int
    frames: int
    folded_in: int  # of them are in the database file already
    log: bytes  # another one once the log was begun anew
    marks: tuple[int, ...]  # by read lock: how far into the log its readers see

    @property
    def waiting_bytes(self) -> int:
        return max(0, self.frames - self.folded_in) * self.page_bytes

    def keeps_back(self, lock: int) -> bool:
        """Whether who holds a read lock sees an older state than the newest one, and keeps the log for it. The first
        lock's readers look at the database file alone."""
        return (self.folded_in if lock == 0 else self.marks[lock]) < self.frames


def wal_index(database: Path) -> WalIndex | None:
    """None where there is none, or none of this kind."""
    try:
        with sidecars(database)[2].open("rb") as file:
            raw = file.read(_SIZE_BYTES)
    except OSError:
        return None
    if len(raw) < _SIZE_BYTES:
        return None
    version, _, _, is_made, _, page_size, frames, _, salts = _HEADER.unpack_from(raw)
    if version != _VERSION or not is_made:
        return None
    folded_in, *marks = _MARKS.unpack_from(raw, _MARKS_AT)
    page_bytes = 65536 if page_size == 1 else page_size
    return WalIndex(page_bytes, frames, min(folded_in, frames), salts, tuple(marks))
