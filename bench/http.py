"""Searches over HTTP beside the same searches in this process, and fifty at a time while a run writes.

    python -m bench.http HOME [--only extra,crowd] [--runs N] [--seconds N] [--files N] [--json FILE]

HOME is the folder of an index. `extra` only reads it; `crowd` works on a copy, into which a run indexes files. The
service is a process of its own, asked over connections that stay open. On a busy machine look at the ratios.
"""

import argparse
import asyncio
import http.client
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from app.consistency import told_consistently
from app.open_bases import OpenBases
from app.present_search import search_json
from app.search_context import index_state
from app.searching import answer
from bench.figures import Bar, Sheet
from bench.measure import knowledge_command
from bench.searching import SEED
from bench.service import generate
from domain.layout import BaseLayout
from domain.settings import Settings
from retrieval.answer import SearchRequest
from store.connection import open_reader

CLIENTS = 50
LIGHT_QUERIES = 200
FEW_CHUNKS = (5, 50)  # that hold a word of a light query
START_S = 60.0
PARTS = ("extra", "crowd")


class Asked(NamedTuple):
    """Searches of a crowd: how long each took, in milliseconds, and the processor time of the service for each."""

    milliseconds: list[float]
    cpu_ms: float

    def percentile(self, share: float) -> float:
        return sorted(self.milliseconds)[min(int(len(self.milliseconds) * share), len(self.milliseconds) - 1)]

    def words(self) -> str:
        return (
            f"{len(self.milliseconds)} searches, p50 {self.percentile(0.5):.1f} ms, p99 {self.percentile(0.99):.1f} ms,"
            f" worst {max(self.milliseconds):.1f} ms; {self.cpu_ms:.2f} ms of processor each"
        )


class Service(NamedTuple):
    """The process that answers."""

    pid: int
    port: int

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def peak_mb(self) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def settings_of(home: Path) -> Settings:
    return Settings(identity=home.name, home=home.resolve(), config_path=None, configured=False)


def serve(home: Path, port: int) -> None:
    """What `knowledge serve` answers with, without its other duties."""
    import uvicorn

    from app.config import Loaded
    from app.discovery import Located
    from server.http.service import http_app, http_parts

    settings = settings_of(home)
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as parts:
        uvicorn.run(http_app(parts), port=port, http="h11", ws="none", access_log=False, log_level="critical")


@contextmanager
def service_over(home: Path) -> Iterator[Service]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "bench.http", str(home), "--serve", str(port)])
    try:
        latest_s = time.monotonic() + START_S
        while not _is_up(port):
            if process.poll() is not None or time.monotonic() > latest_s:
                raise SystemExit("the service does not come up")
            time.sleep(0.05)
        yield Service(process.pid, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _is_up(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def target(query: str) -> str:
    return f"/v1/search?{urlencode({'q': query})}"


def light_queries(home: Path) -> list[str]:
    """Words that few chunks hold, always the same ones for the same store: what HTTP adds is the same for every query,
    and drowns in the times of heavy ones."""
    connection = open_reader(BaseLayout(home).database)
    try:
        rows = connection.execute(
            "SELECT term FROM chunks_vocabulary WHERE doc BETWEEN ? AND ? AND length(term) > 4", FEW_CHUNKS
        ).fetchall()
    finally:
        connection.close()
    return random.Random(SEED).sample([term for (term,) in rows if term.isalpha()], LIGHT_QUERIES)


def extra(home: Path, runs: int, sheet: Sheet) -> None:
    """Each query in this process and over HTTP in turn, warm; the medians of each, and of what HTTP takes longer."""
    queries = light_queries(home)
    bases = OpenBases(settings_of(home))
    bare: list[list[float]] = [[] for _ in queries]
    inside: list[list[float]] = [[] for _ in queries]
    outside: list[list[float]] = [[] for _ in queries]
    with service_over(home) as service:
        client = http.client.HTTPConnection("127.0.0.1", service.port)
        cpu_s = inside_cpu_s = 0.0
        for number in range(runs + 1):  # the first round warms both
            if number == 1:
                cpu_s, inside_cpu_s = service.cpu_s(), 0.0
            for at, query in enumerate(queries):
                began_s = time.thread_time()
                bare_ms, inside_ms = in_process(bases, query)
                inside_cpu_s += time.thread_time() - began_s
                bare[at].append(bare_ms)
                inside[at].append(inside_ms)
                outside[at].append(over_http(client, query))
        cpu_ms, inside_cpu_ms = (
            took_s / (runs * len(queries)) * 1000 for took_s in (service.cpu_s() - cpu_s, inside_cpu_s)
        )
        peak_mb = service.peak_mb()
        client.close()
    bases.close()
    searched, told, asked = ([statistics.median(times[1:]) for times in each] for each in (bare, inside, outside))
    quickest = [min(after[1:]) - min(before[1:]) for before, after in zip(inside, outside, strict=True)]
    extras = [after - before for before, after in zip(told, asked, strict=True)]
    searched_ms, told_ms, asked_ms = (statistics.median(times) for times in (searched, told, asked))
    detail = f"by itself {searched_ms:.2f} ms"
    sheet.add("a search with its JSON, in process, p50", told_ms, "ms", runs=runs, detail=detail, cpu=inside_cpu_ms)
    detail = f"CPU of the service, whose peak memory is {peak_mb} MB"
    sheet.add("the same over HTTP, p50", asked_ms, "ms", runs=runs, detail=detail, cpu=cpu_ms)
    differences_ms, least_ms = statistics.median(extras), statistics.median(quickest)
    detail = f"median of the differences {differences_ms:+.2f} ms; of the quickest of each {least_ms:+.2f} ms"
    sheet.add("HTTP over the in-process call, p50", asked_ms - told_ms, "ms", Bar(3, 1), runs=runs, detail=detail)


def in_process(bases: OpenBases, query: str) -> tuple[float, float]:
    """Milliseconds of the search alone, and with all that an answer says."""
    began = time.perf_counter()
    with bases.borrowed() as base:
        found = told_consistently(answer(base.store, SearchRequest(query=query), None), base)
        middle = time.perf_counter()
        search_json(found, index_state(base), {}, time.time_ns())
    return (middle - began) * 1000, (time.perf_counter() - began) * 1000


def over_http(client: http.client.HTTPConnection, query: str) -> float:
    began = time.perf_counter()
    client.request("GET", target(query))
    response = client.getresponse()
    response.read()
    took = (time.perf_counter() - began) * 1000
    if response.status != 200:
        raise SystemExit(f"{query}: {response.status}")
    return took


def crowd(home: Path, place: Path | None, seconds: float, files: int, sheet: Sheet) -> None:
    """Fifty clients that ask one after the other, first alone, then while a run indexes files into the same index."""
    queries = light_queries(home)
    with tempfile.TemporaryDirectory(prefix="knowledge-bench-", dir=place) as directory:
        scratch = Path(directory)
        copy = scratch / "base"
        shutil.copytree(home, copy)
        generate(scratch / "more", files)
        configuration = scratch / "knowledge.yaml"
        configuration.write_text(f"knowledge:\n  directory: {copy.resolve()}\n", encoding="utf-8")
        with service_over(copy) as service:
            asyncio.run(_asked(service, queries, 2.0))
            idle = asyncio.run(_asked(service, queries, seconds))
            sheet.add(f"{CLIENTS} clients, no run: p99", idle.percentile(0.99), "ms", detail=idle.words())
            command = knowledge_command("index", str(scratch / "more"), "--quiet", "--config", str(configuration))
            run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            try:
                time.sleep(2.0)  # it writes from now on
                busy = asyncio.run(_asked(service, queries, seconds))
                is_over = run.poll() is not None
            finally:
                run.terminate()
                run.wait(60)
            said = busy.words() + ("; THE RUN ENDED BEFORE: more --files" if is_over else "")
            sheet.add(f"{CLIENTS} clients while a run writes: p99", busy.percentile(0.99), "ms", detail=said)
            ratio = busy.percentile(0.99) / idle.percentile(0.99)
            sheet.add(f"{CLIENTS} clients: p99 while a run writes / p99 idle", ratio, "x", Bar(3, 1.5))
            sheet.add(f"{CLIENTS} clients: peak memory of the service", service.peak_mb(), "MB")


async def _asked(service: Service, queries: Sequence[str], seconds: float) -> Asked:
    before_s = service.cpu_s()
    until_s = time.monotonic() + seconds
    clients = [_client(service.port, queries, number, until_s) for number in range(CLIENTS)]
    taken = [took for times in await asyncio.gather(*clients) for took in times]
    return Asked(taken, (service.cpu_s() - before_s) / len(taken) * 1000)


async def _client(port: int, queries: Sequence[str], number: int, until_s: float) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times: list[float] = []
    while time.monotonic() < until_s:
        query = queries[(number * 7 + len(times)) % len(queries)]
        began = time.perf_counter()
        writer.write(f"GET {target(query)} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:16]:
            raise SystemExit(head.decode())
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        times.append((time.perf_counter() - began) * 1000)
    writer.close()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.http", description=__doc__)
    parser.add_argument("home", type=Path, help="the folder of an index")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--files", type=int, default=60_000)
    parser.add_argument(
        "--scratch", type=Path, default=None, help="where the copy is made (default: a temporary folder)"
    )
    parser.add_argument("--json", type=Path, default=None, help="write the figures into this file")
    parser.add_argument("--serve", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.home, chosen.serve)
        return
    sheet = Sheet()
    for part in chosen.only.split(","):
        match part:
            case "extra":
                extra(chosen.home, chosen.runs, sheet)
            case "crowd":
                crowd(chosen.home, chosen.scratch, chosen.seconds, chosen.files, sheet)
            case _:
                parser.error(f"there is no part {part!r}: {', '.join(PARTS)}")
    sheet.write(chosen.json)


if __name__ == "__main__":
    main()
