"""Warm search against the best single statement for the same words: 200 fixed queries of one to eight words."""

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
    cpu_ratio: float  # of processor time, which bears a busy machine better
    p50_ms: float
    p99_ms: float
    cpu_p50_ms: float
    cpu_p99_ms: float
    bare_p50_ms: float
    bare_p99_ms: float
    small: int  # queries whose bare statement takes less than a millisecond; without any, there are no extras
    worst_extra_ms: float
    median_extra_ms: float
    median_extra_cpu_ms: float
    detail: str


class Took(NamedTuple):
    """Milliseconds by the clock, and of this process's processor time."""

    wall_ms: float
    cpu_ms: float

    @staticmethod
    def now() -> "Took":
        return Took(time.perf_counter() * 1000, time.process_time() * 1000)

    def since(self, began: "Took") -> "Took":
        return Took(self.wall_ms - began.wall_ms, self.cpu_ms - began.cpu_ms)


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
    """Every query several times, ours and bare in turn on warm connections; the median of each counts."""
    queries = drawn_queries(home)
    store = SqliteStore(BaseLayout(home).database, base_id=None)
    bare_connection = open_reader(BaseLayout(home).database)
    expressions = [_expression(store, query) for query in queries]
    ours: list[list[Took]] = [[] for _ in queries]
    bare: list[list[Took]] = [[] for _ in queries]
    for _ in range(runs + 1):  # the first round warms the pages
        statistics_module._states.clear()  # what a round has learnt of the vocabulary does not help the next one
        for number, query in enumerate(queries):
            began = Took.now()
            bare_connection.execute(BARE, (expressions[number],)).fetchall()
            middle = Took.now()
            with store.snapshot() as snapshot:
                search(snapshot, SearchRequest(query=query))
            bare[number].append(middle.since(began))
            ours[number].append(Took.now().since(middle))
    bare_connection.close()
    store.close()
    quickest = [sum(min(took.wall_ms for took in times[1:]) for times in each) for each in (ours, bare)]
    mine, floors = ([middle_of(times[1:]) for times in each] for each in (ours, bare))
    return _figures(mine, floors, quickest[0] / quickest[1])


def _figures(ours: Sequence[Took], bare: Sequence[Took], least_ratio: float) -> SearchFigures:
    """Of the medians of each query."""
    pairs = list(zip(ours, bare, strict=True))
    small = [(mine, floor) for mine, floor in pairs if floor.wall_ms < 1]
    total_s, floor_s = (sum(took.wall_ms for took in each) / 1000 for each in (ours, bare))
    extras = [mine.wall_ms - floor.wall_ms for mine, floor in small]
    return SearchFigures(
        ratio=total_s / floor_s,
        cpu_ratio=sum(took.cpu_ms for took in ours) / sum(took.cpu_ms for took in bare),
        p50_ms=statistics.median(took.wall_ms for took in ours),
        p99_ms=percentile([took.wall_ms for took in ours], 0.99),
        cpu_p50_ms=statistics.median(took.cpu_ms for took in ours),
        cpu_p99_ms=percentile([took.cpu_ms for took in ours], 0.99),
        bare_p50_ms=statistics.median(took.wall_ms for took in bare),
        bare_p99_ms=percentile([took.wall_ms for took in bare], 0.99),
        small=len(small),
        worst_extra_ms=max(extras, default=0.0),
        median_extra_ms=statistics.median(extras or [0.0]),
        median_extra_cpu_ms=statistics.median([mine.cpu_ms - floor.cpu_ms for mine, floor in small] or [0.0]),
        detail=f"{total_s:.3f} s / {floor_s:.3f} s for {len(pairs)} queries; of the quickest of each {least_ratio:.2f}",
    )


def middle_of(times: Sequence[Took]) -> Took:
    """The medians of both times, each by itself."""
    return Took(statistics.median(took.wall_ms for took in times), statistics.median(took.cpu_ms for took in times))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


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
