"""`make bench CORPUS=FOLDER`: the figures of the release bar, each beside its floor of the same run.

Medians of `--runs` runs (at least three). Results go to `bench/results/` as JSON and to the terminal as a table.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.floors import walk
from bench.measure import Sample, knowledge_command, median_of, python_command, run_command
from bench.queue_share import queue_seconds
from bench.searching import SearchFigures, measure_search

MEGABYTE = 1_000_000
LARGE_FROM_FILES = 20_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    name: str
    value: float
    unit: str
    must: float | None
    aim: float | None
    detail: str = ""

    @property
    def verdict(self) -> str:
        if self.must is None or self.aim is None:
            return ""
        return "aim" if self.value <= self.aim else "must" if self.value <= self.must else "MISSED"


class Bench:
    """One corpus, one scratch directory, the figures found so far."""

    def __init__(self, corpus: Path, scratch: Path, runs: int) -> None:
        self.corpus = corpus
        self.scratch = scratch
        self.runs = runs
        self.figures: list[Figure] = []

    def add(self, name: str, value: float, unit: str, bar: tuple[float, float] | None, detail: str = "") -> None:
        must, aim = bar or (None, None)
        figure = Figure(name, round(value, 3), unit, must, aim, detail)
        self.figures.append(figure)
        print(f"{name:<52} {figure.value:>10} {unit:<6} {figure.verdict:<7} {detail}", flush=True)

    def fresh(self, name: str) -> Path:
        directory = self.scratch / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
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
    keys = [f"c/{path}" for path, _ in walk(str(bench.corpus))]
    is_large = len(keys) >= LARGE_FROM_FILES  # the ratios are promised of a large corpus, the difference of a small one
    wall_bar, cpu_bar, extra_bar = ((1.3, 1.0), (1.6, 1.3), None) if is_large else (None, None, (0.8, 0.5))
    bench.add("first index, wall / bare insert wall", statistics.median(wall), "x", wall_bar, detail)
    bench.add("first index, wall - bare insert wall", index_s - bare_s, "s", extra_bar)
    cpu_detail = f"{median_of(indexed, lambda s: s.cpu_s):.2f} s / {median_of(bare, lambda s: s.cpu_s):.2f} s"
    bench.add("first index, CPU / bare insert CPU", statistics.median(cpu), "x", cpu_bar, cpu_detail)
    peak = median_of(indexed, lambda s: s.peak_bytes) / MEGABYTE
    bench.add("peak memory of the whole run", peak, "MB", (400, 250))
    share = statistics.median(queue_seconds(keys) for _ in range(3)) / index_s
    bench.add("share of the queue in the run", share * 100, "%", (8, 4))
    return bench.scratch / "first"


def size(bench: Bench, directory: Path) -> None:
    report = json.loads(run_command(knowledge_command("stats", "--json"), cwd=directory).output)
    text_bytes = sum(status.st_size for _, status in walk(str(bench.corpus)))
    database = directory / "knowledge" / "default" / "knowledge.db"
    bench.add("database size / text", database.stat().st_size / text_bytes, "x", (2.6, 2.2))
    bench.add("documents", report["documents"], "", None, f"{report['chunks']} chunks")


def no_change(bench: Bench, directory: Path) -> None:
    """A run that finds nothing to do, minus the command's own start, against the bare walk."""
    time.sleep(2.1)  # checks this close to the last change would not be trusted (and are done again)
    bench.index(directory)
    ratios: list[float] = []
    details: list[str] = []
    for _ in range(max(bench.runs, 5)):
        version = run_command(knowledge_command("--version"), cwd=directory).wall_s
        run = bench.index(directory).wall_s
        floor = json.loads(
            run_command(python_command("-m", "bench.floors", "walk", str(bench.corpus)), cwd=Path.cwd()).output
        )["seconds"]
        ratios.append((run - version) / floor)
        details.append(f"({run:.3f} - {version:.3f}) / {floor:.3f} s")
    middle = sorted(range(len(ratios)), key=ratios.__getitem__)[len(ratios) // 2]
    bench.add("no-change run / bare walk", ratios[middle], "x", (3, 2), details[middle])


def one_changed(bench: Bench) -> None:
    """One file changed, on a copy of the corpus: command start until a search finds the new words."""
    copy = bench.fresh("changed") / "corpus"
    shutil.copytree(bench.corpus, copy, symlinks=True)
    directory = copy.parent
    bench.index(directory, corpus=copy)
    time.sleep(2.1)
    bench.index(directory, corpus=copy)
    target = copy / walk(str(copy))[len(walk(str(copy))) // 2][0]
    seconds: list[float] = []
    for number in range(max(bench.runs, 3)):
        word = f"zyxwvu{number}{time.time_ns()}"
        with target.open("a", encoding="utf-8") as file:
            file.write(f"\n\n{word}\n")
        seconds.append(bench.index(directory, corpus=copy).wall_s)
        found = run_command(knowledge_command("search", word, "--json"), cwd=directory)
        if word not in found.output or not json.loads(found.output)["results"]:
            raise SystemExit("the changed file was not found")
    bench.add("one file changed: command start to searchable", statistics.median(seconds), "s", (2.0, 1.0))
    shutil.rmtree(directory)


def search(bench: Bench, directory: Path) -> None:
    figures: SearchFigures = measure_search(directory / "knowledge" / "default", runs=max(bench.runs, 3))
    bench.add("search, warm, sum / bare sum", figures.ratio, "x", (1.5, 1.2), figures.detail)
    bench.add("search, warm, worst extra where bare < 1 ms", figures.worst_extra_ms, "ms", (1.0, 0.5))
    bench.add("search, warm, median extra where bare < 1 ms", figures.median_extra_ms, "ms", None)
    cold = [
        run_command(knowledge_command("search", "kernel", "driver"), cwd=directory).wall_s
        for _ in range(max(bench.runs * 3, 9))
    ]
    bench.add("knowledge search, cold process", statistics.median(cold), "s", (0.40, 0.20))


def memory_growth(bench: Bench) -> None:
    """Peak memory of the whole corpus against its first 10,000 files."""
    part = bench.fresh("part") / "corpus"
    for path, _ in walk(str(bench.corpus))[:10_000]:
        target = part / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(bench.corpus / path, target)
    peaks = [bench.index(bench.fresh("small"), corpus=part).peak_bytes for _ in range(2)]
    whole = next(f.value for f in bench.figures if f.name == "peak memory of the whole run")
    small = statistics.median(peaks) / MEGABYTE
    bench.add("peak memory against 10,000 files", whole / small, "x", (1.25, 1.1), f"{whole:.0f} / {small:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("corpus", type=Path, help="a folder of Markdown")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scratch", type=Path, default=None, help="where indexes are made (default: a temporary one)")
    parser.add_argument("--only", default="", help="comma-separated: index,search,no_change,changed,memory")
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
    results = Path(__file__).with_name("results")
    results.mkdir(exist_ok=True)
    written = results / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    document = {"corpus": arguments.corpus.name, "figures": [asdict(figure) for figure in bench.figures]}
    written.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
