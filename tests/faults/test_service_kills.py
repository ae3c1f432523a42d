"""A service whose processes are killed: what they had under way comes to its end with no operator (P2, P3, P5, R35)."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from store.sqlite import SqliteStore
from store.state import SqliteStateStore
from tests.support.audit import audit
from tests.support.poison import poisoned
from tests.support.service import Service, many_files, service

FILES = 1500


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path, files=many_files(FILES)) as started:
        yield started


def _assert_whole(it: Service, count: int = FILES) -> None:
    with closing(SqliteStore(it.layout.database, base_id=None)) as store:
        assert store.reader().document_count("docs/") == count
    assert audit(it.layout.database) == []


def _in_the_middle(it: Service, run: int) -> None:
    it.wait_until(lambda: it.run(run).progress.get("checked", 0) > 64)


def test_a_run_goes_through_all_roles(it: Service) -> None:
    it.start_all(workers=2)
    run = it.ended(it.first_run())
    assert (run.state, run.trigger) == ("done", "start")
    assert (run.state, run.counts, run.cause) == ("done", {"added": FILES}, "")
    assert run.roots == ("docs",)
    _assert_whole(it)
    again = it.ended(it.submit())
    assert (again.state, again.counts) == ("done", {"unchanged": FILES})


def test_a_worker_that_is_killed_gives_its_pages_to_another(it: Service) -> None:
    """Fault 1: its job is running again on another worker in seconds, exactly once in effect."""
    it.start_all(workers=2)
    run = it.first_run()
    _in_the_middle(it, run)
    it.of("worker")[0].kill()
    ended = it.ended(run)
    assert (ended.state, ended.counts) == ("done", {"added": FILES})
    _assert_whole(it)


def test_a_writer_that_is_killed_is_replaced_by_the_one_that_stands_by(it: Service) -> None:
    it.start_all()
    second = it.start("writer")
    it.wait_until(lambda: "stands_by" in second.said())
    run = it.first_run()
    _in_the_middle(it, run)
    it.of("writer")[0].kill()
    ended = it.ended(run)
    assert (ended.state, ended.counts) == ("done", {"added": FILES})
    _assert_whole(it)


def test_a_scheduler_that_is_killed_is_replaced_and_the_run_keeps_its_id(it: Service) -> None:
    """Fault 9: a crash does not leave a run that is going on for ever."""
    it.start_all()
    second = it.start("scheduler")
    it.wait_until(lambda: "stands_by" in second.said())
    run = it.first_run()
    _in_the_middle(it, run)
    it.of("scheduler")[0].kill()
    ended = it.ended(run)
    assert ended.state == "done"
    assert sum(ended.counts.values()) == FILES
    _assert_whole(it)


def test_a_queue_that_loses_everything_is_noticed(it: Service) -> None:
    """Fault 7, P3: after FLUSHALL the pages are planned again."""
    from redis import Redis

    it.start_all()
    run = it.first_run()
    _in_the_middle(it, run)
    with closing(Redis(unix_socket_path=it.socket)) as client:
        client.flushall()
    ended = it.ended(run)
    assert ended.state == "done"
    assert sum(ended.counts.values()) == FILES
    _assert_whole(it)


def test_roles_that_are_told_to_end_leave_the_run_for_their_successors(tmp_path: Path) -> None:
    """P27, fault 4 and 10: SIGTERM drains in 10 s, burns no try, and the run goes on when the roles are back."""
    many = 8000  # so that it is not over before the signal comes
    with service(tmp_path, files=many_files(many)) as it:
        it.start_all()
        run = it.first_run()
        _in_the_middle(it, run)
        for role in sorted(it.roles, key=lambda role: role.name):  # the scheduler first: what it has begun stays begun
            began_s = time.monotonic()
            assert role.terminate() == 0, role.said()
            assert time.monotonic() - began_s < 12
        assert it.run(run).ended_ns is None
        it.start_all()
        ended = it.ended(run)
        assert ended.state == "done"
        assert sum(ended.counts.values()) == many
        _assert_whole(it, many)


def test_a_worker_that_is_stopped_and_goes_on_does_no_harm(it: Service) -> None:
    """Its lease expires, another takes its pages, and what it hands over later changes nothing (P4)."""
    it.start_all(workers=2)
    run = it.first_run()
    _in_the_middle(it, run)
    stopped = it.of("worker")[0]
    os.kill(stopped.pid, signal.SIGSTOP)
    ended = it.ended(run)
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
        ended = it.ended(it.first_run())
        assert (ended.state, ended.counts) == ("partial", {"added": 200, "failed": 1})
        assert len(it.of("worker")) == 1
        with closing(SqliteStateStore(it.layout.state, read_only=True)) as state:
            (failure,) = state.failures()
        assert (failure.key, failure.standing) == ("docs/part-00/poison.md", "quarantined")
        again = it.ended(it.submit())
        assert len(it.of("worker")) == 1, "it is not tried again"
        assert again.counts["unchanged"] == 200
        _assert_whole(it, 200)
