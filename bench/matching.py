"""Enumerations of a store, warm and cold, each beside the one statement that gives the same counts.

    python -m bench.matching HOME [--runs N] [--json FILE]

HOME is the folder of an index. Words are drawn by the share of the documents that hold them, always the same ones for
the same store. Nothing of an earlier question helps a later one but the table of chunks, which is made once for a
state of the store; what it costs is shown by itself.
"""

import argparse
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from bench.figures import Bar, Sheet
from bench.measure import knowledge_command, run_command
from bench.searching import Took, middle_of
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
    store: SqliteStore, bare: driver.Connection, queries: Sequence[list[str]], kind: Kind, runs: int, sheet: Sheet
) -> None:
    ours: list[float] = []
    ours_cpu: list[float] = []
    floors: list[float] = []
    ratios: list[float] = []
    cpu_ratios: list[float] = []
    for words in queries:
        written = [*words[:-1], f"-{words[-1]}"] if kind.has_minus else words
        request = MatchRequest(query=" ".join(written))
        statement = bare_statement(words, kind.has_minus)
        (floor, floor_cpu), expected = _median(partial(_bare_rows, bare, statement), runs)
        with store.snapshot() as snapshot:
            (took, took_cpu), answer = _median(partial(enumerate_documents, snapshot, request), runs)
        if answer.matched != len(expected):
            raise SystemExit(f"{request.query}: {answer.matched} documents, the bare statement has {len(expected)}")
        ours.append(took)
        ours_cpu.append(took_cpu)
        floors.append(floor)
        ratios.append(took / floor)
        cpu_ratios.append(took_cpu / floor_cpu)
    p50_ms, bare_ms = statistics.median(ours), statistics.median(floors)
    bar, cpu_ms = Bar(kind.must_ms, kind.aim_ms), statistics.median(ours_cpu)
    detail = f"{len(queries)} queries, worst {max(ours):.1f} ms"
    sheet.add(f"match, {kind.name}: p50", p50_ms, "ms", bar, runs=runs, detail=detail, cpu=cpu_ms)
    detail = f"bare {bare_ms:.1f} ms; the worst ratio {max(ratios):.2f}; of CPU {statistics.median(cpu_ratios):.2f}"
    sheet.add(f"match, {kind.name}: / bare", statistics.median(ratios), "x", Bar(1.5), runs=runs, detail=detail)


def _bare_rows(connection: driver.Connection, statement: str) -> list[tuple[int, int, int]]:
    return connection.execute(statement).fetchall()


def _median(function: Callable[[], Result], runs: int) -> tuple[Took, Result]:
    """What it took, and what came out; the first call warms the pages and the table of chunks."""
    result = function()
    times = []
    for _ in range(runs):
        began = Took.now()
        result = function()
        times.append(Took.now().since(began))
    return middle_of(times), result


def measure_first(snapshot: SqliteSnapshot, words: Sequence[str], runs: int, sheet: Sheet) -> None:
    """The first question of a process, with the table of chunks to be made."""

    def first() -> None:
        forget_tables()
        enumerate_documents(snapshot, MatchRequest(query=" ".join(words)))

    took, _ = _median(first, runs)
    sheet.add("match, the first question of a process", took.wall_ms, "ms", runs=runs, detail=" ".join(words))


def measure_commands(home: Path, words: str, runs: int, sheet: Sheet) -> None:
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
            cpu_ms = statistics.median(sample.cpu_s for sample in samples) * 1000
            sheet.add(f"{verb}, a fresh process", took_ms, "ms", runs=runs, detail=words, cpu=cpu_ms)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.matching", description=__doc__)
    parser.add_argument("home", type=Path, help="the folder of an index")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    arguments = parser.parse_args()
    sheet = Sheet()
    database = BaseLayout(arguments.home).database
    bare = open_reader(database)
    store = SqliteStore(database, base_id=None)
    shares = shares_of_words(bare)
    for kind in KINDS:
        queries = drawn(shares, kind)
        if not queries:
            print(f"{kind.name}: no such words in this store")
            continue
        measure_kind(store, bare, queries, kind, arguments.runs, sheet)
        with store.snapshot() as snapshot:
            measure_first(snapshot, queries[0][:2], arguments.runs, sheet)
        measure_commands(arguments.home, " ".join(queries[0][:2]), arguments.runs, sheet)
    bare.close()
    store.close()
    sheet.write(arguments.json)


if __name__ == "__main__":
    main()
