"""Who keeps a run of a service from getting on: dead, silent and slow are told apart, by locks, leases and counters
(fault 8, C-08), and whoever stands by is seen to live."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from app.roles.queue_place import queue_place
from app.run_standstill import Standstill
from app.runs import shown_run
from scheduler.queue.names import QueueNames
from scheduler.queue.roll_call import RollCall, roll_call
from store.state import SqliteStateStore
from tests.support.chaos import MATTER, SLOW_S, Chaos, chaos
from tests.support.command_line import CommandLine
from tests.support.service import Role

pytestmark = [pytest.mark.redis, pytest.mark.timeout(900)]
FILES = 24


@pytest.fixture(scope="module")
def it() -> Iterator[Chaos]:
    """A service with an index of some files; its embeddings server takes a while for each."""
    with chaos(FILES) as started:
        patient = {"KNOWLEDGE_EMBEDDINGS__TIMEOUT": "300s"}  # a slow answer is an answer
        started.service.environ |= dict.fromkeys(("worker", "scheduler"), patient)
        started.service.start_all()
        assert started.ended(started.service.first_run()).state == "done"
        yield started


@contextmanager
def stopped(*roles: Role) -> Iterator[None]:
    """They do nothing meanwhile, and hold what they hold."""
    for role in roles:
        os.kill(role.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for role in roles:
            os.kill(role.pid, signal.SIGCONT)


def _change(it: Chaos) -> int:
    """A run over files that have all changed."""
    it.change(FILES)
    return it.service.submit()


def _standstill(it: Chaos, run: int) -> Standstill:
    """Once there is one: a run that has just begun to stand still is only on its way."""
    found: list[Standstill | None] = []

    def is_told() -> bool:
        found[:] = [shown_run(it.service.settings, run).standstill]
        return found[0] is not None

    it.service.wait_until(is_told, SLOW_S)
    assert found[0] is not None
    return found[0]


def _roles(it: Chaos) -> RollCall:
    with closing(SqliteStateStore(it.service.layout.state, read_only=True)) as state:
        names = QueueNames(state.base_id())
    return roll_call(queue_place(it.service.settings, it.service.layout), names)


def test_a_writer_that_is_stopped_is_named_and_the_run_goes_on_when_it_does(it: Chaos) -> None:
    """It has its lock, so that nobody can take its place; of its lease nothing is left."""
    (writer,) = it.service.of("writer")
    with stopped(writer):
        run = _change(it)
        it.service.wait_until(lambda: "the writer does not answer" in it.service.run(run).cause, SLOW_S)
        assert it.service.run(run).state == "waiting"
        assert f"process {writer.pid}" in it.service.run(run).cause
        found = _standstill(it, run)
        assert (found.who, found.how) == ("writer", "silent")
        assert str(writer.pid) in found.holder
        command = CommandLine(it.service.folder, within_s=SLOW_S)
        shown = command("runs", "show", str(run), "--config", "knowledge.yaml")
        assert f"process {writer.pid}" in shown.out
        assert "the writer does not answer: it was stopped, or gets no processor" in shown.out
        told = command("status", "--config", "knowledge.yaml").out
        assert "it waits: the writer does not answer" in told
    assert it.ended(run).state == "done"


def test_a_verify_that_waits_for_a_stopped_writer_names_it_too(it: Chaos) -> None:
    """It has no counter that could move."""
    (writer,) = it.service.of("writer")
    with stopped(writer):
        run = it.service.submit(kind="verify")
        found = _standstill(it, run)
        assert (found.who, found.how) == ("writer", "silent")
        shown = CommandLine(it.service.folder, within_s=SLOW_S)(
            "runs", "show", str(run), "--config", "knowledge.yaml"
        ).out
        assert "the writer does not answer" in shown
        assert "no progress" not in shown
    assert it.ended(run).state == "done"


def test_a_scheduler_that_is_stopped_is_named_by_whoever_looks(it: Chaos) -> None:
    """It can write nothing down itself: state.db says what it said last."""
    (scheduler,), (worker,) = it.service.of("scheduler"), it.service.of("worker")
    with stopped(worker):  # so that the run is not over before
        run = _change(it)
        it.service.wait_until(lambda: it.service.run(run).state == "checking", SLOW_S)
        with stopped(scheduler):
            found = _standstill(it, run)
            assert (found.who, found.how) == ("scheduler", "silent")
            assert str(scheduler.pid) in found.holder
            told = CommandLine(it.service.folder, within_s=SLOW_S)(
                "runs", "show", str(run), "--json", "--config", "knowledge.yaml"
            )
            assert told.value["standstill"]["who"] == "scheduler"
            assert told.value["still_seconds"] >= 5
    assert it.ended(run).state == "done"


def test_without_a_worker_the_run_waits_for_one(it: Chaos) -> None:
    (worker,) = it.service.of("worker")
    worker.kill()
    run = _change(it)
    it.service.wait_until(lambda: it.service.run(run).cause == "no worker is alive", SLOW_S)
    found = _standstill(it, run)
    assert (found.who, found.how) == ("worker", "dead")
    assert found.pages > 0
    it.service.start("worker")
    assert it.ended(run).state == "done"


def test_a_slow_model_is_slow_and_one_that_is_away_is_waited_for_and_neither_fails_a_run(it: Chaos) -> None:
    """Fault 8: no text is answered for as long as anybody looks; everybody lives, and the run says so. Another source
    that was asked for is not starved out of the queue either."""
    it.embeddings.behaviour.held = MATTER
    run = _change(it)
    second = it.service.submit(paths=[str(it.docs / "1")])
    found = _standstill(it, run)
    assert (found.who, found.how) == ("worker", "slow")
    assert it.service.run(run).state in ("checking", "embedding")
    assert it.service.run(run).cause == ""

    it.embeddings.take_down("refuse")
    it.service.wait_until(lambda: it.service.run(run).state == "waiting", SLOW_S)
    assert "127.0.0.1:" in it.service.run(run).cause, "the server is named, whatever it was that failed first"
    assert it.service.run(second).state == "queued"
    it.embeddings.behaviour.held = ""
    it.embeddings.bring_up()
    assert it.ended(run).state == "done"
    assert it.ended(second).state == "done"


def test_whoever_stands_by_is_seen_to_live(it: Chaos) -> None:
    """A lease of its own, whose words name the one it waits for; gone when it leaves, active when it takes over."""
    names = ("scheduler", "writer")
    standbys = {name: it.service.start(name) for name in names}
    leads = {name: it.service.of(name)[0] for name in names}

    def standing(name: str) -> list[int]:
        return [note.pid for note in _roles(it).notes if note.role == name and not note.is_active]

    it.service.wait_until(lambda: all(standing(name) == [standbys[name].pid] for name in names), SLOW_S)
    (note,) = [note for note in _roles(it).notes if note.pid == standbys["writer"].pid]
    assert note.doing == f"waits for `knowledge writer`, process {leads['writer'].pid}"
    assert [note.pid for note in _roles(it).active("writer")] == [leads["writer"].pid]

    assert standbys["scheduler"].terminate() == 0
    assert standing("scheduler") == []
    leads["writer"].kill()
    it.service.wait_until(
        lambda: [note.pid for note in _roles(it).active("writer")] == [standbys["writer"].pid], SLOW_S
    )
    assert standing("writer") == []
