"""Whole runs over a real queue: in this process, with worker processes, over a queue elsewhere; and how they end."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app import pipeline
from app.indexing import PROCESSES_FROM_PAGES, default_processes
from domain.errors import DiskFullError, InterruptedRunError, QueueError, StorageError
from domain.settings import QueueSettings
from scheduler.queue.address import QueueAddress
from scheduler.queue.client import open_pool
from scheduler.queue.embedded import EmbeddedValkey
from store.documents import SqliteStoreWriter
from store.write_port import GroupResult, WriteGroup
from tests.support.audit import audit
from tests.support.runs import Base, Watched, base_in, is_running, nothing_left, queue_servers, workers
from tests.support.signals import sigint
from tests.support.trees import make_tree
from tests.support.waiting import eventually

pytestmark = pytest.mark.redis

FILES: dict[str, str | bytes] = {
    "a.md": "---\ntitle: Alpha\n---\n# A\n\nalpha words\n",
    "b.txt": "beta words\n\nmore of them\n",
    "sub/c.md": "# C\n\ngamma \u6771\u4eac\n",
    "bad.md": b"\xff",
    "empty.md": "",
}
MANY = {f"{number // 16:02}/{number:03}.md": f"# Page {number}\n\nword{number} text\n" for number in range(96)}
SMALL_PAGES = QueueSettings(files_per_job=2)  # more pages than may be in flight


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = base_in(tmp_path, queue=SMALL_PAGES)
    with nothing_left(made):
        yield made


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", FILES)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", MANY)


@pytest.fixture
def server() -> Iterator[QueueAddress]:
    """A queue that is not the run's own."""
    started = EmbeddedValkey()
    try:
        yield started.start()
    finally:
        started.stop()


@pytest.fixture
def in_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have worker processes run some lines when they start."""

    def run_first(lines: str) -> None:
        folder = tmp_path / "first"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(lines, "utf-8")
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return run_first


def test_a_folder_becomes_an_index(base: Base, docs: Path) -> None:
    """C-11: alone, in one process."""
    report = base.index(docs)
    assert report.counts == {"added": 3, "skipped": 2}
    assert (report.state, report.exit_status, report.documents) == ("done", 0, 3)
    assert base.stored_keys() == ["docs/a.md", "docs/b.txt", "docs/sub/c.md"]
    assert base.skipped() == {"docs/bad.md": "not_utf8", "docs/empty.md": "empty"}
    assert report.skips == {"not_utf8": (1, "docs/bad.md"), "empty": (1, "docs/empty.md")}
    assert base.found("gamma") == ["docs/sub/c.md"]
    assert base.last_run() == ("done", "", report.counts)
    assert audit(base.layout.database) == []


def test_a_second_run_does_nothing_and_starts_nothing(base: Base, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1-07, R26."""
    base.index(docs)
    base.settle()
    before = base.content()

    def never(*arguments: object) -> None:
        raise AssertionError("a run without work started the queue")

    monkeypatch.setattr(pipeline, "run_pipeline", never)
    monkeypatch.setattr(EmbeddedValkey, "launch", never)
    report = base.index()
    assert report.counts == {"unchanged": 3, "skipped": 2}
    assert report.skips == {"not_utf8": (1, "docs/bad.md"), "empty": (1, "docs/empty.md")}
    assert (report.state, report.exit_status, report.chunks_written) == ("done", 0, 0)
    assert base.content() == before


def test_worker_processes_make_the_same_store(tmp_path: Path, docs: Path) -> None:
    """C-02, C-03: pages go through the spool, or straight into the inbox."""
    make_tree(docs, MANY)
    bases = [base_in(tmp_path / name, queue=SMALL_PAGES) for name in ("here", "apart")]
    for base, processes in zip(bases, (0, 2), strict=True):
        with nothing_left(base):
            report = base.index(docs, worker_processes=processes)
        assert report.counts == {"added": 99, "skipped": 2}
        assert audit(base.layout.database) == []
    assert bases[0].content() == bases[1].content()
    assert bases[0].skipped() == bases[1].skipped()


def keys_in(address: QueueAddress, *planted: str) -> set[bytes]:
    async def ask() -> set[bytes]:
        async with open_pool(address) as pool:
            for key in planted:
                await pool.set(key, "theirs")
            return set(await pool.keys("*"))

    return asyncio.run(ask())


@pytest.mark.parametrize("processes", [0, 1])
def test_a_queue_elsewhere_is_used_and_left_clean(
    base: Base, docs: Path, tmp_path: Path, server: QueueAddress, processes: int
) -> None:
    """The same run over `queue.url`; nothing of another base, or of another program, is touched."""
    reference = base_in(tmp_path / "reference")
    reference.index(docs)
    before = keys_in(server, "knowledge:other:checks", "arq:job:knowledge:other:check:1:1:1", "mine")
    servers = queue_servers()
    seen: list[list[int]] = []
    watched = Watched(lambda: seen.append(queue_servers()))
    report = base.index(docs, queue_url=f"unix://{server.socket}", worker_processes=processes, progress=watched)
    assert seen == [servers]
    assert report.counts == {"added": 3, "skipped": 2}
    assert keys_in(server) == before
    assert base.content() == reference.content()


def test_what_an_older_run_left_in_the_queue_is_dropped(base: Base, docs: Path, server: QueueAddress) -> None:
    """R25: its jobs are of a generation that is over."""
    base.index(docs)
    with base.state() as state:
        prefix = f"knowledge:{state.base_id()}:"
    keys_in(server, f"{prefix}checks", f"arq:job:{prefix}check:1:1:1", f"arq:in-progress:{prefix}check:1:1:1")
    report = base.index(docs, queue_url=f"unix://{server.socket}", reindex=True)
    assert report.counts == {"updated": 3, "skipped": 2}
    assert keys_in(server) == set()


def test_a_queue_that_does_not_answer_is_an_error(
    base: Base, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """R37: 16; the run is recorded as failed, nothing is printed, and the next run does the work."""
    monkeypatch.setattr("scheduler.queue.client.CONNECT_RETRIES", 0)
    with pytest.raises(QueueError, match="does not answer") as refused:
        base.index(docs, queue_url=f"unix://{tmp_path}/nobody.sock")
    assert refused.value.exit_status == 16
    assert base.last_run()[:2] == ("failed", "queue_unreachable")
    assert capfd.readouterr() == ("", "")
    assert base.index().counts == {"added": 3, "skipped": 2}


@pytest.mark.parametrize("processes", [0, 1])
def test_a_queue_that_goes_away_is_an_error(
    base: Base, many: Path, processes: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """P2, P3: kill -9 of the broker; what was committed stays, and the next run does the rest."""

    def kill_server() -> None:
        for pid in queue_servers():
            os.kill(pid, signal.SIGKILL)

    with pytest.raises(QueueError) as refused:
        base.index(many, worker_processes=processes, progress=Watched(kill_server))
    assert refused.value.exit_status == 16
    assert base.last_run()[:2] == ("failed", "queue_unreachable")
    assert capfd.readouterr() == ("", "")
    base.settle()
    committed = len(base.stored_keys())
    assert base.index().counts == {"unchanged": committed, "added": 96 - committed}
    assert audit(base.layout.database) == []


def test_a_queue_that_forgets_everything_costs_nothing(base: Base, many: Path, server: QueueAddress) -> None:
    """P3: FLUSHALL in the middle of a run."""

    def forget() -> None:
        command = "import asyncio,sys;from redis.asyncio import Redis;"
        command += "asyncio.run(Redis(unix_socket_path=sys.argv[1]).flushall())"
        subprocess.run([sys.executable, "-c", command, server.socket], check=True)

    report = base.index(many, queue_url=f"unix://{server.socket}", progress=Watched(forget))
    assert report.counts == {"added": 96}
    assert len(base.stored_keys()) == 96


def test_a_worker_process_that_is_killed_costs_nothing(base: Base, many: Path) -> None:
    """P2: the run completes, and every file is counted once."""
    killed: list[int] = []

    def kill_workers() -> None:
        killed.extend(workers())
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    report = base.index(many, worker_processes=1, progress=Watched(kill_workers))
    assert len(killed) == 1
    assert report.counts == {"added": 96}
    assert (report.state, len(base.stored_keys())) == ("done", 96)
    assert audit(base.layout.database) == []


DEADLY = """
import os, signal
import workers.reading
read = workers.reading.RootReader.read
def deadly(self, relative):
    if relative.endswith("deadly.md"):
        os.kill(os.getpid(), signal.SIGKILL)
    return read(self, relative)
workers.reading.RootReader.read = deadly
"""


def test_a_file_that_kills_its_worker_is_found_and_fails(
    base: Base, docs: Path, in_workers: Callable[[str], None]
) -> None:
    """R23: bisected out of its page; every other file is in the index, and it is tried again when somebody asks."""
    in_workers(DEADLY)
    make_tree(docs, {"deadly.md": "# D\n"})
    report = base.index(docs, worker_processes=1)
    assert report.counts == {"added": 3, "skipped": 2, "failed": 1}
    assert [(failure.reason, failure.key) for failure in report.failures] == [("worker_died", "docs/deadly.md")]
    assert (report.state, report.exit_status) == ("partial", 3)
    assert base.failures() == {"docs/deadly.md": "worker_died"}
    base.settle()
    assert base.index().counts == {"unchanged": 3, "skipped": 2, "failed": 1}
    in_workers("")  # the file was mended: it is still read in a process of its own
    assert base.index(rehash=True).counts == {"unchanged": 3, "skipped": 2, "added": 1}
    assert base.failures() == {}


def test_a_worker_that_cannot_write_its_pages_ends_the_run(
    base: Base, docs: Path, in_workers: Callable[[str], None]
) -> None:
    """R37: 14, at once; not a file that failed, and not a run that waits."""
    in_workers(
        "import errno, workers.spool\n"
        "def full(*arguments): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "workers.spool.write_page = full\n"
    )
    with pytest.raises(StorageError) as refused:
        base.index(docs, worker_processes=1)
    assert refused.value.exit_status == 14
    assert base.last_run()[:2] == ("failed", "storage")


def test_a_worker_that_does_not_start_ends_the_run(
    base: Base, docs: Path, in_workers: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    in_workers("import os\nos._exit(7) if 'app.worker_process' in str(os.sys.orig_argv) else None\n")
    with pytest.raises(Exception, match="could not start"):
        base.index(docs, worker_processes=1)
    assert base.last_run()[0] == "failed"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("processes", [0, 1])
def test_a_full_disk_stops_the_run(
    base: Base,
    many: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    processes: int,
) -> None:
    """R24, P23: exit 14, no traceback; with room again the next run does the rest."""
    apply = SqliteStoreWriter.apply
    calls: list[int] = []

    def full_at_second(self: SqliteStoreWriter, group: WriteGroup) -> GroupResult:
        calls.append(len(group))
        if len(calls) > 1:
            raise DiskFullError("no space left")
        return apply(self, group)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStoreWriter, "apply", full_at_second)
        with pytest.raises(DiskFullError):
            base.index(many, worker_processes=processes)
    assert base.last_run()[:2] == ("failed", "disk_full")
    assert capfd.readouterr() == ("", "")
    base.settle()
    assert base.index().counts == {"unchanged": calls[0], "added": 96 - calls[0]}


def test_a_fault_of_ours_is_recorded(base: Base, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run never stays open in the books."""

    def faulty(self: SqliteStoreWriter, group: WriteGroup) -> GroupResult:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(SqliteStoreWriter, "apply", faulty)
    with pytest.raises(KeyError):
        base.index(docs)
    assert base.last_run()[:2] == ("failed", "unexpected")


@pytest.mark.parametrize("processes", [0, 1])
def test_an_interrupt_keeps_what_is_committed(base: Base, many: Path, processes: int) -> None:
    """C-07: exit 130, state `interrupted`, and the next run does the rest only."""
    interrupt = Watched(lambda: os.kill(os.getpid(), signal.SIGINT))
    with sigint(), pytest.raises(InterruptedRunError) as ended:
        base.index(many, worker_processes=processes, progress=interrupt)
    assert ended.value.exit_status == 130
    assert base.last_run()[:2] == ("interrupted", "interrupted")
    committed = len(base.stored_keys())
    assert 0 < committed < 96
    base.settle()
    assert base.index().counts == {"unchanged": committed, "added": 96 - committed}
    assert audit(base.layout.database) == []


def test_an_interrupt_before_there_is_work(base: Base, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("app.indexing.plan_roots", interrupted)
    with pytest.raises(InterruptedRunError):
        base.index(docs)
    assert base.last_run()[0] == "interrupted"


STARTER = """
import sys, time
from pathlib import Path
from domain.settings import QueueSettings
from tests.support.runs import Watched, base_in, children
def stay():
    print(*children(), flush=True)
    time.sleep(60)
home, docs = map(Path, sys.argv[1:])
base_in(home, queue=QueueSettings(files_per_job=2)).index(docs, worker_processes=1, progress=Watched(stay))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's part of it is Linux's")
def test_a_run_that_is_killed_leaves_no_process(base: Base, many: Path, tmp_path: Path) -> None:
    """P2, C-07: kill -9 of the command takes its server and its workers along; the next run does the rest."""
    root = Path(__file__).parents[2]
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path), str(many)], stdout=subprocess.PIPE, text=True, cwd=root
    )
    try:
        assert starter.stdout is not None
        started = [int(pid) for pid in starter.stdout.readline().split()]
        assert len(started) == 2
        starter.kill()
        starter.wait()
        for pid in started:
            eventually(lambda pid=pid: not is_running(pid))  # type: ignore[misc]
    finally:
        starter.kill()
        starter.wait()
        if starter.stdout is not None:
            starter.stdout.close()
    assert base.index().counts["added"] > 0
    assert len(base.stored_keys()) == 96
    assert audit(base.layout.database) == []
    with base.state() as state:
        assert [run.state for run in state.runs()] == ["done", "interrupted"]


def test_small_runs_start_no_process() -> None:
    """A process costs more to start than it saves, below so many pages."""
    assert default_processes(PROCESSES_FROM_PAGES - 1) == 0
    assert default_processes(PROCESSES_FROM_PAGES) >= 1
