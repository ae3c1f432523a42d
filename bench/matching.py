"""Enumerations of a store, warm and cold, each beside the one statement that gives the same counts.

    python -m bench.matching HOME [--runs N]

HOME is the folder of an index. Words are drawn by the share of the documents that hold them, always the same ones for
the same store. Nothing of an earlier question helps a later one but the table of chunks, which is made once for a
state of the store; what it costs is shown by itself.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from bench.measure import knowledge_command, run_command
from domain.layout import BaseLayout
from retrieval.chunk_documents import forget_tables
from retrieval.enumeration import enumerate_documents
from retrieval.match_answer import MatchRequest
from store import driver
from store.connection import open_reader
from store.sqlite import SqliteSnapshot, SqliteStore

SEED = 20_260
QUERIES = 12  # of each kind
Result = TypeVar("Result")
CANDIDATES = 400  # words whose documents are counted, to find those in a band

_PLACES = (
    "SELECT c.document AS document, {body} AS body, {heading} AS heading, {term} AS term FROM chunks_fts"
    " CROSS JOIN chunks AS c ON c.id = chunks_fts.rowid WHERE chunks_fts MATCH '{{{column}}} : \"{word}\"'"
)


class Kind(NamedTuple):
    """Queries of `words` words, each in between `least` and `most` of the documents, the last with a minus or not."""

    name: str
    words: int
    has_minus: bool
    least: float
    most: float
    must_ms: float
    aim_ms: float


KINDS = (
    Kind("two words, each in 5 to 20% of the documents", 2, False, 0.05, 0.20, 60, 60),
    Kind("two words, each in about half of the documents", 2, False, 0.40, 0.60, 150, 80),
    Kind("two words and one with a minus, each in 5 to 20%", 3, True, 0.05, 0.20, 90, 90),
)


def shares_of_words(connection: driver.Connection) -> dict[str, float]:
    """The share of the documents that hold a word in any form, of the commonest words."""
    (total,) = connection.execute("SELECT count(*) FROM documents").fetchone()
    rows = connection.execute("SELECT term, doc FROM chunks_vocabulary WHERE length(term) > 2").fetchall()
    words = sorted((row for row in rows if row[0].isalpha()), key=lambda row: (-row[1], row[0]))[:CANDIDATES]
    counted = (
        "SELECT count(DISTINCT c.document) FROM chunks_fts CROSS JOIN chunks AS c ON c.id = chunks_fts.rowid"
        " WHERE chunks_fts MATCH ?"
    )
    return {
        word: connection.execute(counted, (f'{{body heading_path}} : "{word}"',)).fetchone()[0] / total
        for word, _ in words
    }


def drawn(shares: dict[str, float], kind: Kind) -> list[list[str]]:
    source = random.Random(SEED)
    # near and not are no words of the language outside quotes
    words = [w for w, share in shares.items() if kind.least <= share <= kind.most and w not in ("and", "not", "near")]
    if len(words) < kind.words:
        return []
    return [source.sample(words, kind.words) for _ in range(QUERIES)]


def bare_statement(words: Sequence[str], has_minus: bool) -> str:
    """Per-document counts of body and heading apart, of the documents that hold every word and not the last one."""
    wanted = words[:-1] if has_minus else words
    parts = [
        _PLACES.format(body=int(column == "body"), heading=int(column != "body"), term=term, column=column, word=word)
        for term, word in enumerate(words)
        for column in ("body", "heading_path")
    ]
    counted = f"count(DISTINCT term) = {len(wanted)}" + (f" AND max(term) < {len(wanted)}" if has_minus else "")
    return (
        f"SELECT document, sum(body), sum(heading) FROM ({' UNION ALL '.join(parts)})"  # noqa: S608 - words of letters
        f" GROUP BY document HAVING {counted}"
    )


def measure_kind(
    store: SqliteStore, bare: driver.Connection, queries: Sequence[list[str]], kind: Kind, runs: int
) -> None:
    ours: list[float] = []
    floors: list[float] = []
    ratios: list[float] = []
    for words in queries:
        written = [*words[:-1], f"-{words[-1]}"] if kind.has_minus else words
        request = MatchRequest(query=" ".join(written))
        statement = bare_statement(words, kind.has_minus)
        floor, expected = _median(partial(_bare_rows, bare, statement), runs)
        with store.snapshot() as snapshot:
            took, answer = _median(partial(enumerate_documents, snapshot, request), runs)
        if answer.matched != len(expected):
            raise SystemExit(f"{request.query}: {answer.matched} documents, the bare statement has {len(expected)}")
        ours.append(took)
        floors.append(floor)
        ratios.append(took / floor)
    print(
        f"{kind.name:<52} p50 {statistics.median(ours):6.1f} ms, worst {max(ours):6.1f} ms"
        f" (must {kind.must_ms:.0f}, aim {kind.aim_ms:.0f}); bare {statistics.median(floors):6.1f} ms,"
        f" ratio {statistics.median(ratios):.2f}, worst {max(ratios):.2f} (must 1.5)"
    )


def _bare_rows(connection: driver.Connection, statement: str) -> list[tuple[int, int, int]]:
    return connection.execute(statement).fetchall()


def _median(function: Callable[[], Result], runs: int) -> tuple[float, Result]:
    """Milliseconds, and what came out; the first call warms the pages and the table of chunks."""
    result = function()
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        result = function()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times), result


def measure_first(snapshot: SqliteSnapshot, words: Sequence[str], runs: int) -> None:
    """The first question of a process, with the table of chunks to be made."""

    def first() -> None:
        forget_tables()
        enumerate_documents(snapshot, MatchRequest(query=" ".join(words)))

    took, _ = _median(first, runs)
    print(f"{'the first question of a process: ' + ' '.join(words):<52} p50 {took:6.1f} ms")


def measure_commands(home: Path, words: str, runs: int) -> None:
    """Whole commands in fresh processes: ours, and `search` for the same words."""
    with tempfile.TemporaryDirectory(prefix="knowledge-bench-") as directory:
        configuration = Path(directory, "knowledge.yaml")
        configuration.write_text(f"knowledge:\n  directory: {home.resolve()}\n", encoding="utf-8")
        for verb in ("match", "search"):
            command = knowledge_command(verb, *words.split(), "--config", str(configuration))
            samples = [run_command(command, cwd=Path(directory)) for _ in range(runs)]
            if any(sample.exit_status for sample in samples):
                raise SystemExit(samples[0].output)
            took_ms = statistics.median(sample.wall_s for sample in samples) * 1000
            print(f"{f'a fresh process: {verb} {words}':<52} p50 {took_ms:6.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matching", description=__doc__)
    parser.add_argument("home", type=Path, help="the folder of an index")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    database = BaseLayout(arguments.home).database
    bare = open_reader(database)
    store = SqliteStore(database, base_id=None)
    shares = shares_of_words(bare)
    for kind in KINDS:
        queries = drawn(shares, kind)
        if not queries:
            print(f"{kind.name}: no such words in this store")
            continue
        measure_kind(store, bare, queries, kind, arguments.runs)
        with store.snapshot() as snapshot:
            measure_first(snapshot, queries[0][:2], arguments.runs)
        measure_commands(arguments.home, " ".join(queries[0][:2]), arguments.runs)
    bare.close()
    store.close()


if __name__ == "__main__":
    main()
