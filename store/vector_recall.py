"""Reads for measuring how well the nearest vectors are found: the vectors themselves, those that stand for a chunk."""

import json
from collections.abc import Iterator, Sequence

from store import driver

ROWS_A_PAGE = 1024

_PAGE = (
    "SELECT e.id, e.vector FROM embeddings AS e NOT INDEXED WHERE e.identity = ? AND e.id > ? AND length(e.vector) = ?"
    " AND EXISTS (SELECT 1 FROM vector_links AS l WHERE l.embedding = e.id AND l.identity = e.identity)"
    " ORDER BY e.id LIMIT ?"
)
_TEXTS = (
    "SELECT l.chunk, l.embedding FROM json_each(?) AS wanted CROSS JOIN vector_links AS l"
    " ON l.chunk = wanted.value AND l.identity = ?"
)


def linked_ids(connection: driver.Connection, identity: int) -> list[int]:
    """Ids, ascending, of the vectors that stand for a chunk."""
    rows = connection.execute("SELECT DISTINCT embedding FROM vector_links WHERE identity = ?", (identity,)).fetchall()
    return sorted(row[0] for row in rows)


def linked_pages(connection: driver.Connection, identity: int, dimension: int) -> Iterator[tuple[list[int], bytes]]:
    """Those vectors in short pages: ids, ascending, and their numbers one after the other (float32)."""
    last = 0
    while page := connection.execute(_PAGE, (identity, last, dimension * 4, ROWS_A_PAGE)).fetchall():
        last = page[-1][0]
        yield [row[0] for row in page], b"".join([row[1] for row in page])


def vectors_of(connection: driver.Connection, ids: Sequence[int]) -> dict[int, bytes]:
    """Vectors by id, of those that are still there."""
    rows = connection.execute(
        "SELECT e.id, e.vector FROM json_each(?) AS wanted CROSS JOIN embeddings AS e ON e.id = wanted.value",
        (json.dumps(list(ids)),),
    ).fetchall()
    return dict(rows)


def vectors_of_chunks(connection: driver.Connection, identity: int, chunks: Sequence[int]) -> dict[int, int]:
    """The id of the vector that stands for each chunk."""
    return dict(connection.execute(_TEXTS, (json.dumps(list(chunks)), identity)).fetchall())
