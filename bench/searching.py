"""Warm search against the best single statement for the same words: 200 fixed queries of one to eight words."""

import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from domain.layout import BaseLayout
from retrieval import statistics as statistics_module
from retrieval.answer import SearchRequest
from retrieval.lexical import words_lane
from retrieval.query_text import parse_query
from retrieval.search import search
from retrieval.statistics import statistics_of
from store.connection import open_reader
from store.port import Visibility
from store.sqlite import SqliteStore

QUERIES = 200
SEED = 20_260
BARE = """
SELECT rowid, bm25(chunks_fts, 1.0, 2.0, 2.0) AS b FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY b LIMIT 50
"""


@dataclass(frozen=True, slots=True)
class SearchFigures:
    """Times of the same queries, ours and bare, as medians over the runs."""

    ratio: float
    worst_extra_ms: float
    median_extra_ms: float
    detail: str


def drawn_queries(home: Path) -> list[str]:
    """Words drawn with the number of their chunks as weight, always the same ones for the same store."""
    connection = open_reader(BaseLayout(home).database)
    try:
        rows = connection.execute("SELECT term, doc FROM chunks_vocabulary WHERE length(term) > 1").fetchall()
    finally:
        connection.close()
    rows = [(term, count) for term, count in rows if term.isalpha()]
    source = random.Random(SEED)
    terms, weights = [term for term, _ in rows], [count for _, count in rows]
    return [" ".join(source.choices(terms, weights, k=1 + number % 8)) for number in range(QUERIES)]


def measure_search(home: Path, *, runs: int) -> SearchFigures:
    """Every query several times, ours and bare in turn on warm connections; the best of each counts."""
    queries = drawn_queries(home)
    store = SqliteStore(BaseLayout(home).database, base_id=None)
    bare_connection = open_reader(BaseLayout(home).database)
    expressions = [_expression(store, query) for query in queries]
    ours: list[list[float]] = [[] for _ in queries]
    bare: list[list[float]] = [[] for _ in queries]
    for _ in range(runs + 1):  # the first round warms the pages
        statistics_module._states.clear()  # what a round has learnt of the vocabulary does not help the next one
        for number, query in enumerate(queries):
            began = time.perf_counter()
            bare_connection.execute(BARE, (expressions[number],)).fetchall()
            middle = time.perf_counter()
            with store.snapshot() as snapshot:
                search(snapshot, SearchRequest(query=query))
            bare[number].append(middle - began)
            ours[number].append(time.perf_counter() - middle)
    bare_connection.close()
    store.close()
    medians = [
        (statistics.median(mine[1:]), statistics.median(floor[1:])) for mine, floor in zip(ours, bare, strict=True)
    ]
    total, floor_total = sum(mine for mine, _ in medians), sum(floor for _, floor in medians)
    extras = sorted((mine - floor) * 1000 for mine, floor in medians if floor < 0.001) or [0.0]
    return SearchFigures(
        ratio=total / floor_total,
        worst_extra_ms=extras[-1],
        median_extra_ms=statistics.median(extras),
        detail=f"{total:.3f} s / {floor_total:.3f} s, {len(extras)} queries with bare < 1 ms",
    )


def _expression(store: SqliteStore, query: str) -> str:
    """The MATCH expression of the words that our search looks for, so that the floor does the same work."""
    with store.snapshot() as snapshot:
        lane = words_lane(
            snapshot,
            parse_query(query).terms,
            statistics=statistics_of(snapshot.identity()),
            limit=50,
            scope=None,
            visibility=Visibility.everything(),
        )
    dropped = {item.term for item in lane.dropped}
    return " OR ".join(f'"{term}"' for term in lane.terms if term not in dropped)
