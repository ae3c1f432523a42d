"""Full-text rows of chunks, by a handful of set-wise statements (R27); the caller holds the transaction."""

from store import driver

_COLUMNS = "body, heading_path, names"


def insert_full_text(connection: driver.Connection, first_id: int, last_id: int) -> None:
    """Fill the full-text tables from a range of chunk ids, one statement a table."""
    ids = (first_id, last_id)
    for table in ("chunks_fts", "chunks_fts_exact"):
        connection.execute(
            f"INSERT INTO {table} (rowid, {_COLUMNS}) SELECT id, {_COLUMNS} FROM chunks"  # noqa: S608
            " WHERE id BETWEEN ? AND ?",
            ids,
        )
    connection.execute(
        f"INSERT INTO chunks_fts_tri (rowid, {_COLUMNS}) SELECT id, {_COLUMNS} FROM chunks"  # noqa: S608
        " WHERE id BETWEEN ? AND ? AND in_tri = 1",
        ids,
    )


def delete_full_text(connection: driver.Connection, chosen: str) -> None:
    """Delete the full-text rows of chunks before the chunks themselves go: FTS5 must be told what it held. `chosen` is
    a FROM clause over `chunks` that ends in a condition."""
    for table in ("chunks_fts", "chunks_fts_exact"):
        connection.execute(
            f"INSERT INTO {table} ({table}, rowid, {_COLUMNS}) SELECT 'delete', id, {_COLUMNS} {chosen} ORDER BY id"
        )
    connection.execute(
        f"INSERT INTO chunks_fts_tri (chunks_fts_tri, rowid, {_COLUMNS})"
        f" SELECT 'delete', id, {_COLUMNS} {chosen} AND in_tri = 1 ORDER BY id"
    )
