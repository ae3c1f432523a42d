"""`python -m bench.service FOLDER`: a service of real processes: how workers scale, how soon the dead are replaced, how
much the queue holds, and how a million files fare.

Parts (`--only`): scaling (three workers against one, with a server that answers in parallel), kills (worker, writer,
scheduler), queue (memory of the queue while the writer is slow), million (generated files; `--files N`).
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from redis import Redis

from bench.figures import Bar, Sheet
from scheduler.queue.embedded import EmbeddedValkey
from store.run_port import RunRecord
from tests.support.embedding_server import embedding_server
from tests.support.service import Service

SLOWED_S = 0.001
INPUT_S = 0.005
LIMIT_S = 3600.0
PARTS = ("scaling", "kills", "queue", "million")


@contextmanager
def service_over(folder: Path, corpus: Path, block: dict[str, object]) -> Iterator[Service]:
    """A service's folder over a corpus that stays where it is; its roles are started by the caller."""
    folder.mkdir(parents=True)
    server = EmbeddedValkey()
    address = server.start()
    whole = {"identity": "base", "paths": [str(corpus)], "queue": {"url": f"unix://{address.socket}"}, **block}
    (folder / "knowledge.yaml").write_text(json.dumps({"knowledge": whole}), encoding="utf-8")
    it = Service(folder, address.socket)
    try:
        yield it
    finally:
        it.end()
        server.stop()


def ended(it: Service, run: int, look: Callable[[], None] = lambda: None, every_s: float = 0.05) -> RunRecord:
    latest_s = time.monotonic() + LIMIT_S
    while time.monotonic() < latest_s:
        look()
        record = it.run(run)
        if record.ended_ns is not None:
            return record
        time.sleep(every_s)
    raise SystemExit("the run does not end")


def took_s(record: RunRecord) -> float:
    return ((record.ended_ns or 0) - record.started_ns) / 1e9


def scaling(corpus: Path, scratch: Path, rounds: int, sheet: Sheet) -> None:
    """Each worker asks one request at a time; the server sleeps 5 ms an input, for each request by itself."""
    times: dict[int, list[float]] = {1: [], 3: []}
    for number in range(rounds):
        for workers in (1, 3):
            with embedding_server(delay_per_input_s=INPUT_S) as server:
                embeddings = {"base_url": server.url, "model": "bench", "concurrency": 1}
                folder = scratch / f"scaling-{number}-{workers}"
                with service_over(folder, corpus, {"embeddings": embeddings}) as it:
                    it.start_all(workers=workers)
                    record = ended(it, it.first_run())
                times[workers].append(took_s(record))
                print(f"  round {number}, {workers} workers: {took_s(record):.2f} s, {record.state} {record.counts}")
            shutil.rmtree(folder)
    one, three = (statistics.median(times[workers]) for workers in (1, 3))
    bar, detail = Bar(2.6, 2.9, is_more_better=True), f"{one:.2f} / {three:.2f} s"
    sheet.add("three workers against one", one / three, "x", bar, runs=rounds, detail=detail)


def kills(corpus: Path, scratch: Path, rounds: int, sheet: Sheet) -> None:
    """From kill -9 until another one is at it."""
    found: dict[str, list[float]] = {"worker": [], "writer": [], "scheduler": []}
    for number in range(rounds):
        for role, seconds in found.items():
            folder = scratch / f"kills-{number}-{role}"
            with embedding_server(delay_per_input_s=SLOWED_S) as server:  # else it is over before a page is missed
                embeddings = {"base_url": server.url, "model": "bench"}
                with service_over(folder, corpus, {"embeddings": embeddings}) as it:
                    took = killed(it, role)
            seconds += [took] if took is not None else []
            shutil.rmtree(folder)
    for role, seconds in found.items():
        if not seconds:
            raise SystemExit(f"{role} killed: each of {rounds} runs was over before; a larger corpus takes longer")
        name = "its page runs again" if role == "worker" else "the standby is active"
        detail, middle = f"worst {max(seconds):.2f} s", statistics.median(seconds)
        sheet.add(f"{role} killed: {name}", middle, "s", Bar(10, 2), runs=len(seconds), detail=detail)


def killed(it: Service, role: str) -> float | None:
    """Seconds until another one is at it; None for a worker that had no page in hand: the run was over first."""
    it.start_all(workers=2)
    second = it.start(role) if role != "worker" else None
    if second is not None:
        it.wait_until(lambda: "stands_by" in second.said())
    run = it.first_run()
    it.wait_until(lambda: it.run(run).progress.get("checked", 0) > 100)
    began_s = time.monotonic()  # before the kill, which also waits for the process to be gone
    it.of(role)[0].kill()
    log, sign = (it.of("scheduler")[-1], "worker_died") if second is None else (second, '"active"')
    it.wait_until(lambda: sign in log.said() or (role == "worker" and it.run(run).ended_ns is not None))
    took_s = time.monotonic() - began_s
    is_told = sign in log.said()
    record = ended(it, run)
    print(f"  {role}: {took_s:.2f} s{'' if is_told else ', not counted'}; the run: {record.state} {record.counts}")
    return took_s if is_told else None


def queue(corpus: Path, scratch: Path, sheet: Sheet) -> None:
    """The writer is stopped for a while again and again, so that everything before it fills up."""
    import os
    import signal

    folder = scratch / "queue"
    largest = 0
    with service_over(folder, corpus, {}) as it, closing(Redis(unix_socket_path=it.socket)) as client:
        it.start_all(workers=2)
        idle = int(client.info("memory")["used_memory"])  # type: ignore[index]
        writer = it.of("writer")[0].pid
        is_stopped = False

        def look() -> None:
            nonlocal largest, is_stopped
            used = int(client.info("memory")["used_memory"])  # type: ignore[index]
            largest = max(largest, used)
            is_stopped = not is_stopped
            os.kill(writer, signal.SIGSTOP if is_stopped else signal.SIGCONT)

        record = ended(it, it.first_run(), look, every_s=0.5)
    print(f"  the run: {record.state} {record.counts} in {took_s(record):.1f} s")
    detail = f"idle {idle / 1e6:.1f} MB; the writer is stopped half of the time"
    sheet.add("queue memory with a slow writer", largest / 1e6, "MB", Bar(64, 16), detail=detail)
    shutil.rmtree(folder)


def generate(where: Path, count: int) -> None:
    """Small files, 500 a folder, each with words of its own."""
    for number in range(count):
        folder = where / f"{number // 50_000:03}" / f"{number // 500 % 100:03}"
        if number % 500 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        text = f"# Note {number}\n\nThe record {number:07} belongs to series {number % 977}.\n"
        (folder / f"n{number:07}.md").write_text(text, encoding="utf-8")


def million(scratch: Path, count: int, sheet: Sheet) -> None:
    """The first run, one without a change, one after 50,000 files a half million are gone, and the largest memory of
    any role (VmHWM)."""
    corpus = scratch / "many"
    began_s = time.monotonic()
    generate(corpus, count)
    print(f"  generated {count:,} files in {time.monotonic() - began_s:.0f} s")
    folder = scratch / "million"
    with service_over(folder, corpus, {}) as it:
        it.start_all(workers=1)
        first = ended(it, it.first_run(), every_s=1.0)
        print(f"  first: {took_s(first):.1f} s, {first.state} {first.counts}")
        again = ended(it, it.submit(), every_s=0.2)
        print(f"  no change: {took_s(again):.1f} s, {again.state} {again.counts}")
        for folder_number in range(max(1, count // 500_000)):  # a tenth of them, which no guard holds back
            shutil.rmtree(corpus / f"{folder_number:03}")
        removed = ended(it, it.submit(), every_s=0.2)
        print(f"  a tenth removed: {took_s(removed):.1f} s, {removed.state} {removed.counts}")
        peaks = {f"{role.name}": peak_mb(role.pid) for role in it.roles}
        size_mb = it.layout.database.stat().st_size / 1e6
    said = f"{first.state}, {size_mb:.0f} MB of database"
    sheet.add(f"{count:,} files: first run", took_s(first), "s", detail=said)
    sheet.add(f"{count:,} files: no-change run", took_s(again), "s", Bar(60, 20), detail=again.state)
    sheet.add(f"{count:,} files: a run after a tenth is gone", took_s(removed), "s", detail=removed.state)
    said = ", ".join(f"{role} {peak}" for role, peak in peaks.items())
    sheet.add(f"{count:,} files: peak memory of any role", max(peaks.values()), "MB", Bar(300, 150), detail=said)
    shutil.rmtree(folder)
    shutil.rmtree(corpus)


def peak_mb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--only", default=",".join(PARTS[:3]))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    chosen = parser.parse_args()
    sheet = Sheet()
    scratch = Path(tempfile.mkdtemp(prefix="bench-service-"))
    try:
        for part in chosen.only.split(","):
            print(part)
            match part:
                case "scaling":
                    scaling(chosen.corpus, scratch, chosen.rounds, sheet)
                case "kills":
                    kills(chosen.corpus, scratch, chosen.rounds, sheet)
                case "queue":
                    queue(chosen.corpus, scratch, sheet)
                case "million":
                    million(scratch, chosen.files, sheet)
                case _:
                    parser.error(f"there is no part {part!r}: {', '.join(PARTS)}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    sheet.write(chosen.json)


if __name__ == "__main__":
    main()
