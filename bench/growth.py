"""How each figure grows with the corpus, in units per document or chunk, so that a bend shows.

    python -m bench.growth CORPUS [--files 2000,5000,...] [--chunks 700000,1000000] [--rounds N] [--json FILE]

Sizes below the whole corpus are every n-th of its files in key order, so that each has files of every folder. More
than the whole is made of copies in folders of their own, changed always in the same way: in each copy another tenth of
the long words becomes a word that no other copy has, and every heading says which copy it is of. The same queries are
asked of every size; their words are drawn from the smallest.
"""

import argparse
import json
import re
import shutil
import statistics
import tempfile
import time
import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple

from bench.figures import Sheet
from bench.floors import walk
from bench.matching import KINDS, drawn, shares_of_words
from bench.measure import Sample, knowledge_command, own_configuration, run_command
from bench.searching import drawn_queries, percentile
from domain.layout import BaseLayout
from retrieval.answer import SearchRequest
from retrieval.enumeration import enumerate_documents
from retrieval.match_answer import MatchRequest
from retrieval.search import search
from store.connection import open_reader
from store.sqlite import SqliteSnapshot, SqliteStore

FILES = (2_000, 5_000, 10_000, 20_000, 40_000)
CHUNKS = (700_000, 1_000_000)
LONG_WORD = re.compile(r"[A-Za-z]{7,}")
QUERIES = 60  # searches; complete sets are those of bench.matching
ROUNDS_OF_QUERIES = 2
SETTLE_S = 2.1


@dataclass(frozen=True, slots=True)
class Point:
    """One size of the corpus. Seconds, milliseconds, bytes, as the names say."""

    documents: int
    chunks: int
    text_bytes: int
    index_s: float
    index_cpu_s: float
    no_change_s: float
    no_change_cpu_s: float
    search_p50_ms: float
    search_p99_ms: float
    search_cpu_p50_ms: float
    search_cpu_p99_ms: float
    match_p50_ms: float
    match_cpu_p50_ms: float
    database_bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The queries that every size is asked."""

    searches: tuple[str, ...]
    matches: tuple[str, ...]


def every_nth(corpus: Path, wanted: int) -> list[str]:
    """So many files of the corpus, spread over it; all where it has no more."""
    paths = [path for path, _ in walk(str(corpus))]
    if wanted >= len(paths):
        return paths
    return [paths[number * len(paths) // wanted] for number in range(wanted)]


def changed(text: str, copy: int) -> str:
    """The text of copy 1, 2, ..: of another vocabulary in part, and with headings of its own."""

    def renamed(word: "re.Match[str]") -> str:
        return (
            f"{word[0]}{'bcdfghjkmn'[copy % 10]}oq"
            if zlib.crc32(word[0].lower().encode()) % 10 == copy % 10
            else word[0]
        )

    lines = [
        f"{line} (copy {copy})" if line.startswith("#") else LONG_WORD.sub(renamed, line) for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


def take(corpus: Path, paths: Sequence[str], into: Path, copy: int = 0) -> None:
    """The files as they are, or of a numbered copy."""
    for path in paths:
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not copy:
            shutil.copyfile(corpus / path, target)
            continue
        text = (corpus / path).read_text(encoding="utf-8", errors="replace")
        target.write_text(changed(text, copy), encoding="utf-8")


def index(files: Path, directory: Path) -> Sample:
    sample = run_command(knowledge_command("index", str(files), "--quiet"), cwd=directory)
    if sample.exit_status not in (0, 3):
        raise SystemExit(f"index failed with {sample.exit_status}: {sample.output}")
    return sample


def queries_of(home: Path) -> Asked:
    with closing(open_reader(BaseLayout(home).database)) as connection:
        words = drawn(shares_of_words(connection), KINDS[0])
    if not words:
        raise SystemExit("the smallest size has no words in 5 to 20% of its documents")
    return Asked(tuple(drawn_queries(home)[:QUERIES]), tuple(" ".join(pair) for pair in words))


class Times(NamedTuple):
    """Milliseconds of each query, a median of the rounds: by the clock, and of the processor."""

    wall: list[float]
    cpu: list[float]


def medians_ms(store: SqliteStore, queries: Sequence[str], ask: str) -> Times:
    wall: list[list[float]] = [[] for _ in queries]
    cpu: list[list[float]] = [[] for _ in queries]
    for _ in range(ROUNDS_OF_QUERIES + 1):  # the first round warms the pages
        for number, query in enumerate(queries):
            began, cpu_began = time.perf_counter(), time.process_time()
            with store.snapshot() as snapshot:
                asked(snapshot, query, ask)
            wall[number].append((time.perf_counter() - began) * 1000)
            cpu[number].append((time.process_time() - cpu_began) * 1000)
    return Times(*([statistics.median(after[1:]) for after in times] for times in (wall, cpu)))


def asked(snapshot: SqliteSnapshot, query: str, ask: str) -> None:
    if ask == "search":
        search(snapshot, SearchRequest(query=query))
    else:
        enumerate_documents(snapshot, MatchRequest(query=query))


def measured(files: Path, scratch: Path, rounds: int, queries: Asked | None) -> tuple[Point, Asked]:
    """The best of the rounds by its clock: what else the machine does only adds."""
    first: list[Sample] = []
    for number in range(rounds):
        directory = scratch / f"index-{number}"
        directory.mkdir()
        own_configuration(directory)
        first.append(index(files, directory))
        if number:
            shutil.rmtree(directory)
    directory = scratch / "index-0"
    time.sleep(SETTLE_S)  # checks this close to the last change would not be trusted, and are done again
    index(files, directory)
    again = [index(files, directory) for _ in range(max(rounds, 3))]
    home = directory / "knowledge" / "default"
    queries = queries or queries_of(home)
    store = SqliteStore(BaseLayout(home).database, base_id=None)
    searches = medians_ms(store, queries.searches, "search")
    matches = medians_ms(store, queries.matches, "match")
    store.close()
    report = json.loads(run_command(knowledge_command("stats", "--json"), cwd=directory).output)
    best, quickest = (min(samples, key=lambda sample: sample.wall_s) for samples in (first, again))
    point = Point(
        documents=report["documents"],
        chunks=report["chunks"],
        text_bytes=sum(status.st_size for _, status in walk(str(files))),
        index_s=best.wall_s,
        index_cpu_s=min(sample.cpu_s for sample in first),
        no_change_s=quickest.wall_s,
        no_change_cpu_s=min(sample.cpu_s for sample in again),
        search_p50_ms=statistics.median(searches.wall),
        search_p99_ms=percentile(searches.wall, 0.99),
        search_cpu_p50_ms=statistics.median(searches.cpu),
        search_cpu_p99_ms=percentile(searches.cpu, 0.99),
        match_p50_ms=statistics.median(matches.wall),
        match_cpu_p50_ms=statistics.median(matches.cpu),
        database_bytes=BaseLayout(home).database.stat().st_size,
        peak_bytes=max(sample.peak_bytes for sample in first),
    )
    shutil.rmtree(directory)
    return point, queries


class Growing:
    """A corpus that is measured at one size after the other."""

    def __init__(self, corpus: Path, scratch: Path, rounds: int, kept: Path | None) -> None:
        self._corpus = corpus
        self._scratch = scratch
        self._rounds = rounds
        self._kept = kept
        self._queries: Asked | None = None
        self.points: list[Point] = []

    def measure(self, files: Path) -> Point:
        point, self._queries = measured(files, self._scratch, self._rounds, self._queries)
        self.points.append(point)
        print(point, flush=True)
        data = {"corpus": self._corpus.name, "points": [asdict(one) for one in self.points]}
        Sheet(data=data).write(self._kept)  # what is broken off keeps what it has
        return point

    def by_files(self, sizes: Sequence[int]) -> None:
        for size in sizes:
            files = self._scratch / "files"
            take(self._corpus, every_nth(self._corpus, size), files)
            self.measure(files)
            shutil.rmtree(files)

    def by_chunks(self, sizes: Sequence[int]) -> None:
        """Copies until as many chunks as wanted are there, going by the chunks of a file so far."""
        if not sizes:
            return
        files = self._scratch / "copies"
        paths = every_nth(self._corpus, FILES[-1])
        take(self._corpus, paths, files / "copy-0")
        whole = self.points[-1] if self.points and self.points[-1].documents > 0.99 * len(paths) else None
        there = (whole or self.measure(files)).chunks
        chunks_a_file = there / len(paths)
        left: list[str] = []
        copies = count(1)
        copy = 0
        for size in sizes:
            missing = round((size - there) / chunks_a_file)
            while missing > 0:
                if not left:
                    left, copy = list(paths), next(copies)
                part, left = left[:missing], left[missing:]
                take(self._corpus, part, files / f"copy-{copy}", copy)
                missing -= len(part)
            there = self.measure(files).chunks
        shutil.rmtree(files)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("corpus", type=Path, help="a folder of Markdown")
    parser.add_argument("--files", default=",".join(map(str, FILES)))
    parser.add_argument("--chunks", default=",".join(map(str, CHUNKS)), help="empty: no copies")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--scratch", type=Path, default=None, help="where indexes are made (default: a temporary folder)"
    )
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="knowledge-bench-", dir=chosen.scratch) as folder:
        growing = Growing(chosen.corpus.resolve(), Path(folder), chosen.rounds, chosen.json)
        growing.by_files([int(size) for size in chosen.files.split(",") if size])
        growing.by_chunks([int(size) for size in chosen.chunks.split(",") if size])


if __name__ == "__main__":
    main()
