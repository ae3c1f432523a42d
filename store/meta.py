"""Numbers that knowledge.db counts in `meta`; the caller of each function holds the transaction."""

from store import driver


def commit_seq(connection: driver.Connection) -> int:
    row = connection.execute("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'commit_seq'").fetchone()
    return int(row[0])


def bump_commit_seq(connection: driver.Connection) -> int:
    """Count a transaction that changes what a query can see."""
    row = connection.execute(
        "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'commit_seq' RETURNING CAST(value AS INTEGER)"
    ).fetchall()[0]
    return int(row[0])


def set_meta(connection: driver.Connection, key: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def take_ids(connection: driver.Connection, table: str, count: int) -> int:
    """Reserve `count` ids of a table that never uses one twice, deleted rows included; they begin behind the answer."""
    key = f"last_id_of_{table}"
    row = connection.execute(
        "SELECT max(coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?), 0),"  # noqa: S608
        f" coalesce((SELECT max(id) FROM {table}), 0))",
        (key,),
    ).fetchone()
    set_meta(connection, key, str(row[0] + count))
    return int(row[0])
