"""P28: what a reader of an index is connected by takes no statement that would change it."""

import hashlib
from contextlib import closing
from pathlib import Path

from store import driver
from store.connection import open_reader
from tests.support.bases import build_base
from tests.support.scratch import scratch_directory
from tests.support.write_attempts import Statement, statements

COUNT = 1_000


def digests(home: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in home.glob("*.db")}


def tables_of(connection: driver.Connection) -> list[tuple[str, list[str]]]:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    columns = {name: connection.execute("SELECT name FROM pragma_table_info(?)", (name,)).fetchall() for name in names}
    return [(name, [column for (column,) in columns[name]]) for name in names]


def test_a_thousand_statements_are_refused() -> None:
    """Of knowledge.db and of state.db, whatever the first statement has switched off."""
    with scratch_directory() as place:
        home = build_base(place).home
        before = digests(home)
        for database in (home / "knowledge.db", home / "state.db"):
            with closing(open_reader(database)) as connection:
                connection.execute("PRAGMA query_only = OFF")
                taken = [
                    attempt.sql for attempt in statements(tables_of(connection), COUNT) if takes(connection, attempt)
                ]
                assert taken == []
        assert digests(home) == before
        assert not any(log.stat().st_size for log in home.glob("*-wal"))


def takes(connection: driver.Connection, attempt: Statement) -> bool:
    sql, parameters = attempt
    try:
        connection.execute(sql, parameters).fetchall()
    except driver.Error:
        return False
    return True
