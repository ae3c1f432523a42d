"""The vector lane alone: recall against an exact comparison, and times, on vectors that stand around points as those
of text do, or on the vectors of a store.

    python -m bench.vectors synthetic 100000 384 [--json FILE]
    python -m bench.vectors store HOME [--json FILE]
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.figures import NONE, Bar, Sheet
from domain.layout import BaseLayout
from store import vector_memory
from store.connection import open_writer
from store.format_gate import create_if_blank
from store.port import Scope, Visibility
from store.sqlite import SqliteSnapshot, SqliteStore
from store.vector_blocks import rebuild_blocks, vector_pages
from store.vector_schema import create_vector_schema

QUERIES = 100
DEPTH = 10
LANE = 50
SEED = 20_260
Vectors = NDArray[np.float32]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.vectors")
    kinds = parser.add_subparsers(dest="kind", required=True)
    synthetic = kinds.add_parser("synthetic")
    synthetic.add_argument("count", type=int)
    synthetic.add_argument("dimension", type=int)
    stored = kinds.add_parser("store")
    stored.add_argument("home", type=Path)
    for kind in (synthetic, stored):
        kind.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    given = parser.parse_args(arguments)
    sheet = Sheet()
    if given.kind == "store":
        measure(BaseLayout(given.home).database, sheet)
    else:
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder) / "knowledge.db"
            make_store(database, given.count, given.dimension)
            measure(database, sheet)
    sheet.write(given.json)
    return 0


def make_store(database: Path, count: int, dimension: int) -> None:
    """A store of vectors alone, each the one of a chunk with its number."""
    source = np.random.default_rng(SEED)
    centres = source.standard_normal((max(1, count // 50), dimension)).astype("<f4")
    connection = open_writer(database, synchronous="OFF")
    create_if_blank(connection, database, base_id="bench", substring_index="auto")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    create_vector_schema(connection)
    connection.execute(
        "INSERT INTO vector_identities VALUES (1, 'active', 'm', 'm', ?, 1, '', '', x'', 1)", (dimension,)
    )
    for start in range(1, count + 1, 10_000):
        part = min(10_000, count + 1 - start)
        rows = centres[source.integers(0, len(centres), part)] + 0.8 * source.standard_normal((part, dimension))
        vectors = _unit(rows)
        connection.executemany(
            "INSERT INTO embeddings VALUES (?, 1, ?, 1, ?)",
            [(start + at, (start + at).to_bytes(16, "big"), vectors[at].tobytes()) for at in range(part)],
        )
        connection.executemany(
            "INSERT INTO vector_links VALUES (?, 1, ?)", [(start + at, start + at) for at in range(part)]
        )
    rebuild_blocks(connection, 1)
    connection.execute("COMMIT")
    connection.close()


def measure(database: Path, sheet: Sheet) -> None:
    with _snapshot(database) as snapshot:
        connection = snapshot._connection
        identity, dimension = connection.execute(
            "SELECT id, dimension FROM vector_identities WHERE state = 'active'"
        ).fetchone()
        pages = list(vector_pages(connection, identity, dimension))
        ids = np.concatenate([np.asarray(page[0]) for page in pages])
        vectors = np.concatenate([np.frombuffer(page[1], "<f4").reshape(-1, dimension) for page in pages])
        chunk_of = dict(
            connection.execute(
                "SELECT embedding, min(chunk) FROM vector_links WHERE identity = ? GROUP BY embedding", (identity,)
            ).fetchall()
        )
        linked = np.array([embedding in chunk_of for embedding in ids.tolist()])
        ids, vectors = ids[linked], vectors[linked]
    print(f"{len(vectors):,} vectors of {dimension} dimensions")
    queries = _queries(vectors)
    exact = [[chunk_of[ids[at]] for at in _exact(vectors, query, DEPTH)] for query in queries]
    del pages
    with _snapshot(database) as snapshot:
        began = time.perf_counter()
        _find(snapshot, queries[0])
        first_ms = (time.perf_counter() - began) * 1000
        held = next(iter(vector_memory.memory._sets.values()), None)
        size = (held._words.nbytes + held._ids.nbytes) / 1e6 if held is not None else 0.0
        found = [_find(snapshot, query) for query in queries]
        recall = statistics.mean(overlap(one, wanted, DEPTH) for one, wanted in zip(found, exact, strict=True))
        numpy_ms, lane_ms = _in_turn(partial(_exact, vectors, count=LANE), partial(_find, snapshot), queries)
        label = f"vector lane, {len(vectors):,} x {dimension}"
        against, absolute, memory = bars(len(vectors))
        detail = f"{lane_ms:.2f} / {numpy_ms:.2f} ms, median of {QUERIES} queries"
        sheet.add(f"{label}: p50 / numpy exact in memory", lane_ms / numpy_ms, "x", against, detail=detail)
        sheet.add(f"{label}: p50", lane_ms, "ms", absolute)
        sheet.add(f"{label}: first query of a process", first_ms, "ms")
        sheet.add(f"{label}: extra memory", size, "MB", memory)
        sheet.add(f"{label}: recall@{DEPTH}", recall, "", Bar(0.98, 0.99, is_more_better=True))
        last = max(chunk_of.values())
        for share in (2, 10, 100):
            scope = Scope(((1, last // share),))
            began = time.perf_counter()
            _find(snapshot, queries[0], scope)
            first_ms = (time.perf_counter() - began) * 1000
            median = _median_ms(partial(_find, snapshot, scope=scope), queries)
            sheet.add(f"{label}: within one {share}th of it", median, "ms", detail=f"first {first_ms:.0f} ms")


def bars(count: int) -> tuple[Bar, Bar, Bar]:
    """Against numpy, in milliseconds, in megabytes of extra memory; they were set for two sizes."""
    match count:
        case 100_000:
            return Bar(2, 1), NONE, NONE
        case 500_000:
            return NONE, Bar(60, 20), Bar(150, 40)
        case _:
            return NONE, NONE, NONE


def overlap(found: Sequence[int], wanted: Sequence[int], depth: int) -> float:
    """The share of the first `depth` of `wanted` that are among the first `depth` found."""
    exact = set(wanted[:depth])
    return len(exact.intersection(found[:depth])) / max(1, len(exact))


def _queries(vectors: Vectors) -> list[Vectors]:
    """Near a stored vector, but none of them: half way between it and noise of the same spread."""
    source = np.random.default_rng(SEED + 1)
    chosen = vectors[source.integers(0, len(vectors), QUERIES)]
    noise = source.standard_normal(chosen.shape) * vectors[:10_000].std(axis=0)
    return list(_unit(chosen + 0.5 * noise))


def _unit(rows: "NDArray[np.floating]") -> Vectors:
    made: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("<f4")
    return made


def _exact(vectors: Vectors, query: Vectors, count: int) -> list[int]:
    scores = vectors @ query
    best = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
    order: list[int] = best[np.argsort(-scores[best])].tolist()
    return order


def _find(snapshot: SqliteSnapshot, query: Vectors, scope: Scope | None = None) -> list[int]:
    found = snapshot.nearest(query.tobytes(), limit=LANE, scope=scope, visibility=Visibility.everything())
    return [hit.chunk for hit in found.hits]


def _median_ms(ask: Callable[[Vectors], object], queries: Sequence[Vectors]) -> float:
    times = []
    for query in queries:
        began = time.perf_counter()
        ask(query)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def _in_turn(
    one: Callable[[Vectors], object], other: Callable[[Vectors], object], queries: Sequence[Vectors]
) -> tuple[float, float]:
    """Medians of two that are asked in turn: what else the machine does meets both."""
    pairs = [(_median_ms(one, [query]), _median_ms(other, [query])) for query in queries]
    return statistics.median(first for first, _ in pairs), statistics.median(second for _, second in pairs)


@contextmanager
def _snapshot(database: Path) -> Iterator[SqliteSnapshot]:
    store = SqliteStore(database, base_id=None)
    try:
        with store.snapshot() as snapshot:
            yield snapshot
    finally:
        store.close()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
