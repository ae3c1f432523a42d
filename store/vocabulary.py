"""The vocabulary: how common a stem is, which words are near, and all words with their counts.

A row of an fts5vocab table walks the whole posting list of its term (measured on 430,000 chunks: 9 ms for the
commonest word, 0.06 ms for a rare one), so callers ask for few terms and remember the answer.
"""

from collections.abc import Iterator, Sequence

from store import driver

ASKED_AT_ONCE = 500  # far below SQLite's limit of variables
WORDS_A_PAGE = 20_000  # read at a time: some 2 MB
COLUMNS = ("body", "heading_path", "names")
# by column, made when they are asked for: (name, table, and the full-text table that they read)
_WORDS_BY_COLUMN = ("words_by_column", "chunks_fts_exact")
_STEMS_BY_COLUMN = ("stems_by_column", "chunks_fts")


def chunk_total(connection: driver.Connection) -> int:
    """How many chunks the full-text tables hold: the narrowest table with a row for each."""
    row = connection.execute("SELECT count(*) FROM chunks_fts_docsize").fetchone()
    return int(row[0])


def stem_counts(connection: driver.Connection, stems: Sequence[str]) -> dict[str, int]:
    return dict(_counts(connection, "chunks_stems", stems))


def words_among(connection: driver.Connection, words: Sequence[str]) -> list[tuple[str, int]]:
    return _counts(connection, "chunks_vocabulary", words)


def words_between(connection: driver.Connection, first: str, end: str, limit: int) -> list[tuple[str, int]]:
    return connection.execute(
        "SELECT term, doc FROM chunks_vocabulary WHERE term >= ? AND term < ? LIMIT ?", (first, end, limit)
    ).fetchall()


def word_pages(connection: driver.Connection, column: str) -> Iterator[list[tuple[str, int]]]:
    """Every word with the number of chunks that hold it, in that column or ("") anywhere; by the words' bytes."""
    table, condition, parameters = _source("chunks_vocabulary", _WORDS_BY_COLUMN, connection, column)
    after = ""
    while True:
        page = connection.execute(
            f"SELECT term, doc FROM {table} WHERE term > ?{condition} LIMIT ?",  # noqa: S608
            (after, *parameters, WORDS_A_PAGE),
        ).fetchall()
        if page:
            yield page
        if len(page) < WORDS_A_PAGE:
            return
        after = page[-1][0]


def stem_counts_in(connection: driver.Connection, stems: Sequence[str], column: str) -> dict[str, int]:
    """As `stem_counts`, in one column, or ("") anywhere."""
    table, condition, parameters = _source("chunks_stems", _STEMS_BY_COLUMN, connection, column)
    return dict(_counts(connection, table, stems, condition, parameters))


def _source(
    whole: str, by_column: tuple[str, str], connection: driver.Connection, column: str
) -> tuple[str, str, tuple[str, ...]]:
    """The table to read, and what narrows it to the column."""
    if not column:
        return whole, "", ()
    name, full_text = by_column
    if column not in COLUMNS:
        raise ValueError(f"no column {column!r}")
    # a table of this connection alone, which holds no row; the file cannot be written to in any case
    connection.execute("PRAGMA query_only = OFF")
    try:
        connection.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{name} USING fts5vocab(main, {full_text}, col)")
    finally:
        connection.execute("PRAGMA query_only = ON")
    return f"temp.{name}", " AND col = ?", (column,)


def _counts(
    connection: driver.Connection,
    table: str,
    terms: Sequence[str],
    condition: str = "",
    parameters: tuple[str, ...] = (),
) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    distinct = list(dict.fromkeys(terms))
    for start in range(0, len(distinct), ASKED_AT_ONCE):
        part = distinct[start : start + ASKED_AT_ONCE]
        marks = ", ".join("?" * len(part))
        found += connection.execute(
            f"SELECT term, doc FROM {table} WHERE term IN ({marks}){condition}",  # noqa: S608
            (*part, *parameters),
        ).fetchall()
    return found
