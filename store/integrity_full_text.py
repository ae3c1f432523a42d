"""The checks of full text: FTS5's own in its rank form, which alone compares an index with its content.

The form is a write (https://sqlite.org/fts5.html, section 6.4), so that one connection can make one check at a time.
Of a table that is copied, another connection makes it meanwhile, in the copy.
"""

from collections.abc import Callable

from domain.checks import CheckResult, failed, passed
from store import driver
from store.format_gate import schema_statements
from store.naming import NAMED, keys_of_chunks

REBUILD_HINT = "run `knowledge rebuild`: full text is made again from what is stored"
# SQLITE_PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN: the check could not be made
NO_VERDICT_CODES = frozenset({3, 5, 6, 7, 8, 9, 10, 13, 14})
COPIED_TABLE = "chunks_fts"
_PARTS = ("data", "idx", "docsize", "config")  # FTS5 keeps an index in these tables (its documentation, section 10)


def copy_for_check(connection: driver.Connection) -> None:
    """Give a read-only connection a copy of one full-text table, in memory and under the same name, over the chunks of
    the store; the file is not written to. The copy and the chunks are of one state: a read transaction stays open."""
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA query_only = OFF")  # of temporary tables too; the file is open for reading
    connection.execute("BEGIN")
    connection.execute("CREATE TEMP VIEW chunks AS SELECT * FROM main.chunks")
    begins = f"CREATE VIRTUAL TABLE {COPIED_TABLE} "
    statement = next(text for text in schema_statements() if text.startswith(begins))
    connection.execute(statement.replace(begins, f"CREATE VIRTUAL TABLE temp.{COPIED_TABLE} ", 1))
    for part in _PARTS:
        name = f"{COPIED_TABLE}_{part}"
        connection.execute(f"DELETE FROM temp.{name}")  # noqa: S608
        connection.execute(f"INSERT INTO temp.{name} SELECT * FROM main.{name}")  # noqa: S608


def full_text_check(table: str) -> Callable[[driver.Connection], CheckResult]:
    """One full-text table: a row for each chunk and no other, and what it holds is what the chunks say."""
    content = "chunks" if table != "chunks_fts_tri" else "chunks_tri_source"
    rows = f"{table}_docsize"  # one row an indexed chunk (https://sqlite.org/fts5.html, appendix)

    def run(connection: driver.Connection) -> CheckResult:
        name = f"full_text:{table}"
        differs = rank_check(connection, table)
        indexed, wanted = connection.execute(
            f"SELECT (SELECT count(*) FROM {rows}), (SELECT count(*) FROM {content})"  # noqa: S608
        ).fetchone()
        # FTS5 has asked for the row of each chunk, without which it says damaged: of as many, none is a ghost
        if not differs and indexed == wanted:
            return passed(name, table=table)
        first, count = _missing(connection, content, rows)
        ghosts = indexed - (wanted - count)
        found = [f"{count} chunks are missing in it"] * bool(count)
        found += [f"it holds {ghosts} chunks that are no more"] * bool(ghosts)
        found += [f"it differs from the text ({words})" for words in differs]
        keys = keys_of_chunks(connection, first)
        return failed(name, f"{table}: {'; '.join(found)}", REBUILD_HINT, table=table, documents=keys)

    return run


def _missing(connection: driver.Connection, content: str, rows: str) -> tuple[list[int], int]:
    """The first ids of chunks without a row, and how many there are."""
    missing = connection.execute(
        f"SELECT id FROM {content} WHERE NOT EXISTS (SELECT 1 FROM {rows} WHERE {rows}.id = {content}.id)"  # noqa: S608
    )
    first = [row[0] for row in missing.fetchmany(NAMED)]
    return first, len(first) + sum(1 for _ in missing)


def rank_check(connection: driver.Connection, table: str) -> list[str]:
    """The rank form of FTS5's own check; SQLite's words where it fails."""
    try:
        connection.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
    except driver.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in NO_VERDICT_CODES:
            raise
        return [str(error)]
    return []
