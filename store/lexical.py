"""Ranked reads of knowledge.db: the words lane, hydration, and which chunks a lane may give.

Scores are FTS5's bm25(), lower is better. `ORDER BY b LIMIT n` on the function's value is 2.35 times faster
than `ORDER BY rank` with the same weights; a second sort key costs a third more, so ties are left in the
order in which they are met, which is by chunk id (https://sqlite.org/fts5.html, section 5.1.1).
"""

import json
from collections.abc import Sequence
from itertools import groupby

from domain.hashes import text_hash
from store import driver
from store.port import ChunkSketch, FoundChunk, Scope, Visibility
from store.queries import hidden_clause, key_range

WEIGHTS = "1.0, 2.0, 2.0"  # body, heading_path (S0-12), names (R30)
_NO_TEXT = text_hash("")
MAX_RANGES_AS_TERMS = 16  # more are looked up in a set: a chain of comparisons a posting would cost more

# hashes stand before the texts in a row: none of these is read
_SKETCH = """
SELECT c.id, c.text_hash, c.text_hash <> ? FROM json_each(?) AS wanted
CROSS JOIN chunks AS c ON c.id = wanted.value ORDER BY wanted.key
"""
_FOUND = """
SELECT c.id, d.key, c.ordinal, c.heading_path, c.body, c.names, c.start_line, c.end_line,
    d.title, d.root, d.file_hash, d.indexed_ns, d.mtime_ns
FROM json_each(?) AS wanted
CROSS JOIN chunks AS c ON c.id = wanted.value CROSS JOIN documents AS d ON d.id = c.document
"""


def quoted(term: str) -> str:
    """A term as an FTS5 string: nothing in it is syntax. It holds no NUL, which would end the expression."""
    return '"' + term.replace('"', '""') + '"'


def lane_filter(scope: Scope | None, visibility: Visibility, rowid: str) -> tuple[str, tuple[object, ...]]:
    """Conditions (each starting with AND) on a lane's rowid, and their parameters."""
    clause, parameters = _scope_clause(scope, rowid) if scope is not None else ("", ())
    if not visibility.hidden_item_ids:
        return clause, parameters
    hidden = tuple(sorted(visibility.hidden_item_ids))
    marks = ", ".join("?" * len(hidden))
    clause += (
        f" AND {rowid} NOT IN (SELECT c.id FROM documents AS d JOIN chunks AS c ON c.document = d.id"  # noqa: S608
        f" WHERE d.item_id IN ({marks}))"
    )
    return clause, (*parameters, *hidden)


def _scope_clause(scope: Scope, rowid: str) -> tuple[str, tuple[object, ...]]:
    if not scope.ranges:
        return " AND 0", ()
    first, last = scope.ranges[0][0], scope.ranges[-1][1]
    clause, ends = f" AND {rowid} BETWEEN ? AND ?", (first, last)  # FTS5 skips what lies outside
    if len(scope.ranges) == 1:
        return clause, ends
    if len(scope.ranges) <= MAX_RANGES_AS_TERMS:
        either = " OR ".join([f"+{rowid} BETWEEN ? AND ?"] * len(scope.ranges))
        return f"{clause} AND ({either})", (*ends, *(end for pair in scope.ranges for end in pair))
    inside = (
        " SELECT c.id FROM json_each(?) AS span JOIN chunks AS c"
        " ON c.id BETWEEN json_extract(span.value, '$[0]') AND json_extract(span.value, '$[1]')"
    )
    return f"{clause} AND +{rowid} IN ({inside})", (*ends, json.dumps(scope.ranges))


def rank_words(
    connection: driver.Connection,
    terms: Sequence[str],
    limit: int,
    scope: Scope | None,
    visibility: Visibility,
) -> list[int]:
    """Chunks with any of the terms: one statement on the stemmed table (R7)."""
    if not terms:
        return []
    clause, parameters = lane_filter(scope, visibility, "rowid")
    rows = connection.execute(
        f"SELECT bm25(chunks_fts, {WEIGHTS}) AS b, rowid FROM chunks_fts"  # noqa: S608
        f" WHERE chunks_fts MATCH ?{clause} ORDER BY b LIMIT ?",
        (" OR ".join(map(quoted, terms)), *parameters, limit),
    ).fetchall()
    rows.sort()  # sorted already, but for ties
    return [row[1] for row in rows]


def sketches(connection: driver.Connection, ids: Sequence[int]) -> list[ChunkSketch]:
    rows = connection.execute(_SKETCH, (_NO_TEXT, _json(ids))).fetchall()
    return list(map(ChunkSketch._make, rows))


def found_chunks(connection: driver.Connection, ids: Sequence[int], visibility: Visibility) -> list[FoundChunk]:
    """One hydrating join in the order of `ids`; chunks gone in between are left out (S0-36, S0-37)."""
    clause, hidden = hidden_clause(visibility, "d.item_id")
    rows = connection.execute(
        f"{_FOUND} WHERE 1{clause} ORDER BY wanted.key",
        (_json(ids), *hidden),
    ).fetchall()
    return list(map(FoundChunk._make, rows))


def _json(ids: Sequence[int]) -> str:
    """A list of integers as JSON, in half the time that json.dumps takes."""
    return str(list(ids))


def has_documents(connection: driver.Connection) -> bool:
    return connection.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is not None


def document_ids(connection: driver.Connection, prefix: str) -> list[tuple[int, str]]:
    first, end = key_range(prefix)
    rows = connection.execute("SELECT id, key FROM documents WHERE key >= ? AND key < ?", (first, end)).fetchall()
    rows.sort()
    return rows


def scope_of(connection: driver.Connection, chosen: Sequence[int]) -> Scope | None:
    """Runs of chosen documents, with nothing but gaps between, become ranges of chunk ids."""
    wanted = frozenset(chosen)
    every = sorted(row[0] for row in connection.execute("SELECT id FROM documents").fetchall())
    if len(wanted) >= len(every):
        return None
    runs = []
    for inside, run in groupby(every, key=wanted.__contains__):
        if inside:
            documents = list(run)
            runs.append((documents[0], documents[-1]))
    rows = connection.execute(
        "SELECT (SELECT min(id) FROM chunks WHERE document = json_extract(run.value, '$[0]')),"
        " (SELECT max(id) FROM chunks WHERE document = json_extract(run.value, '$[1]'))"
        " FROM json_each(?) AS run",
        (json.dumps(runs),),
    ).fetchall()
    return Scope(tuple((first, last) for first, last in rows))
