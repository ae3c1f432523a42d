"""One connection to one state.db: opened, migrated forward, closed. Every call is one short transaction, or a read."""

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from domain.errors import FormatError, KnowledgeError, NotBuiltError
from domain.layout import DATABASE_NAME
from store import driver, files
from store.connection import damaged, immediate, open_reader, open_writer, translated
from store.state_schema import STEPS

RECORD_LOST = "state.db, the record of its folders and runs, is not there beside knowledge.db"
RECORD_LOST_HINT = (
    "run `knowledge restore --force FILE` where there is a backup;"
    " else `knowledge reset --force`, then `knowledge index`"
)
_MADE_TABLE = re.compile(r"CREATE TABLE (\w+)")


class StateConnection:
    """What the ledgers of state.db share. Threads may share one: each call is made whole before another begins."""

    def __init__(self, path: Path, *, read_only: bool = False, remakes_lost: bool = False) -> None:
        """Raises FormatError for another program's database or one of a newer version, IntegrityError for one that
        lacks a table, and NotBuiltError where it is lost beside a knowledge.db: a new one would be of another base,
        and is made with `remakes_lost` alone (a reset)."""
        self._path = path
        # SQLite makes one statement at a time by itself, not one transaction: two threads would meet in one
        self._lock = threading.RLock()
        if not remakes_lost and is_record_lost(path):
            raise NotBuiltError(f"the index at {path.parent} cannot be used: {RECORD_LOST}", hint=RECORD_LOST_HINT)
        self._connection = open_reader(path) if read_only else open_writer(path, synchronous="FULL")
        try:
            if _steps_taken(self._connection, path) < len(STEPS):
                if read_only:
                    _migrate_aside(path)
                else:
                    migrate(self._connection, path)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        with self._lock, translated(self._path):
            self._connection.close()

    def _read(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        with self._lock, translated(self._path):
            return self._connection.execute(statement, tuple(parameters)).fetchall()

    def _write(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self._writing():
            self._connection.executemany(statement, rows)

    @contextmanager
    def _believing(self) -> Iterator[None]:
        """Around what is made of rows. Raises IntegrityError where they hold what was never written into them."""
        try:
            yield
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise damaged(f"a row of it cannot be read: {type(error).__name__}", self._path) from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One write transaction, which no other thread's statement comes into."""
        with self._lock, translated(self._path), immediate(self._connection):
            yield


def is_record_lost(path: Path) -> bool:
    """Whether this state.db is not there, or empty, although a knowledge.db beside it holds something."""
    state, database = files.lstat_or_none(path), files.lstat_or_none(path.with_name(DATABASE_NAME))
    has_state = state is not None and state.st_size > 0
    return not has_state and database is not None and database.st_size > 0


def _steps_taken(connection: driver.Connection, path: Path) -> int:
    with translated(path):
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema").fetchall()}
    if names and "base" not in names:
        raise FormatError(
            f"{path} is a database of another program",
            hint="move it away, or choose another directory",
        )
    if version > len(STEPS):
        raise FormatError(
            f"{path} was written by a newer version of this program (step {version}, known: {len(STEPS)})",
            hint="upgrade this program to the version that wrote it",
        )
    if lost := sorted(_tables_after(version) - names):
        raise damaged(f"it lacks {', '.join(lost)}", path)
    return version


@cache
def _tables_after(version: int) -> frozenset[str]:
    """The tables that a file has when so many steps are taken; no step drops one."""
    return frozenset(name for step in STEPS[:version] for statement in step for name in _MADE_TABLE.findall(statement))


def _migrate_aside(path: Path) -> None:
    """Migrate for a reader, over a connection that may write; where that is not permitted, somebody else has to."""
    try:
        with closing(open_writer(path, synchronous="FULL")) as connection:
            migrate(connection, path)
    except KnowledgeError as error:
        raise FormatError(
            f"{path} was written by an older version of this program, and cannot be brought up to date here"
            f" ({error.message})",
            hint="run `knowledge status` once where the index may be written to",
        ) from error


def migrate(connection: driver.Connection, path: Path) -> None:
    """Take the steps that a file lacks, in one transaction; an empty file gets its base id."""
    with translated(path), immediate(connection):
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        for number, step in enumerate(STEPS[version:], start=version + 1):
            for statement in step:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(
            "INSERT INTO base (id, base_id, created_ns, generation) VALUES (1, ?, ?, 0) ON CONFLICT DO NOTHING",
            (os.urandom(16).hex(), time.time_ns()),
        )
