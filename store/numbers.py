"""What a monitor wants to know of knowledge.db, so cheaply that it may be asked every few seconds.

Each statement is a read of its own: no transaction stays open between two of them.
"""

import time
from pathlib import Path
from typing import NamedTuple

from domain.layout import sidecars
from store import driver, files, vector_queries
from store.connection import translated
from store.format_gate import FULL_TEXT_TABLES
from store.log_state import read_locks
from store.port import Visibility
from store.queries import counts
from store.wal_index import WalIndex, wal_index

_STRUCTURE_ROW = 10  # of FTS5's own table of data: a cookie, then numbers of levels and of segments
_COOKIE_BYTES = 4
_NEWER_STRUCTURE = b"\xff\x00\x00\x01"  # follows the cookie where the table keeps track of what was deleted


class QuickNumbers(NamedTuple):
    """Costs a few pages, however large the index is."""

    database_bytes: int
    free_bytes: int  # of pages that hold nothing
    log_bytes: int  # on disk
    segments: int  # of the full-text tables together


class SlowNumbers(NamedTuple):
    """Reads the leaves of an index of each table: a tenth of a second for a million."""

    documents: int
    chunks: int
    vectors: int  # of the active identity
    unused_vectors: int


def quick_numbers(connection: driver.Connection, path: Path) -> QuickNumbers:
    database, log, _ = sidecars(path)
    sizes = [status.st_size if status is not None else 0 for status in map(files.lstat_or_none, (database, log))]
    with translated(path):
        page_bytes = int(connection.execute("PRAGMA page_size").fetchone()[0])
        free_pages = int(connection.execute("PRAGMA freelist_count").fetchone()[0])
        segments = sum(full_text_segments(connection, table) for table in FULL_TEXT_TABLES)
    return QuickNumbers(sizes[0], free_pages * page_bytes, sizes[1], segments)


def slow_numbers(connection: driver.Connection, path: Path) -> SlowNumbers:
    with translated(path):
        found = counts(connection, "", Visibility.everything())
        vectors = vector_queries.counts(connection)
    return SlowNumbers(found.documents, found.chunks, vectors.vectors, vectors.unused)


def full_text_segments(connection: driver.Connection, table: str) -> int:
    """As FTS5 itself keeps the number: in the row from which it opens the index."""
    row = connection.execute(f"SELECT block FROM {table}_data WHERE id = ?", (_STRUCTURE_ROW,)).fetchone()  # noqa: S608
    return structure_segments(bytes(row[0])) if row is not None else 0


def structure_segments(structure: bytes) -> int:
    """The number of segments in an FTS5 structure record; 0 for one that is too short."""
    at = _COOKIE_BYTES
    if structure[at : at + 4] == _NEWER_STRUCTURE:
        at += 4
    _levels, at = _varint(structure, at)
    segments, _ = _varint(structure, at)
    return segments


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    """SQLite's: seven bits a byte, the highest first, and a bit that says that more follow."""
    value = 0
    for byte in raw[at : at + 8]:
        value, at = value << 7 | byte & 0x7F, at + 1
        if byte < 0x80:
            break
    return value, at


class LogWatch:
    """Looks at the log again and again: what has waited in it, and who has kept it, since when. Of one database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stand = (b"", -1)  # which log, and how much of it is folded in
        self._waits_since_s = 0.0
        self._readers: dict[tuple[int, int, int], float] = {}  # process, lock and mark, by when they were first seen

    def look(self, now_s: float | None = None) -> "LogNumbers | None":
        """None where there is no log. The caller has a connection to the database open."""
        now_s = time.monotonic() if now_s is None else now_s
        found = wal_index(self._path)
        if found is None:
            self._readers.clear()
            return None
        return LogNumbers(found.waiting_bytes, self._age_s(found, now_s), self._oldest_reader_s(found, now_s))

    def _age_s(self, found: WalIndex, now_s: float) -> float:
        stand = (found.log, found.folded_in)
        if not found.waiting_bytes or stand != self._stand:
            self._waits_since_s = now_s
        self._stand = stand
        return now_s - self._waits_since_s

    def _oldest_reader_s(self, found: WalIndex, now_s: float) -> float | None:
        """The same process at the same lock with the same mark is the same reader: a new one would see more."""
        locks = read_locks(self._path)
        if locks is None:
            return None
        kept = {(held.pid, held.lock, found.marks[held.lock]) for held in locks if found.keeps_back(held.lock)}
        self._readers = {reader: self._readers.get(reader, now_s) for reader in kept}
        return max((now_s - since_s for since_s in self._readers.values()), default=0.0)


class LogNumbers(NamedTuple):
    waiting_bytes: int  # in the log and not in the database file
    age_s: float  # for how long nothing of what waits was folded in
    oldest_reader_s: float | None  # None: the system does not tell
