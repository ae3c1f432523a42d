"""`make bench CORPUS=FOLDER`: the figures of the release bar, each beside its floor of the same run.

Medians of `--runs` runs (at least three). Results go to `bench/results/` as JSON and to the terminal as a table.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.figures import NONE, Bar, Sheet
from bench.floors import walk
from bench.measure import Sample, knowledge_command, median_of, own_configuration, python_command, run_command
from bench.queue_share import queue_seconds
from bench.searching import SearchFigures, measure_search

MEGABYTE = 1_000_000
LARGE_FROM_FILES = 20_000


class Bench:
    """One corpus, one scratch directory, the figures found so far."""

    def __init__(self, corpus: Path, scratch: Path, runs: int) -> None:
        self.corpus = corpus
        self.scratch = scratch
        self.runs = runs
        self.sheet = Sheet()
        self.keys = [f"c/{path}" for path, _ in walk(str(corpus))]
        self.is_large = len(self.keys) >= LARGE_FROM_FILES

    def of_large(self, must: float, aim: float) -> Bar:
        """A bar that was set for a large corpus."""
        return Bar(must, aim) if self.is_large else NONE

    def of_small(self, must: float, aim: float) -> Bar:
        return NONE if self.is_large else Bar(must, aim)

    def add(self, name: str, value: float, unit: str, bar: Bar = NONE, detail: str = "", **more: Any) -> None:
        self.sheet.add(name, value, unit, bar, **{"runs": self.runs, **more}, detail=detail)

    def fresh(self, name: str) -> Path:
        directory = self.scratch / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        own_configuration(directory)
        return directory

    def index(self, directory: Path, *arguments: str, corpus: Path | None = None) -> Sample:
        command = knowledge_command("index", str(corpus or self.corpus), "--quiet", *arguments)
        sample = run_command(command, cwd=directory)
        if sample.exit_status not in (0, 3):
            raise SystemExit(f"index failed with {sample.exit_status}: {sample.output}")
        return sample


def first_index(bench: Bench) -> Path:
    """First index against the bare insert, in turn; answers the directory with the last index."""
    indexed: list[Sample] = []
    bare: list[Sample] = []
    for _ in range(bench.runs):
        directory = bench.fresh("first")
        indexed.append(bench.index(directory))
        bare.append(
            run_command(
                python_command("-m", "bench.floors", "insert", str(bench.corpus), str(bench.scratch)), cwd=Path.cwd()
            )
        )
        if bare[-1].exit_status:
            raise SystemExit(bare[-1].output)
    wall = [a.wall_s / b.wall_s for a, b in zip(indexed, bare, strict=True)]
    cpu = [a.cpu_s / b.cpu_s for a, b in zip(indexed, bare, strict=True)]
    index_s, bare_s = (median_of(samples, lambda s: s.wall_s) for samples in (indexed, bare))
    detail = f"{index_s:.2f} s / {bare_s:.2f} s"
    bench.add("first index, wall / bare insert wall", statistics.median(wall), "x", bench.of_large(1.3, 1.0), detail)
    bench.add("first index, wall - bare insert wall", index_s - bare_s, "s", bench.of_small(0.8, 0.5), detail)
    cpu_detail = f"{median_of(indexed, lambda s: s.cpu_s):.2f} s / {median_of(bare, lambda s: s.cpu_s):.2f} s"
    bench.add("first index, CPU / bare insert CPU", statistics.median(cpu), "x", bench.of_large(1.6, 1.3), cpu_detail)
    peak = median_of(indexed, lambda s: s.peak_bytes) / MEGABYTE
    bench.add("peak memory of the whole run", peak, "MB", bench.of_large(400, 250))
    share = statistics.median(queue_seconds(bench.keys) for _ in range(3)) / index_s
    bench.add("share of the queue in the run", share * 100, "%", bench.of_large(8, 4), runs=3)
    return bench.scratch / "first"


def size(bench: Bench, directory: Path) -> None:
    report = json.loads(run_command(knowledge_command("stats", "--json"), cwd=directory).output)
    text_bytes = sum(status.st_size for _, status in walk(str(bench.corpus)))
    database = directory / "knowledge" / "default" / "knowledge.db"
    bench.add("database size / text", database.stat().st_size / text_bytes, "x", bench.of_large(2.6, 2.2), runs=1)
    bench.add("documents", report["documents"], "", detail=f"{report['chunks']} chunks", runs=1)


def no_change(bench: Bench, directory: Path) -> None:
    """A run that finds nothing to do, minus the command's own start, against the bare walk."""
    time.sleep(2.1)  # checks this close to the last change would not be trusted (and are done again)
    bench.index(directory)
    ratios: list[float] = []
    cpu_ratios: list[float] = []
    details: list[str] = []
    walk_command = python_command("-m", "bench.floors", "walk", str(bench.corpus))
    for _ in range(max(bench.runs, 5)):
        version = run_command(knowledge_command("--version"), cwd=directory)
        run = bench.index(directory)
        floor = json.loads(run_command(walk_command, cwd=Path.cwd()).output)
        ratios.append((run.wall_s - version.wall_s) / floor["seconds"])
        cpu_ratios.append((run.cpu_s - version.cpu_s) / floor["cpu_seconds"])
        details.append(f"({run.wall_s:.3f} - {version.wall_s:.3f}) / {floor['seconds']:.3f} s")
    middle = sorted(range(len(ratios)), key=ratios.__getitem__)[len(ratios) // 2]
    bench.add("no-change run / bare walk", ratios[middle], "x", bench.of_large(3, 2), details[middle], runs=len(ratios))
    bench.add("no-change run / bare walk, CPU", statistics.median(cpu_ratios), "x", runs=len(ratios))


def one_changed(bench: Bench) -> None:
    """One file changed, on a copy of the corpus: command start until a search finds the new words."""
    copy = bench.fresh("changed") / "corpus"
    shutil.copytree(bench.corpus, copy, symlinks=True)
    directory = copy.parent
    bench.index(directory, corpus=copy)
    time.sleep(2.1)
    bench.index(directory, corpus=copy)
    target = copy / walk(str(copy))[len(walk(str(copy))) // 2][0]
    changes: list[Sample] = []
    for number in range(max(bench.runs, 3)):
        word = f"zyxwvu{number}{time.time_ns()}"
        with target.open("a", encoding="utf-8") as file:
            file.write(f"\n\n{word}\n")
        changes.append(bench.index(directory, corpus=copy))
        found = run_command(knowledge_command("search", word, "--json"), cwd=directory)
        if word not in found.output or not json.loads(found.output)["results"]:
            raise SystemExit("the changed file was not found")
    bar = bench.of_large(2.0, 1.0)
    wall_s, cpu_s = (median_of(changes, value) for value in (lambda s: s.wall_s, lambda s: s.cpu_s))
    told = {"runs": len(changes), "cpu": cpu_s}
    bench.add("one file changed: command start to searchable", wall_s, "s", bar, least(changes), **told)
    shutil.rmtree(directory)


def least(samples: Sequence[Sample]) -> str:
    """The quickest, which says most on a busy machine."""
    return f"the quickest {min(sample.wall_s for sample in samples):.3f} s"


def search(bench: Bench, directory: Path) -> None:
    figures: SearchFigures = measure_search(directory / "knowledge" / "default", runs=max(bench.runs, 3))
    bench.add("search, warm, sum / bare sum", figures.ratio, "x", bench.of_large(1.5, 1.2), figures.detail)
    bench.add("search, warm, CPU sum / bare CPU sum", figures.cpu_ratio, "x")
    bench.add(
        "search, warm, p50", figures.p50_ms, "ms", cpu=figures.cpu_p50_ms, detail=f"bare {figures.bare_p50_ms:.2f} ms"
    )
    bench.add(
        "search, warm, p99", figures.p99_ms, "ms", cpu=figures.cpu_p99_ms, detail=f"bare {figures.bare_p99_ms:.2f} ms"
    )
    if figures.small:
        detail = f"{figures.small} queries are that small; median extra of CPU {figures.median_extra_cpu_ms:.2f} ms"
        worst, median = figures.worst_extra_ms, figures.median_extra_ms
        bench.add("search, warm, worst extra where bare < 1 ms", worst, "ms", bench.of_large(1.0, 0.5), detail)
        bench.add("search, warm, median extra where bare < 1 ms", median, "ms", detail=detail)
    cold = [
        run_command(knowledge_command("search", "kernel", "driver"), cwd=directory)
        for _ in range(max(bench.runs * 3, 9))
    ]
    bench.add(
        "knowledge search, cold process",
        median_of(cold, lambda sample: sample.wall_s),
        "s",
        bench.of_large(0.40, 0.20),
        least(cold),
        runs=len(cold),
        cpu=median_of(cold, lambda sample: sample.cpu_s),
    )


def memory_growth(bench: Bench) -> None:
    """Peak memory of the whole corpus against its first 10,000 files."""
    part = bench.fresh("part") / "corpus"
    for path, _ in walk(str(bench.corpus))[:10_000]:
        target = part / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(bench.corpus / path, target)
    peaks = [bench.index(bench.fresh("small"), corpus=part).peak_bytes for _ in range(2)]
    whole = next(f.value for f in bench.sheet.figures if f.name == "peak memory of the whole run")
    small = statistics.median(peaks) / MEGABYTE
    detail = f"{whole:.0f} / {small:.0f} MB"
    bench.add("peak memory against 10,000 files", whole / small, "x", bench.of_large(1.25, 1.1), detail, runs=2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("corpus", type=Path, help="a folder of Markdown")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scratch", type=Path, default=None, help="where indexes are made (default: a temporary one)")
    parser.add_argument("--only", default="", help="comma-separated: index,search,no_change,changed,memory")
    parser.add_argument("--json", type=Path, default=None, help="where the figures go (default: bench/results)")
    arguments = parser.parse_args()
    parent = tempfile.mkdtemp(prefix="knowledge-bench-", dir=arguments.scratch)
    bench = Bench(arguments.corpus.resolve(), Path(parent), max(arguments.runs, 1))
    wanted = set(filter(None, arguments.only.split(",")))
    try:
        directory = first_index(bench)
        size(bench, directory)
        parts: dict[str, Callable[[], None]] = {
            "no_change": lambda: no_change(bench, directory),
            "search": lambda: search(bench, directory),
            "changed": lambda: one_changed(bench),
            "memory": lambda: memory_growth(bench),
        }
        for name, part in parts.items():
            if not wanted or name in wanted:
                part()
    finally:
        shutil.rmtree(parent, ignore_errors=True)
    bench.sheet.data["corpus"] = arguments.corpus.name
    results = Path(__file__).with_name("results")
    results.mkdir(exist_ok=True)
    bench.sheet.write(arguments.json or results / f"{time.strftime('%Y%m%d-%H%M%S')}.json")


if __name__ == "__main__":
    main()
