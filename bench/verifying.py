"""`verify` of an index beside its floor: FTS5's own comparison of each full-text table, and nothing else.

    python -m bench.verifying HOME [--runs N] [--json FILE]

HOME is the folder of an index that nobody writes meanwhile. The floor is one process with two threads, the dearest
table in one of them, each over a copy of the file of its own, since the comparison is a write. SQLite cannot cut one:
no number of cores takes `verify` below the dearest table's own time. Where a machine has other work, CPU seconds say
more than wall times; a ratio is of one round.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bench.figures import NONE, Bar, Sheet
from bench.measure import Sample, knowledge_command, median_of, python_command, run_command
from domain.layout import BaseLayout
from store import driver
from store.connection import open_reader
from store.integrity_full_text import rank_check
from store.integrity_texts import check_documents

TABLES_OF_THREADS = (("chunks_fts_exact",), ("chunks_fts", "chunks_fts_tri"))
MUST_MB_PER_S, MUST_REASSEMBLY_MB_PER_S = 40, 80


class Round(NamedTuple):
    """The whole command and its floor, one after the other."""

    ours: Sample
    floor: Sample


def compare_tables(database: Path, tables: tuple[str, ...]) -> None:
    with closing(driver.connect(str(database), uri=False, timeout_s=0)) as connection:
        found = [words for table in tables for words in rank_check(connection, table)]
    if found:
        raise SystemExit("; ".join(found))


def run_floor(copies: list[Path]) -> None:
    with ThreadPoolExecutor(len(copies)) as threads:
        for _ in threads.map(compare_tables, copies, TABLES_OF_THREADS):
            pass


def copies_of(database: Path, folder: Path) -> list[Path]:
    copies = [folder / f"{number}.db" for number in range(len(TABLES_OF_THREADS))]
    with closing(driver.connect(str(database), uri=False, timeout_s=0)) as connection:
        connection.execute("VACUUM INTO ?", (str(copies[0]),))
    for copy in copies[1:]:
        shutil.copyfile(copies[0], copy)
    return copies


def text_megabytes(database: Path) -> float:
    """The size of the files that the index holds."""
    with closing(open_reader(database)) as connection:
        size_bytes: int = connection.execute("SELECT sum(size_bytes) FROM documents").fetchone()[0]
    return size_bytes / 1e6


def measure_rounds(home: Path, runs: int) -> list[Round]:
    with tempfile.TemporaryDirectory(prefix="knowledge-bench-") as directory:
        folder = Path(directory)
        configuration = folder / "knowledge.yaml"
        configuration.write_text(f"knowledge:\n  directory: {home.resolve()}\n", encoding="utf-8")
        verify = knowledge_command("verify", "--config", str(configuration))
        copies = copies_of(BaseLayout(home).database, folder)
        floor = python_command("-m", "bench.verifying", "--floor", *(str(copy) for copy in copies))
        rounds = []
        for _ in range(runs + 1):  # the first one warms the pages
            measured = Round(run_command(verify, cwd=folder), run_command(floor, cwd=Path.cwd()))
            for sample in measured:
                if sample.exit_status:
                    raise SystemExit(sample.output)
            rounds.append(measured)
    return rounds[1:]


def add(sheet: Sheet, name: str, samples: list[Sample], megabytes: float, bar: Bar = NONE) -> None:
    wall_s = median_of(samples, lambda sample: sample.wall_s)
    cpu_s = median_of(samples, lambda sample: sample.cpu_s)
    peak_mib = max(sample.peak_bytes for sample in samples) / 2**20
    detail = f"{megabytes:.1f} MB in {wall_s:.2f} s, {cpu_s:.2f} s of CPU, peak {peak_mib:.0f} MiB"
    sheet.add(name, megabytes / wall_s, "MB/s", bar, runs=len(samples), detail=detail)


def measure_reassembly(database: Path, megabytes: float, runs: int, sheet: Sheet) -> None:
    """One thread's work: the best of the runs by its CPU, which is what it takes on a machine of its own."""
    took_s = []
    with closing(open_reader(database)) as connection:
        for _ in range(runs + 1):
            began = time.process_time()
            check_documents(connection)
            took_s.append(time.process_time() - began)
    speed = megabytes / min(took_s)
    bar = Bar(MUST_REASSEMBLY_MB_PER_S, is_more_better=True)
    sheet.add(
        "verify --deep, reassembly alone", speed, "MB/s", bar, runs=runs, detail="to a second of CPU, the best run"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verifying", description=__doc__)
    parser.add_argument("home", type=Path, nargs="?", help="the folder of an index")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--floor", type=Path, nargs=len(TABLES_OF_THREADS), help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    arguments = parser.parse_args()
    if arguments.floor:
        run_floor(arguments.floor)
        return
    if arguments.home is None:
        parser.error("name the folder of an index")
    database = BaseLayout(arguments.home).database
    megabytes = text_megabytes(database)
    rounds = measure_rounds(arguments.home, arguments.runs)
    sheet = Sheet()
    bar = Bar(MUST_MB_PER_S, is_more_better=True)
    add(sheet, "verify, whole command", [measured.ours for measured in rounds], megabytes, bar)
    add(sheet, "its floor: FTS5's own comparison alone", [measured.floor for measured in rounds], megabytes)
    wall = statistics.median(measured.ours.wall_s / measured.floor.wall_s for measured in rounds)
    cpu = statistics.median(measured.ours.cpu_s / measured.floor.cpu_s for measured in rounds)
    sheet.add("verify / its floor, wall", wall, "x", runs=len(rounds))
    sheet.add("verify / its floor, CPU", cpu, "x", runs=len(rounds))
    measure_reassembly(database, megabytes, arguments.runs, sheet)
    sheet.write(arguments.json)


if __name__ == "__main__":
    main()
