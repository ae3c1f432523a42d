"""One connection to one state.db: opened, migrated forward, closed. Every call is one short transaction, or a read."""

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from domain.errors import FormatError, KnowledgeError
from store import driver
from store.connection import immediate, open_reader, open_writer, translated
from store.state_schema import STEPS


class StateConnection:
    """What the ledgers of state.db share. Not shared between threads that write at the same time."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        """Raises FormatError for another program's database or one of a newer version."""
        self._path = path
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
        with translated(self._path):
            self._connection.close()

    def _read(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        with translated(self._path):
            return self._connection.execute(statement, tuple(parameters)).fetchall()

    def _write(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        with translated(self._path), immediate(self._connection):
            self._connection.executemany(statement, rows)


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
    return version


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
