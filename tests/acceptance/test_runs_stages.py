"""A run of a service is ended in every one of its stages, and stands still when it is asked to; real processes (fault
12, P26).

`ask_run` looks for ten seconds: a run that has not ended by then was not cancelled in time (S4-61, C-08).
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.run_control import LOOK_EVERY_S
from app.runs import ask_run
from store.run_port import RunRecord
from store.sqlite import SqliteStore
from tests.support.audit import audit
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.scratch import scratch_directory
from tests.support.service import Service, many_files, service

pytestmark = pytest.mark.redis

WITHIN_S = 10.0
SLOW_FOLDERS = 100
# a walk that takes its time: every folder with this name, a fifth of a second
SLOW_WALK = """
import os, time
scan = os.scandir
def slowly(path="."):
    if "slow" in str(path):
        time.sleep(0.2)
    return scan(path)
os.scandir = slowly
"""
EMBEDDINGS = """
  embeddings: {{base_url: '{url}', model: m, timeout: 60s, batch: 4}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    with embedding_server(dimension=24) as started:
        yield started


@pytest.fixture(scope="module")
def it(server: EmbeddingServer) -> Iterator[Service]:
    """A service with an index of 300 files."""
    with scratch_directory() as place, pytest.MonkeyPatch.context() as patch:
        (place / "first").mkdir()
        (place / "first" / "sitecustomize.py").write_text(SLOW_WALK, encoding="utf-8")
        patch.setenv("PYTHONPATH", str(place / "first"))
        with service(place, configuration=EMBEDDINGS.format(url=server.url), files=many_files(300)) as started:
            started.start_all()
            assert started.ended(started.submit()).state == "done"
            yield started
            assert audit(started.layout.database) == []


@contextmanager
def stopped(it: Service, role: str) -> Iterator[None]:
    """The role's process does nothing meanwhile, as one that waits for a disk."""
    pids = [one.pid for one in it.of(role)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def cancelled(it: Service, run: int) -> RunRecord:
    ended = ask_run(it.settings, run, "cancel", within_s=WITHIN_S)
    assert (ended.state, ended.cause) == ("cancelled", "cancelled"), ended
    return ended


def ask_pause(it: Service, run: int) -> None:
    """Ask for it, and give the run the time to hear of it: it looks now and then at what it is asked."""
    assert ask_run(it.settings, run, "pause", within_s=0).requested == "pause"
    time.sleep(3 * LOOK_EVERY_S)


def at(it: Service, run: int, *states: str) -> None:
    it.wait_until(lambda: it.run(run).state in states)


def new_files(it: Service, name: str, count: int = 3) -> list[Path]:
    paths = [it.folder / "docs" / f"{name}-{number}.md" for number in range(count)]
    for path in paths:
        path.write_text(f"# {path.stem}\n\nthe words of {path.stem}\n", encoding="utf-8")
    return paths


def documents(it: Service) -> int:
    with closing(SqliteStore(it.layout.database, base_id=None)) as store:
        return store.reader().document_count("docs/")


def settle(it: Service) -> None:
    """Index until no file has changed too shortly ago to be taken for unchanged (R26)."""
    it.wait_until(lambda: not it.ended(it.submit()).progress.get("to_check"))


def test_in_the_walk(it: Service) -> None:
    for number in range(SLOW_FOLDERS):
        (it.folder / "docs" / f"slow-{number:03}").mkdir()
    try:
        run = it.submit()
        at(it, run, "walking", "checking")
        cancelled(it, run)
    finally:
        for number in range(SLOW_FOLDERS):
            (it.folder / "docs" / f"slow-{number:03}").rmdir()


@pytest.mark.parametrize("role", ["worker", "writer"])
def test_while_files_are_read_and_written(it: Service, role: str) -> None:
    """Fault 12: the process that has the page in hand does not answer; when it does again, the page is of no run."""
    paths = new_files(it, f"stuck-{role}")
    with stopped(it, role):
        run = it.submit()
        at(it, run, "checking", "waiting")
        cancelled(it, run)
    after = it.ended(it.submit())
    assert after.state == "done"
    assert after.counts["added"] + after.counts.get("unchanged", 0) >= len(paths)


def test_with_a_server_of_embeddings_that_hangs(it: Service, server: EmbeddingServer) -> None:
    new_files(it, "hanging")
    server.behaviour.trick = "hang"
    try:
        run = it.submit()
        it.wait_until(lambda: server.in_flight > 0)
        cancelled(it, run)
    finally:
        server.behaviour.trick = ""
    assert it.ended(it.submit()).counts.get("added", 0) >= 3


def test_while_its_first_request_hangs(it: Service, server: EmbeddingServer) -> None:
    """A re-index asks the server what it is before anything else."""
    server.behaviour.trick = "hang"
    try:
        run = it.submit(reindex=True)
        at(it, run, "walking")
        cancelled(it, run)
    finally:
        server.behaviour.trick = ""


def test_while_documents_are_removed(it: Service) -> None:
    paths = new_files(it, "going")
    settle(it)
    for path in paths:
        path.unlink()
    with stopped(it, "writer"):
        run = it.submit()
        at(it, run, "writing")
        cancelled(it, run)
    assert it.ended(it.submit()).counts.get("removed", 0) in (0, len(paths))


def test_a_removal_stands_still_between_two_groups_and_goes_on(it: Service) -> None:
    """What was asked while one group is at the writer holds before the next; what is gone is counted once."""
    paths = new_files(it, "in-groups", 250)  # two groups; the guard holds more than a fifth, so they are let go
    settle(it)
    before = documents(it)
    for path in paths:
        path.unlink()
    with stopped(it, "writer"):
        run = it.submit(allow_mass_delete=True)
        at(it, run, "writing")
        ask_pause(it, run)
    at(it, run, "paused")
    assert 0 < before - documents(it) < len(paths)
    ask_run(it.settings, run, "", within_s=WITHIN_S)
    ended = it.ended(run)
    assert (ended.state, ended.counts["removed"]) == ("done", len(paths))


@pytest.mark.parametrize(("kind", "state"), [("verify", "checking"), ("compact", "writing")])
def test_a_verify_and_a_compact(it: Service, kind: str, state: str) -> None:
    with stopped(it, "writer"):
        run = it.submit(kind=kind)
        at(it, run, state)
        cancelled(it, run)
    after = it.ended(it.submit(kind=kind))
    assert (after.state, after.cause) == ("done", "")


def test_before_it_has_begun(it: Service) -> None:
    with stopped(it, "scheduler"):
        run = it.submit()
        assert ask_run(it.settings, run, "cancel", within_s=WITHIN_S).state == "cancelled"
    it.wait_until(lambda: it.run(run).ended_ns is not None)
    assert it.run(run).generation == 0


def test_a_pause_holds_at_a_page_border_and_a_resume_goes_on(it: Service) -> None:
    paths = new_files(it, "paused", 100)
    with stopped(it, "worker"):
        run = it.submit()
        at(it, run, "checking")
        ask_pause(it, run)
    at(it, run, "paused")
    assert it.run(run).ended_ns is None
    ask_run(it.settings, run, "", within_s=WITHIN_S)
    ended = it.ended(run)
    assert (ended.state, ended.counts["added"]) == ("done", len(paths))


def test_a_paused_run_can_be_cancelled(it: Service) -> None:
    new_files(it, "let-go", 100)
    with stopped(it, "worker"):
        run = it.submit()
        at(it, run, "checking")
        ask_pause(it, run)
    at(it, run, "paused")
    cancelled(it, run)
