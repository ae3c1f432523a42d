"""Our index beside other programs' over the same files: time to make it, to find that nothing changed, to take in one
change, to answer; memory and size.

    python -m bench.beside CORPUS [--beside build/beside] [--rounds N] [--programs NAME,...] [--json FILE]

Each round runs the programs in turn, so that whatever else the machine does meets all of them. The change is one line
more in a file in the middle, looked for afterwards. Queries are words drawn from the files, the same for every program;
a cold one is a command of its own.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.beside.programs import PROGRAMS, Places, Program, filled, shown
from bench.figures import Sheet
from bench.floors import walk
from bench.measure import Sample, knowledge_command, median_of, run_command
from bench.searching import percentile

SEED = 20_260
QUERIES = 60
COLD_QUERIES = 15
NO_CHANGES = 3
SETTLE_S = 2.1  # a program that goes by times of change does not trust a younger one
MEGABYTE = 1e6
ROOT = Path(__file__).parent.parent.parent


class Found(NamedTuple):
    """One program in one round; seconds of the clock, and of the processor (`cpu`) by all processes of a command."""

    index_s: float
    index_cpu_s: float
    no_change_s: float
    no_change_cpu_s: float
    one_change_s: float
    one_change_cpu_s: float
    cold_s: float
    cold_cpu_s: float
    warm_p50_ms: float | None
    warm_p99_ms: float | None
    peak_bytes: int
    size_bytes: int


def drawn_queries(corpus: Path) -> list[str]:
    """One to three words that stand together in a file, always the same ones for the same files."""
    source = random.Random(SEED)
    paths = [path for path, status in walk(str(corpus)) if status.st_size > 200]
    queries: list[str] = []
    while len(queries) < QUERIES:
        text = (corpus / source.choice(paths)).read_text(encoding="utf-8", errors="ignore")
        words = [word.lower() for word in text.split() if word.isascii() and word.isalpha() and 3 < len(word) < 16]
        if len(words) > 20:
            at = source.randrange(len(words) - 3)
            queries.append(" ".join(words[at : at + 1 + len(queries) % 3]))
    return queries


class Running:
    """One program over one corpus in a fresh folder."""

    def __init__(self, program: Program, places: Places) -> None:
        self.program = program
        self.places = places
        places.place.mkdir(parents=True)
        for name, content in program.files.items():
            (places.place / name).write_text(places.filled(content), encoding="utf-8")
        given = {name: places.filled(value) for name, value in program.environment.items()}
        self._environment: Mapping[str, str] = os.environ | {"PYTHONPATH": str(ROOT)} | given

    def run(self, template: Sequence[str], **more: str) -> Sample:
        command = [self.places.filled(part, **more) for part in template]
        sample = run_command(command, cwd=self.places.place, environment=self._environment)
        if sample.exit_status not in (0, 3):  # ours ends with 3 where files were left out
            raise SystemExit(f"{self.program.name} ended with {sample.exit_status}: {sample.output[-2000:]}")
        return sample

    def size_bytes(self) -> int:
        stored = self.places.place / self.program.stored
        return sum(file.stat().st_size for file in stored.rglob("*") if file.is_file())

    def one_change(self, target: Path) -> Sample:
        """The command that takes a change in, from its start to its end; then it must be found."""
        before = target.read_bytes()
        word = f"zyxwvu{time.time_ns()}"
        target.write_bytes(before + f"\n\n{word}\n".encode())
        sample = self.run(self.program.update)
        if target.stem.lower() not in self.run(self.program.ask, words=word).output.lower():
            raise SystemExit(f"{self.program.name} does not find what was changed")
        target.write_bytes(before)
        return sample


def measured(running: Running, target: Path, queries: Sequence[str], queries_file: Path) -> Found:
    program = running.program
    indexed = running.run(program.first)
    time.sleep(SETTLE_S)
    running.run(program.update)
    unchanged = [running.run(program.update) for _ in range(NO_CHANGES)]
    changed = running.one_change(target)
    cold = [running.run(program.ask, words=words) for words in queries[:COLD_QUERIES]]
    times: list[float] = []
    if program.warm:
        output = running.run(program.warm, queries=str(queries_file)).output
        times = json.loads(output[output.rindex("[") :])
    return Found(
        index_s=indexed.wall_s,
        index_cpu_s=indexed.cpu_s,
        no_change_s=median_of(unchanged, lambda sample: sample.wall_s),
        no_change_cpu_s=median_of(unchanged, lambda sample: sample.cpu_s),
        one_change_s=changed.wall_s,
        one_change_cpu_s=changed.cpu_s,
        cold_s=median_of(cold, lambda sample: sample.wall_s),
        cold_cpu_s=median_of(cold, lambda sample: sample.cpu_s),
        warm_p50_ms=statistics.median(times) if times else None,
        warm_p99_ms=percentile(times, 0.99) if times else None,
        peak_bytes=indexed.peak_bytes,
        size_bytes=running.size_bytes(),
    )


def middle(rounds: Sequence[Found]) -> dict[str, float | None]:
    """The median of each value."""
    columns = zip(*rounds, strict=True)
    return {
        name: None if None in values else statistics.median(values)
        for name, values in zip(Found._fields, columns, strict=True)
    }


def measure(
    corpus: Path,
    beside: Path,
    programs: Sequence[Program],
    rounds: int,
    keep: Callable[[Mapping[str, list[Found]]], None],
) -> None:
    """`keep` is told what there is after each program, so that what is broken off keeps what it has."""
    found: dict[str, list[Found]] = {program.name: [] for program in programs}
    with tempfile.TemporaryDirectory(prefix="knowledge-bench-") as folder:
        scratch = Path(folder)
        copy = scratch / "corpus"
        shutil.copytree(corpus, copy, symlinks=True)
        paths = walk(str(copy))
        queries = drawn_queries(copy)
        (scratch / "queries.json").write_text(json.dumps(queries), encoding="utf-8")
        for number in range(rounds):
            for program in programs:
                place = scratch / f"{program.name}-{number}"
                places = Places(copy, place, beside, sys.executable, knowledge_command()[0])
                running = Running(program, places)
                target = copy / paths[len(paths) // 2][0]
                found[program.name].append(measured(running, target, queries, scratch / "queries.json"))
                print(f"round {number + 1}, {program.name}: {found[program.name][-1]}", flush=True)
                shutil.rmtree(place)
                keep(found)


def told(program: Program, rounds: Sequence[Found] | None) -> dict[str, object]:
    commands = {name: shown(getattr(program, name)) for name in ("first", "update", "ask", "warm")}
    values = middle(rounds) if rounds else None
    return {
        "program": program.name, "version": program.version, "rounds": len(rounds or ()), "values": values,
        "commands": commands, "files": {name: filled(text) for name, text in program.files.items()},
        "unequal": list(program.unequal),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.beside", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--beside", type=Path, default=ROOT / "build" / "beside")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--programs", default=",".join(program.name for program in PROGRAMS))
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    chosen = parser.parse_args()
    beside = chosen.beside.resolve()
    anywhere = Places(Path(), Path(), beside, sys.executable, "")
    wanted = [program for program in PROGRAMS if program.name in chosen.programs.split(",")]
    ready = [program for program in wanted if Path(anywhere.filled(program.needs)).exists()]
    for program in wanted:
        if program not in ready:
            print(f"{program.name} is not installed: sh bench/beside/install.sh", file=sys.stderr)
    corpus = chosen.corpus.resolve()
    files = walk(str(corpus))
    about = {"corpus": corpus.name, "files": len(files), "text_bytes": sum(status.st_size for _, status in files)}

    def keep(found: Mapping[str, list[Found]]) -> None:
        programs = [told(program, found.get(program.name)) for program in PROGRAMS]
        Sheet(data=about | {"programs": programs}).write(chosen.json)

    measure(corpus, beside, ready, chosen.rounds, keep)


if __name__ == "__main__":
    main()
