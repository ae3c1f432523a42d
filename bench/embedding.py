"""`python -m bench.embedding FOLDER`: what the vector tier adds to an index run, against a server that sleeps.

The server stands in this process, takes one request at a time like a single card, and needs 20 ms a request and 1 ms a
text; its own busy time is the floor. Vectors have 384 dimensions.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from bench.figures import Bar, Sheet
from bench.floors import walk
from bench.measure import Sample, knowledge_command, run_command
from domain.errors import EmbeddingsUnavailableError
from tests.support.embedding_server import EmbeddingServer, embedding_server

REQUEST_S = 0.020
TEXT_S = 0.001
SLOW_REQUEST_S = 1.0
MOVED_FILES = 1000
MOST_BEGINNINGS = 20
LYING_FILES = 5000
LYING_TEXTS = 10
OUTAGE_S = 20.0


def configure(directory: Path, corpus: Path, server: EmbeddingServer | None, **more: object) -> None:
    """A base over the corpus, with the server or without a vector tier."""
    block: dict[str, object] = {"paths": [str(corpus)]}
    if server is not None:
        block["embeddings"] = {"base_url": server.url, "model": "bench", **more}
    directory.mkdir(parents=True)
    (directory / "knowledge.yaml").write_text(json.dumps({"knowledge": block}), encoding="utf-8")


def index(directory: Path) -> tuple[Sample, dict[str, object]]:
    sample = run_command(
        knowledge_command("index", "--json", "--config", str(directory / "knowledge.yaml")), cwd=directory
    )
    if sample.exit_status not in (0, 3):
        raise SystemExit(f"index failed with {sample.exit_status}: {sample.output}")
    return sample, json.loads(sample.output[sample.output.index("{") :])


def try_again(directory: Path) -> Sample:
    """Files that failed are tried again by themselves, too, but minutes later. A server that lies when first asked
    ends the command (15), and that is begun again."""
    configuration = str(directory / "knowledge.yaml")
    for _ in range(MOST_BEGINNINGS):
        sample = run_command(knowledge_command("retry", "--all", "--json", "--config", configuration), cwd=directory)
        if sample.exit_status in (0, 3):
            return sample
        if sample.exit_status != EmbeddingsUnavailableError.exit_status:
            break
    raise SystemExit(f"retry failed with {sample.exit_status}: {sample.output}")


def wall_to_busy(corpus: Path, scratch: Path, runs: int, sheet: Sheet) -> None:
    ratios: list[float] = []
    detail = ""
    for number in range(runs):
        directory = scratch / f"busy{number}"
        with embedding_server(delay_s=REQUEST_S, delay_per_input_s=TEXT_S, serial=True) as server:
            configure(directory, corpus, server)
            sample, report = index(directory)
            ratios.append(sample.wall_s / server.busy_s)
            requests = len(server.requests)
            detail = f"{sample.wall_s:.2f} / {server.busy_s:.2f} s in the last run; {len(server.texts_seen)} texts"
            print(
                f"  run {number}: {sample.wall_s:.2f} s / {server.busy_s:.2f} s busy = {ratios[-1]:.3f};"
                f" {requests} requests, {len(server.texts_seen)} texts; {report['vectors']}"
            )
        shutil.rmtree(directory)
    value = statistics.median(ratios)
    sheet.add("index, wall / the embedding server's busy time", value, "x", Bar(1.15, 1.05), runs=runs, detail=detail)


def words_first(corpus: Path, scratch: Path, runs: int, sheet: Sheet) -> None:
    """Time until every file is searchable by words, with a server that needs a second a request."""
    ratios: list[float] = []
    detail = ""
    for number in range(runs):
        plain = scratch / f"plain{number}"
        configure(plain, corpus, None)
        lexical_s = index(plain)[0].wall_s
        directory = scratch / f"words{number}"
        with embedding_server(delay_s=SLOW_REQUEST_S) as server:
            configure(directory, corpus, server, commit="words_first")
            searchable_s = until_searchable(directory, len(walk(str(corpus))))
        ratios.append(searchable_s / lexical_s)
        detail = f"{searchable_s:.2f} / {lexical_s:.2f} s in the last run"
        print(f"  run {number}: {searchable_s:.2f} s / {lexical_s:.2f} s = {ratios[-1]:.3f}")
        shutil.rmtree(plain)
        shutil.rmtree(directory)
    value = statistics.median(ratios)
    sheet.add("words_first, searchable / lexical-only run", value, "x", Bar(1.2, 1.05), runs=runs, detail=detail)


def until_searchable(directory: Path, files: int) -> float:
    """Seconds from the command's start until every file is in the index; the rest of the run is stopped then."""
    import signal
    import subprocess

    began = time.perf_counter()
    command = knowledge_command("index", "--quiet", "--config", str(directory / "knowledge.yaml"))
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    database = directory / "knowledge" / "knowledge" / "knowledge.db"
    try:
        while documents_in(database) < files:
            if process.poll() is not None:
                raise SystemExit(f"index ended with {process.returncode} before every file was there")
            time.sleep(0.2)
        return time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def documents_in(database: Path) -> int:
    from store import driver

    if not database.exists():
        return 0
    connection = driver.connect(f"file:{database}?mode=ro", uri=True, timeout_s=5)
    try:
        documents, skipped = connection.execute(
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM skipped_files)"
        ).fetchone()
    except driver.Error:
        return 0
    finally:
        connection.close()
    return int(documents) + int(skipped)


def moved(corpus: Path, scratch: Path, sheet: Sheet) -> None:
    """A thousand files moved to another folder: how many texts are sent again."""
    copy = scratch / "corpus"
    shutil.copytree(corpus, copy)
    directory = scratch / "moved"
    with embedding_server() as server:
        configure(directory, copy, server)
        index(directory)
        before = len(server.requests)
        for number, (path, _) in enumerate(walk(str(copy))[:MOVED_FILES]):
            target = copy / "moved" / f"{number}-{Path(path).name}"
            target.parent.mkdir(exist_ok=True)
            (copy / path).rename(target)
        report = index(directory)[1]
        print(f"  {report['counts']}, {report['vectors']}")
        calls = len(server.requests) - before
        sheet.add(f"embedding calls after moving {MOVED_FILES} files", calls, "calls", Bar(0))


def lying(scratch: Path, sheet: Sheet) -> None:
    """50,000 texts from a server that fails or lies in 30% of its answers, in as many ways as it knows."""
    from tests.support.embedding_lies import LIES
    from tests.support.vector_runs import misplaced_in

    corpus = scratch / "lies"
    for number in range(LYING_FILES):
        path = corpus / f"{number // 100:03}" / f"{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [f"# Part {part}\n\ntext {part} of file {number}\n\n" for part in range(LYING_TEXTS)]
        path.write_text("".join(parts), encoding="utf-8")
    directory = scratch / "lied-to"
    with embedding_server(lie_rate=0.3, seed=5) as server:
        configure(directory, corpus, server)
        sample, report = index(directory)
        failed = report["counts"]["failed"]  # type: ignore[index]
        print(f"  pass 1: {sample.wall_s:.1f} s, exit {sample.exit_status}, {failed} files failed")
        database = directory / "knowledge" / "knowledge" / "knowledge.db"
        for number in (2, 3):
            tried = try_again(directory)
            lacking = LYING_FILES - documents_in(database)
            print(f"  pass {number}: {tried.wall_s:.1f} s, exit {tried.exit_status}, {lacking} files lack")
        stored, wrong = misplaced_in(database, 384)
        detail = f"of {stored:,}; 30% of the answers fail or lie, in {len(LIES)} ways; {failed} files failed at first"
        sheet.add("vectors misplaced by a lying server", len(wrong), "", Bar(0), detail=detail)
        lost = LYING_FILES - documents_in(database)
        sheet.add(
            "documents lost to it after three passes", lost, "", Bar(0), detail=f"of {LYING_FILES:,}, by `retry --all`"
        )


def outage(corpus: Path, scratch: Path, sheet: Sheet) -> None:
    """The server goes away for 20 s in the midst of a run: how many requests it gets meanwhile, and the end."""
    directory = scratch / "outage"
    with embedding_server(delay_s=REQUEST_S, serial=True, down_after=20, down_for_s=OUTAGE_S, down_how="503") as server:
        configure(directory, corpus, server)
        sample, report = index(directory)
        refused = [request.at_s for request in server.requests if request.how]
        inside = [at_s for at_s in refused if at_s - refused[0] > 1.0]
        print(f"  exit {sample.exit_status}, {report['counts']}, {report['vectors']}; {len(refused)} were refused")
        name, detail = f"requests during an outage of {OUTAGE_S:.0f} s", f"the run ends with {sample.exit_status}"
        sheet.add(name, len(inside) / (OUTAGE_S - 1), "/s", Bar(1), detail=detail)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.embedding", description=__doc__)
    parser.add_argument("corpus", type=Path, help="a folder of Markdown")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--only", default="busy,moved,words,lies,outage", help="comma-separated: busy,moved,words,lies,outage"
    )
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    arguments = parser.parse_args()
    sheet = Sheet()
    wanted = arguments.only.split(",")
    corpus = arguments.corpus.resolve()
    with tempfile.TemporaryDirectory(prefix="knowledge-bench-") as name:
        scratch = Path(name)
        if "busy" in wanted:
            wall_to_busy(corpus, scratch, arguments.runs, sheet)
        if "moved" in wanted:
            moved(corpus, scratch, sheet)
        if "lies" in wanted:
            lying(scratch, sheet)
        if "outage" in wanted:
            outage(corpus, scratch, sheet)
        if "words" in wanted:
            words_first(corpus, scratch, arguments.runs, sheet)
    sheet.write(arguments.json)


if __name__ == "__main__":
    main()
