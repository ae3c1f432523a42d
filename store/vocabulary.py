"""The vocabulary: how common a stem is, which words are near, and all words with their counts.

A row of an fts5vocab table walks the whole posting list of its term (measured on 430,000 chunks: 9 ms for the
commonest word, 0.06 ms for a rare one), so callers ask for few terms and remember the answer.

These tables know words and no documents. What is hidden is therefore counted by itself, by the same tokenizer over
the text of the hidden documents, and taken off: that costs as much as there is hidden.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from store import driver
from store.analyzer import FOLDED, STEMMED
from store.port import Visibility

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


def words_among(connection: driver.Connection, words: Sequence[str], visibility: Visibility) -> list[tuple[str, int]]:
    found = _counts(connection, "chunks_vocabulary", words)
    return _without_hidden(found, _hidden_counts(connection, visibility, "", FOLDED))


def words_between(
    connection: driver.Connection, first: str, end: str, limit: int, visibility: Visibility
) -> list[tuple[str, int]]:
    found = connection.execute(
        "SELECT term, doc FROM chunks_vocabulary WHERE term >= ? AND term < ? LIMIT ?", (first, end, limit)
    ).fetchall()
    return _without_hidden(found, _hidden_counts(connection, visibility, "", FOLDED))


def word_pages(connection: driver.Connection, column: str, visibility: Visibility) -> Iterator[list[tuple[str, int]]]:
    """Every word with the number of visible chunks that hold it, in that column or ("") anywhere; by the words'
    bytes. A page may be short, or empty, of words that only hidden chunks hold."""
    table, condition, parameters = _source("chunks_vocabulary", _WORDS_BY_COLUMN, connection, column)
    hidden = _hidden_counts(connection, visibility, column, FOLDED)
    after = ""
    while True:
        page = connection.execute(
            f"SELECT term, doc FROM {table} WHERE term > ?{condition} LIMIT ?",  # noqa: S608
            (after, *parameters, WORDS_A_PAGE),
        ).fetchall()
        if page:
            yield _without_hidden(page, hidden)
        if len(page) < WORDS_A_PAGE:
            return
        after = page[-1][0]


def stem_counts_in(
    connection: driver.Connection, stems: Sequence[str], column: str, visibility: Visibility
) -> dict[str, int]:
    """As `stem_counts`, of visible chunks, in one column, or ("") anywhere."""
    table, condition, parameters = _source("chunks_stems", _STEMS_BY_COLUMN, connection, column)
    counts = _counts(connection, table, stems, condition, parameters)
    return dict(_without_hidden(counts, _hidden_counts(connection, visibility, column, STEMMED)))


def _hidden_counts(
    connection: driver.Connection, visibility: Visibility, column: str, tokenizer: str
) -> Mapping[str, int]:
    """Term -> the number of hidden chunks that hold it in the column, or ("") anywhere."""
    hidden = tuple(sorted(visibility.hidden_item_ids))
    if not hidden:
        return {}
    marks = ", ".join("?" * len(hidden))
    rows = connection.execute(
        "SELECT c.id, c.body, c.heading_path, c.names FROM documents AS d JOIN chunks AS c ON c.document = d.id"  # noqa: S608
        f" WHERE d.item_id IN ({marks})",
        hidden,
    )
    kind, condition, parameters = ("col", " WHERE col = ?", (column,)) if column else ("row", "", ())
    with closing(driver.connect(":memory:", uri=False, timeout_s=0.0)) as scratch:
        scratch.execute(f"CREATE VIRTUAL TABLE hidden USING fts5({', '.join(COLUMNS)}, tokenize='{tokenizer}')")
        scratch.executemany(f"INSERT INTO hidden (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?)", rows)  # noqa: S608
        scratch.execute(f"CREATE VIRTUAL TABLE terms USING fts5vocab('hidden', '{kind}')")
        return dict(scratch.execute(f"SELECT term, doc FROM terms{condition}", parameters).fetchall())  # noqa: S608


def _without_hidden(counts: list[tuple[str, int]], hidden: Mapping[str, int]) -> list[tuple[str, int]]:
    if not hidden:
        return counts
    visible = [(term, number - hidden.get(term, 0)) for term, number in counts]
    return [(term, number) for term, number in visible if number > 0]


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
