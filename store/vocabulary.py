"""Look-ups in the vocabulary: how common a stem is, and which words are near.

A row of an fts5vocab table walks the whole posting list of its term (measured on 430,000 chunks: 9 ms for the
commonest word, 0.06 ms for a rare one), so callers ask for few terms and remember the answer.
"""

from collections.abc import Sequence

from store import driver

ASKED_AT_ONCE = 500  # far below SQLite's limit of variables


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


def _counts(connection: driver.Connection, table: str, terms: Sequence[str]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    distinct = list(dict.fromkeys(terms))
    for start in range(0, len(distinct), ASKED_AT_ONCE):
        part = distinct[start : start + ASKED_AT_ONCE]
        marks = ", ".join("?" * len(part))
        found += connection.execute(
            f"SELECT term, doc FROM {table} WHERE term IN ({marks})",  # noqa: S608
            part,
        ).fetchall()
    return found
