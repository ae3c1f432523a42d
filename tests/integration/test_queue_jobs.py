"""The jobs of both queues over a real broker: bad payloads are parked, good ones worked on, none is forgotten."""

import asyncio
import pickle
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from arq.connections import ArqRedis
from arq.worker import Worker
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from app.pipeline import _run_worker as run_worker
from app.pipeline import build_write_worker
from app.worker_process import PAGES_AT_A_TIME, build_check_worker
from domain.files import Outcome
from domain.layout import BaseLayout
from domain.settings import QueueSettings
from scheduler.queue.client import PARKED_KEPT, PageQueue, open_pool
from scheduler.queue.embedded import EmbeddedValkey
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import CHECK_PAGE, WRITE_PAGE, serialize_job
from store import files
from store.sqlite import open_store_writer
from store.write_port import DocumentWrite, RemoveWrite, WriteGroup
from tests.support.payloads import BAD_CHECKS, BAD_JOBS, BAD_WRITES, NOT_PAYLOADS, STALE_CHECKS, Hostile, check, write
from tests.support.runs import Base, base_in, nothing_left
from tests.support.scratch import scratch_directory
from tests.support.stores import document_write
from tests.support.trees import make_tree
from tests.support.waiting import eventually_in_loop
from tests.support.writing import FakeStore, WriterAtWork, finished, running, writer_over
from workers import spool
from workers.checking import FinishedPage
from workers.context import WorkerContext
from workers.jobs import BAD_PAYLOAD, STALE_JOB
from workers.writer.jobs import SpoolSink, WriterContext

pytestmark = pytest.mark.redis

NAMES = QueueNames("base")
Pool = ArqRedis


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    server = EmbeddedValkey()
    try:
        async with open_pool(server.start()) as opened:
            yield opened
    finally:
        server.stop()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    make_tree(tmp_path, {"secret.md": "# Secret\n", "b.md": "# Outside\n"})
    return make_tree(tmp_path / "docs", {"a.md": "# A\n\nwords\n", "deep/b.md": "# B\n"})


class Sink:
    """Keeps the pages, or fails."""

    def __init__(self) -> None:
        self.pages: list[FinishedPage] = []
        self.fails_with: Exception | None = None

    async def commit(self, page: FinishedPage, *, attempt: int) -> None:
        if self.fails_with is not None:
            raise self.fails_with
        self.pages.append(page)


class Stops:
    """Keeps the errors that would end the run."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    def __call__(self, error: Exception) -> None:
        self.errors.append(error)


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(run_worker(worker))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def check_worker(pool: Pool, root: Path, sink: Sink, stops: Stops) -> AsyncIterator["asyncio.Task[None]"]:
    with ThreadPoolExecutor(max_workers=1) as executor:
        context = WorkerContext(NAMES, 1, 1, {"docs": root}, 1000, "auto", sink, executor, stops)
        async with at_work(build_check_worker(pool, context)) as task:
            yield task


async def plant(pool: Pool, queue: str, raw_jobs: Mapping[str, bytes]) -> None:
    """Put raw bytes where arq keeps its jobs."""
    for name, raw in raw_jobs.items():
        job_id = f"{NAMES.prefix}planted:{name}"
        await pool.set(f"arq:job:{job_id}", raw)
        await pool.zadd(queue, {job_id: int(time.time() * 1000)})


def calls(function: str, payloads: Mapping[str, bytes]) -> dict[str, bytes]:
    return {
        f"{function} {name}": serialize_job({"t": None, "f": function, "a": [raw], "k": {}, "et": 1})
        for name, raw in payloads.items()
    }


async def drained(pool: Pool, queue: str) -> None:
    async def is_empty() -> bool:
        return not await pool.zcard(queue)

    await eventually_in_loop(is_empty)


async def parked(pool: Pool) -> dict[bytes, str]:
    """What was parked, by its bytes, with the reason."""
    entries: list[bytes] = await pool.lrange(NAMES.parked, 0, -1)  # type: ignore[misc]
    return {raw: reason.decode() for reason, _, raw in (entry.partition(b"\n") for entry in entries)}


async def test_bad_checks_are_parked_and_good_ones_done(
    pool: Pool, docs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """C-10, T26: the worker lives, nothing is executed, no path outside the root is read."""
    hostile = pickle.dumps(Hostile(f"touch {tmp_path}/executed"))
    sink, stops = Sink(), Stops()
    outer = {**NOT_PAYLOADS, **BAD_JOBS, "hostile": hostile}
    del outer["nothing"]  # to arq a job without bytes has expired
    inner = {**NOT_PAYLOADS, **BAD_CHECKS, "hostile": hostile}
    too_large = {name: raw for name, raw in inner.items() if len(raw) > 900_000}
    await plant(pool, NAMES.checks, outer)
    await plant(pool, NAMES.checks, calls(CHECK_PAGE, {n: raw for n, raw in inner.items() if n not in too_large}))
    await plant(pool, NAMES.checks, calls(WRITE_PAGE, {"in the wrong queue": write()}))
    await plant(pool, NAMES.checks, calls("park", {"by itself": b"parked by itself"}))
    async with check_worker(pool, docs, sink, stops) as task:
        await drained(pool, NAMES.checks)
        first = await parked(pool)
        await plant(pool, NAMES.checks, calls(CHECK_PAGE, STALE_CHECKS | {"good": check()}))
        await drained(pool, NAMES.checks)
        assert not task.done()
    reasons = await parked(pool)
    assert len(first) > 60
    assert set(first.values()) == {BAD_PAYLOAD}
    for raw in (hostile, b"parked by itself", write(), NOT_PAYLOADS["pickle"], BAD_CHECKS["old version"]):
        assert reasons[raw[:4096]] == BAD_PAYLOAD
    for raw in STALE_CHECKS.values():
        assert reasons[raw] == STALE_JOB
    assert [[item.key for item in page.documents] for page in sink.pages] == [["docs/a.md"]]
    assert not stops.errors
    assert not (tmp_path / "executed").exists()
    assert not [(record.getMessage(), record.exc_info) for record in caplog.records if record.exc_info]
    assert {key for key in await pool.keys("*") if key != NAMES.parked.encode()} <= {
        f"{NAMES.checks}:health-check".encode()
    }


async def test_only_so_many_are_kept(pool: Pool, docs: Path) -> None:
    await plant(pool, NAMES.checks, {str(number): b"\xc1%d" % number for number in range(PARKED_KEPT + 5)})
    async with check_worker(pool, docs, Sink(), Stops()):
        await drained(pool, NAMES.checks)
    assert await pool.llen(NAMES.parked) == PARKED_KEPT  # type: ignore[misc]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyError("a fault of ours")])
async def test_a_page_that_cannot_be_handed_over_ends_the_run(pool: Pool, docs: Path, error: Exception) -> None:
    """arq would log it and forget the job, and the run would wait for its page for ever."""
    sink, stops = Sink(), Stops()
    sink.fails_with = error
    await plant(pool, NAMES.checks, calls(CHECK_PAGE, {"one": check()}))
    async with check_worker(pool, docs, sink, stops):
        await drained(pool, NAMES.checks)
    assert stops.errors == [error]


async def test_the_same_job_again_and_again_is_the_same_page(pool: Pool, docs: Path) -> None:
    """C-04."""
    sink = Sink()
    await plant(pool, NAMES.checks, {str(number): raw for number, raw in enumerate(5 * [_good()])})
    async with check_worker(pool, docs, sink, Stops()):
        await drained(pool, NAMES.checks)
    assert len(sink.pages) == 5
    assert len({page.documents[0].file_hash for page in sink.pages}) == 1
    assert PAGES_AT_A_TIME > 1


def _good() -> bytes:
    return next(iter(calls(CHECK_PAGE, {"good": check()}).values()))


@asynccontextmanager
async def write_worker(
    pool: Pool, directory: Path, it: WriterAtWork, stops: Stops
) -> AsyncIterator["asyncio.Task[None]"]:
    context = WriterContext(NAMES, directory, it.writer, stops, lambda run, generation: (run, generation) == (1, 1))
    async with running(it.writer), at_work(build_write_worker(pool, context)) as task:
        yield task


async def test_bad_writes_are_parked_and_good_ones_committed(pool: Pool, tmp_path: Path) -> None:
    """C-10, T26: a payload names a file of the spool and nothing else."""
    directory = tmp_path / "spool"
    directory.mkdir()
    (tmp_path / "state.db").write_bytes(b"not to be read")
    (directory / "1-2-1.page").write_bytes(b"\x93 no page")
    store, stops = FakeStore(), Stops()
    stale = {"run": write(run=2), "base": write(base_id="other"), "generation": write(generation=0)}
    broken = {"broken file": write(number=2, name="1-2-1.page")}
    gone = {"gone": write(number=3, name="1-3-1.page")}
    bad = {name: raw for name, raw in (NOT_PAYLOADS | BAD_WRITES).items() if len(raw) < 900_000}
    sink = SpoolSink(directory, PageQueue(pool, NAMES, _no_address()), NAMES, 1)
    async with writer_over(store) as it, write_worker(pool, directory, it, stops) as task:
        await plant(pool, NAMES.writes, NOT_PAYLOADS | BAD_JOBS)
        await plant(pool, NAMES.writes, calls(WRITE_PAGE, bad | stale | broken | gone))
        await plant(pool, NAMES.writes, calls(CHECK_PAGE, {"in the wrong queue": check()}))
        await sink.commit(finished(1, ["docs/a"]), attempt=1)
        await sink.commit(finished(1, ["docs/a"]), attempt=2)
        await drained(pool, NAMES.writes)
        assert not task.done()
    reasons = await parked(pool)
    assert {reasons[raw] for raw in stale.values()} == {STALE_JOB}
    assert {reasons[raw] for raw in (*BAD_WRITES.values(), *broken.values(), check())} == {BAD_PAYLOAD}
    assert not any(raw in reasons for raw in gone.values())  # done, or planned again (R35)
    assert store.committed == [["docs/a"]] * 2
    assert not stops.errors
    assert [path.name for path in directory.iterdir()] == ["1-2-1.page"]
    assert (tmp_path / "state.db").read_bytes() == b"not to be read"


def _no_address() -> Any:
    return "a queue of the tests"


async def test_a_writer_that_has_stopped_ends_the_run(pool: Pool, tmp_path: Path) -> None:
    store, stops = FakeStore(), Stops()
    store.fails_with = OSError(5, "Input/output error")
    spool.write_page(tmp_path, "1-1-1.page", finished(1, ["docs/a"]))
    await plant(pool, NAMES.writes, calls(WRITE_PAGE, {"one": write()}))
    async with writer_over(store) as it, write_worker(pool, tmp_path, it, stops):
        await drained(pool, NAMES.writes)
    assert stops.errors == [store.fails_with]


FILES: dict[str, str | bytes] = {f"{number}.md": f"# Page {number}\n\nword{number}\n" for number in range(12)}
FILES |= {"bad.md": b"\xff", "empty.md": ""}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = base_in(tmp_path)
    with nothing_left(made):
        yield made


@pytest.mark.parametrize("times", [2, 5])
@pytest.mark.parametrize("processes", [0, 1])
def test_every_job_run_several_times_leaves_the_same_store(
    base: Base, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, processes: int
) -> None:
    """C-04, P4: and every file is counted once."""
    make_tree(docs, FILES)
    reference = base_in(tmp_path / "reference", queue=QueueSettings(files_per_job=3))
    expected = reference.index(docs).counts
    for name in ("enqueue_check", "enqueue_write"):
        monkeypatch.setattr(PageQueue, name, _repeated(getattr(PageQueue, name), times))
    repeated = base_in(tmp_path, queue=QueueSettings(files_per_job=3))
    assert repeated.index(docs, worker_processes=processes).counts == expected
    assert repeated.content() == reference.content()
    assert repeated.skipped() == reference.skipped()


def _repeated(enqueue: Any, times: int) -> Any:
    async def enqueue_often(self: PageQueue, job_id: str, payload: bytes) -> None:
        for number in range(times):
            await enqueue(self, f"{job_id}:{number}", payload)

    return enqueue_often


Job = DocumentWrite | RemoveWrite


def _job(key: str, version: int, kind: str) -> Job:
    """The same job for the same arguments: a document at a version, or its removal."""
    observed_ns = version * 10
    if kind == "remove":
        return RemoveWrite(key, observed_ns, 1)
    made = document_write(key, f"# {key}\n\nversion {version}\n", generation=1)
    return replace(made, observed_ns=observed_ns, checked_ns=observed_ns)


JOBS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 4), st.sampled_from(["write", "write", "remove"])),
    min_size=1,
    max_size=8,
    unique_by=lambda job: job[:2],
)


@settings(max_examples=25, deadline=None)
@given(JOBS, st.data())
def test_jobs_in_any_order_and_number_leave_the_same_store(
    jobs: list[tuple[str, int, str]], data: st.DataObject
) -> None:
    """C-04, R25, P5: run once, twice or five times, in whatever order: what was read last is what stays."""
    repeated = [job for job in jobs for _ in range(data.draw(st.sampled_from([1, 2, 5]), label="times"))]
    order = data.draw(st.permutations(repeated), label="order")
    newest = {key: max(job for job in jobs if job[0] == key) for key, _, _ in jobs}
    expected = {f"docs/{key}.md": f"version {v}" for key, v, kind in newest.values() if kind == "write"}
    with scratch_directory() as folder:
        layout = BaseLayout(folder / "home")
        files.make_home(layout)
        store = open_store_writer(layout, base_id="b", substring_index="auto")
        try:
            for key, version, kind in order:
                job = _job(f"docs/{key}.md", version, kind)
                group = WriteGroup(removes=[job]) if isinstance(job, RemoveWrite) else WriteGroup(documents=[job])
                (answer,) = store.apply(group).results
                assert answer.outcome in (Outcome.ADDED, Outcome.UNCHANGED, Outcome.REMOVED)
            rows = store.connection.execute(
                "SELECT key, body FROM documents JOIN chunks ON chunks.document = documents.id"
            ).fetchall()
        finally:
            store.close()
    assert {key: body.strip() for key, body in rows} == expected
