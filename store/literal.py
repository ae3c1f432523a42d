"""The literal lane's reads: candidates by their words, then the text itself is looked at.

Candidates of one word come from the exact table, of several from a phrase on the stemmed one, where a last word that
goes on in the text has the same stem often. A literal's words stand side by side in whatever holds the literal, so
none is lost. The stemmed table ranks them all.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from store import driver
from store.lexical import WEIGHTS, lane_filter, quoted
from store.port import LiteralFind, LiteralHit, Scope, Visibility

RANKED_FIRST = 1_000  # of many candidates, the best are looked at first: where the literal is common, they do

_TEXTS = "c.id, c.body, c.heading_path, c.names"
Row = tuple[int, str, str, str]


def find_literal(
    connection: driver.Connection,
    literal: str,
    first: Sequence[int],
    limit: int,
    max_postings: int,
    scope: Scope | None,
    visibility: Visibility,
) -> LiteralFind:
    candidates = _Candidates(connection, literal, *lane_filter(scope, visibility, "rowid"))
    count = candidates.count(max_postings + 1)
    if count > max_postings:
        candidates.cut_at(max_postings)
    exactness = literal_test(literal)
    hits = _Hits(limit)
    hits.add(candidates.among(first), exactness)
    if not hits.is_full():
        hits.add(candidates.best(RANKED_FIRST), exactness)
    if not hits.is_full() and (count > RANKED_FIRST or candidates.are_of_one_word):
        hits.add(candidates.in_id_order(), exactness)
    return LiteralFind(hits.sorted(), truncated=count > max_postings)


def literal_test(literal: str) -> Callable[[str], int]:
    """A function that says how a text holds the literal: 2 in this case, 1 in another, 0 not."""
    wanted = " ".join(literal.split())
    folded = wanted.casefold()
    if " " not in wanted:
        return lambda text: 2 if wanted in text else int(folded in text.casefold())

    def over_blanks(text: str) -> int:
        line = " ".join(text.split())
        return 2 if wanted in line else int(folded in line.casefold())

    return over_blanks


class _Hits:
    """Collects hits in the order in which they come, no chunk twice, until there are enough of exact case."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: dict[int, int] = {}
        self._exact = 0

    def is_full(self) -> bool:
        return self._exact >= self._limit

    def add(self, rows: Iterable[Row], exactness: Callable[[str], int]) -> None:
        for chunk_id, body, heading_path, names in rows:
            if chunk_id in self._seen:
                continue
            found = exactness(body)
            if found < 2 and heading_path:
                found = max(found, exactness(heading_path))
            if found < 2 and names:
                found = max(found, exactness(names))
            if found:
                self._seen[chunk_id] = found
                self._exact += found == 2
                if self.is_full():
                    return

    def sorted(self) -> list[LiteralHit]:
        hits = [LiteralHit(chunk_id, found == 2) for chunk_id, found in self._seen.items()]
        hits.sort(key=lambda hit: not hit.exact)
        return hits[: self._limit]


class _Candidates:
    """The chunks that hold a literal's words."""

    def __init__(self, connection: driver.Connection, literal: str, clause: str, parameters: Sequence[object]) -> None:
        word = "".join(character if character.isalnum() else " " for character in literal).split()
        one_word = len(word) == 1 and literal.isascii()
        self._connection = connection
        self.are_of_one_word = one_word
        self._table = "chunks_fts_exact" if one_word else "chunks_fts"
        self._clause = clause
        self._parameters: tuple[object, ...] = (quoted(word[0] if one_word else literal), *parameters)

    def count(self, limit: int) -> int:
        row = self._connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {self._matching()} LIMIT ?)",  # noqa: S608
            (*self._parameters, limit),
        ).fetchone()
        return int(row[0])

    def cut_at(self, count: int) -> None:
        """From now on only the first `count` of them, by id."""
        row = self._connection.execute(
            f"SELECT rowid FROM {self._matching()} LIMIT 1 OFFSET ?",  # noqa: S608
            (*self._parameters, count - 1),
        ).fetchone()
        self._clause += " AND rowid <= ?"
        self._parameters = (*self._parameters, row[0])

    def best(self, limit: int) -> Iterator[Row]:
        """By BM25 (stems are enough for that); the ranking is over before the first text is read."""
        ids = self._connection.execute(
            f"SELECT rowid, bm25(chunks_fts, {WEIGHTS}) AS b FROM chunks_fts"  # noqa: S608
            f" WHERE chunks_fts MATCH ?{self._clause} ORDER BY b LIMIT ?",
            (*self._parameters, limit),
        ).fetchall()
        return self.among([row[0] for row in ids])

    def among(self, ids: Sequence[int]) -> Iterator[Row]:
        """Texts by id, which lie inside the scope already."""
        return self._texts(
            f"SELECT {_TEXTS} FROM json_each(?) AS wanted CROSS JOIN chunks AS c ON c.id = wanted.value",  # noqa: S608
            (json.dumps(ids),),
        )

    def in_id_order(self) -> Iterator[Row]:
        return self._texts(
            f"SELECT {_TEXTS} FROM (SELECT rowid AS id FROM {self._matching()}) AS found"  # noqa: S608
            " CROSS JOIN chunks AS c ON c.id = found.id",
            self._parameters,
        )

    def _texts(self, statement: str, parameters: Sequence[object]) -> Iterator[Row]:
        """Streamed: of 50,000 texts one is held at a time, and none is read once there are enough."""
        cursor = self._connection.execute(statement, parameters)
        try:
            yield from cursor
        finally:
            cursor.close()

    def _matching(self) -> str:
        return f"{self._table} WHERE {self._table} MATCH ?{self._clause}"
