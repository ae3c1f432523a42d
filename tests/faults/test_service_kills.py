"""A service whose processes are killed: what they had under way comes to its end with no operator (P2, P3, P5, R35)."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from store.sqlite import SqliteStore
from store.state import SqliteStateStore
from tests.support.audit import audit
from tests.support.chaos import SLOW_S
from tests.support.gates import Gate
from tests.support.poison import poisoned
from tests.support.service import Service, many_files, service

FILES = 600
LATER = "part-1"  # the second half of the files, in the order of the walk

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path, files=many_files(FILES)) as started:
        yield started


@pytest.fixture
def gate(it: Service) -> Gate:
    """No run is over before it is opened."""
    made = Gate(it.folder, before=LATER)
    it.environ["worker"] = made.environ
    return made


def _assert_whole(it: Service, count: int = FILES) -> None:
    with closing(SqliteStore(it.layout.database, base_id=None)) as store:
        assert store.reader().document_count("docs/") == count
    assert audit(it.layout.database) == []


def _in_the_middle(it: Service) -> int:
    """The run, once a part of it is done."""
    run = it.first_run()
    it.wait_until(lambda: it.run(run).progress.get("checked", 0) >= 64, SLOW_S)
    assert it.run(run).ended_ns is None
    return run


def test_a_run_goes_through_all_roles(it: Service) -> None:
    it.start_all(workers=2)
    run = it.ended(it.first_run(), SLOW_S)
    assert (run.state, run.trigger) == ("done", "start")
    assert (run.state, run.counts, run.cause) == ("done", {"added": FILES}, "")
    assert run.roots == ("docs",)
    _assert_whole(it)
    again = it.ended(it.submit(), SLOW_S)
    assert (again.state, again.counts) == ("done", {"unchanged": FILES})


def test_a_worker_that_is_killed_gives_its_pages_to_another(it: Service, gate: Gate) -> None:
    """Fault 1: its job is running again on another worker in seconds, exactly once in effect."""
    it.start_all(workers=2)
    run = _in_the_middle(it)
    it.of("worker")[0].kill()
    gate.open()
    ended = it.ended(run, SLOW_S)
    assert (ended.state, ended.counts) == ("done", {"added": FILES})
    _assert_whole(it)


def test_a_writer_that_is_killed_is_replaced_by_the_one_that_stands_by(it: Service, gate: Gate) -> None:
    it.start_all()
    second = it.start("writer")
    it.wait_until(lambda: "stands_by" in second.said())
    run = _in_the_middle(it)
    it.of("writer")[0].kill()
    gate.open()
    ended = it.ended(run, SLOW_S)
    assert (ended.state, ended.counts) == ("done", {"added": FILES})
    _assert_whole(it)


def test_a_scheduler_that_is_killed_is_replaced_and_the_run_keeps_its_id(it: Service, gate: Gate) -> None:
    """Fault 9: a crash does not leave a run that is going on for ever."""
    it.start_all()
    second = it.start("scheduler")
    it.wait_until(lambda: "stands_by" in second.said())
    run = _in_the_middle(it)
    it.of("scheduler")[0].kill()
    gate.open()
    ended = it.ended(run, SLOW_S)
    assert ended.state == "done"
    assert sum(ended.counts.values()) == FILES
    _assert_whole(it)


def test_a_queue_that_loses_everything_is_noticed(it: Service, gate: Gate) -> None:
    """Fault 7, P3: after FLUSHALL the pages are planned again."""
    from redis import Redis

    it.start_all()
    run = _in_the_middle(it)
    with closing(Redis(unix_socket_path=it.socket)) as client:
        client.flushall()
    gate.open()
    ended = it.ended(run, SLOW_S)
    assert ended.state == "done"
    assert sum(ended.counts.values()) == FILES
    _assert_whole(it)


def test_roles_that_are_told_to_end_leave_the_run_for_their_successors(it: Service, gate: Gate) -> None:
    """P27, fault 4 and 10: SIGTERM burns no try, and the run goes on when the roles are back."""
    it.start_all()
    run = _in_the_middle(it)
    for role in sorted(it.roles, key=lambda role: role.name):  # the scheduler first: what it has begun stays begun
        assert role.terminate() == 0, role.said()
        gate.open()  # without a scheduler no run ends
    assert it.run(run).ended_ns is None
    it.start_all()
    ended = it.ended(run, SLOW_S)
    assert ended.state == "done"
    assert sum(ended.counts.values()) == FILES
    _assert_whole(it)


def test_a_worker_that_is_stopped_and_goes_on_does_no_harm(it: Service, gate: Gate) -> None:
    """Its lease expires, another takes its pages, and what it hands over later changes nothing (P4)."""
    it.start_all(workers=2)
    run = _in_the_middle(it)
    stopped = it.of("worker")[0]
    os.kill(stopped.pid, signal.SIGSTOP)
    gate.open()
    ended = it.ended(run, SLOW_S)
    os.kill(stopped.pid, signal.SIGCONT)
    assert (ended.state, ended.counts) == ("done", {"added": FILES})
    _assert_whole(it)


def test_a_file_that_kills_its_worker_is_quarantined_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R23: it costs one worker, not one for each half of its page."""
    files = many_files(200) | {"part-00/poison.md": "# Poison\n\ndeadly\n"}
    with service(tmp_path, files=files) as it:
        for name in ("writer", "scheduler"):
            it.start(name)
        poisoned(tmp_path, monkeypatch, "kill")
        it.start("worker")
        it.start("worker")
        ended = it.ended(it.first_run(), SLOW_S)
        assert (ended.state, ended.counts) == ("partial", {"added": 200, "failed": 1})
        assert len(it.of("worker")) == 1
        with closing(SqliteStateStore(it.layout.state, read_only=True)) as state:
            (failure,) = state.failures()
        assert (failure.key, failure.standing) == ("docs/part-00/poison.md", "quarantined")
        again = it.ended(it.submit(), SLOW_S)
        assert len(it.of("worker")) == 1, "it is not tried again"
        assert again.counts["unchanged"] == 200
        _assert_whole(it, 200)
