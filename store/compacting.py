"""Making knowledge.db small: full-text segments merged, empty pages given back, the write-ahead log cut to nothing.

What a query sees does not change. Every step is a transaction of its own, so that a search and another writer's turn
come between two of them, and a process that is killed leaves a sound store that is merely less compact.
"""

from pathlib import Path
from typing import NamedTuple

from domain.layout import sidecars
from store import driver, files, log_keeping
from store.connection import BUSY_TIMEOUT_S, translated
from store.format_gate import FULL_TEXT_TABLES

MERGED_PAGES_PER_STEP = 250  # of FTS5, 2 MB: some 50 ms under SQLite's lock
VACUUMED_PAGES_PER_STEP = 2048  # 16 MiB, as much as goes into the log before it is written back


class StoreSizes(NamedTuple):
    """What a store takes on disk."""

    bytes: int  # knowledge.db and its write-ahead log
    free_bytes: int  # of pages that hold nothing
    segments: int  # of the three full-text tables together; a query reads all of them


def sizes(connection: driver.Connection, path: Path) -> StoreSizes:
    """Sizes by path calls alone: SQLite has the files open."""
    database, log, _ = sidecars(path)
    found = [status.st_size for status in map(files.lstat_or_none, (database, log)) if status is not None]
    with translated(path):
        page_bytes = _number(connection, "PRAGMA page_size")
        segments = sum(_segments(connection, table) for table in FULL_TEXT_TABLES)
        return StoreSizes(sum(found), _number(connection, "PRAGMA freelist_count") * page_bytes, segments)


def merge_full_text(connection: driver.Connection, path: Path) -> None:
    """Merge every full-text table into one segment; what was deleted is then no longer in it.

    In steps, as https://sqlite.org/fts5.html describes it under 'merge': a negative number of pages takes all segments
    together, positive ones go on, and a step that changes fewer than two rows had nothing left to do.

    Raises IntegrityError where a table is damaged, StorageError, DiskFullError.
    """
    for table in FULL_TEXT_TABLES:
        pages = -MERGED_PAGES_PER_STEP
        with translated(path):
            while pages > 0 or _segments(connection, table) > 1:
                before = connection.total_changes
                connection.execute(f"INSERT INTO {table}({table}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608
                if connection.total_changes - before < 2:
                    break
                pages = MERGED_PAGES_PER_STEP


def give_back_pages(connection: driver.Connection, path: Path) -> int:
    """Move what stands behind empty pages into them and cut the file; says how many pages went.

    The file itself is cut when the log is written back (`truncate_log`).
    """
    gone = 0
    with translated(path):
        while free := _number(connection, "PRAGMA freelist_count"):
            connection.execute(f"PRAGMA incremental_vacuum({VACUUMED_PAGES_PER_STEP})").fetchall()
            went = free - _number(connection, "PRAGMA freelist_count")
            gone += went
            if went <= 0:  # a file that was not laid out for it
                break
    return gone


def rewrite_whole(connection: driver.Connection, path: Path) -> None:
    """Write the file anew from its rows alone (VACUUM): nothing of what was deleted is left in the gaps of its pages.

    Needs as much free space again, twice for a moment. Killed, the old file stands. Raises DiskFullError.
    """
    with translated(path):
        connection.execute("VACUUM")


def truncate_log(connection: driver.Connection, path: Path) -> bool:
    """Write the log back and cut it to nothing; False where a reader that looks at an older state kept it from that."""
    with translated(path):
        return log_keeping.truncate_log(connection, round(BUSY_TIMEOUT_S * 1000))


def _segments(connection: driver.Connection, table: str) -> int:
    """FTS5 keeps an entry for the first term of each page in `_idx`, by segment."""
    return _number(connection, f"SELECT count(DISTINCT segid) FROM {table}_idx")  # noqa: S608


def _number(connection: driver.Connection, statement: str) -> int:
    return int(connection.execute(statement).fetchone()[0])
