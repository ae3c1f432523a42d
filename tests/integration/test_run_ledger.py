"""Runs in state.db: queued, begun, asked, looked at, taken over, ended (store.run_port)."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.run_request import RunRequest
from app.submitting import queued_run
from domain.errors import FormatError
from store import driver, state_runs
from store.connection import open_writer
from store.state import SqliteStateStore
from store.state_port import PageOutcome
from store.state_schema import STEPS


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteStateStore]:
    with closing(SqliteStateStore(tmp_path / "state.db")) as opened:
        yield opened


def queued(state: SqliteStateStore, **request: object) -> int:
    wanted = RunRequest.from_json(request)
    return state.queue_run(queued_run(wanted, "api"), wanted.to_json()).id


def begun(state: SqliteStateStore, **request: object) -> int:
    run = queued(state, **request)
    assert state.start_run(run, floor_generation=0) is not None
    return run


def test_a_queued_run_keeps_its_request_and_begins_with_a_generation_of_its_own(state: SqliteStateStore) -> None:
    first, second = queued(state, rehash=True), queued(state)
    assert [run.id for run in state.queued_runs()] == [first, second]
    assert state.open_run() is None
    begun_run = state.start_run(first, floor_generation=41)
    assert begun_run is not None
    assert (begun_run.state, begun_run.generation, begun_run.is_open) == ("walking", 42, True)
    assert RunRequest.from_json(state.request_of(first)).rehash
    assert state.start_run(first, floor_generation=0) is None, "it has begun"
    assert state.open_run() == state.run(first)
    assert [run.id for run in state.queued_runs()] == [second]


def test_a_queued_run_that_is_cancelled_never_begins(state: SqliteStateStore) -> None:
    run = queued(state)
    assert state.ask(run, "cancel")
    record = state.run(run)
    assert record is not None
    assert (record.state, record.ended_ns is not None) == ("cancelled", True)
    assert state.start_run(run, floor_generation=0) is None


def test_an_open_run_is_asked_and_forgets_it_at_its_end(state: SqliteStateStore) -> None:
    run = begun(state)
    assert state.ask(run, "pause")
    assert state.wish(run) == "pause"
    assert state.ask(run, "")
    assert state.wish(run) == ""
    assert state.ask(run, "cancel")
    state.end_run(run, "cancelled", {"added": 3}, "cancelled")
    record = state.run(run)
    assert record is not None
    assert (record.requested, record.counts, record.state) == ("", {"added": 3}, "cancelled")
    assert not state.ask(run, "pause"), "it has ended"
    assert not state.ask(999, "pause")


def test_how_long_a_run_is_in_its_state_is_known(state: SqliteStateStore) -> None:
    run = begun(state)
    before = state.run(run)
    state.set_run_state(run, "waiting", "no worker is alive")
    waiting = state.run(run)
    state.set_run_state(run, "waiting", "the writer is away")
    still = state.run(run)
    assert before is not None and waiting is not None and still is not None
    assert before.since_ns < waiting.since_ns
    assert (still.since_ns, still.cause) == (waiting.since_ns, "the writer is away")
    state.end_run(run, "done", {}, "")
    state.set_run_state(run, "checking", "")
    ended = state.run(run)
    assert ended is not None
    assert ended.state == "done", "what comes late changes nothing"


def test_progress_is_told_from_silence(state: SqliteStateStore) -> None:
    """Fault 8: waiting, slow and dead are told apart by what has changed last."""
    run = begun(state)
    state.note_progress(run, {"checked": 1})
    first = state.run(run)
    state.note_progress(run, {"checked": 1})
    same = state.run(run)
    state.note_progress(run, {"checked": 2})
    more = state.run(run)
    assert first is not None and same is not None and more is not None
    assert first.progressed_ns == same.progressed_ns < more.progressed_ns
    assert more.progress == {"checked": 2}


def test_what_a_run_has_changed_is_kept_once_for_each_page(state: SqliteStateStore) -> None:
    run = begun(state)
    changes = {"added": ["docs/a", "docs/new\nline"], "updated": []}
    for _ in range(2):
        state.finish_pages(run, [PageOutcome(1, {"added": 2}, changes=changes)])  # type: ignore[arg-type]
    state.finish_pages(run, [PageOutcome(2, {"added": 1}, changes={"added": ["docs/é"]})])
    assert state.changes(run, "added", limit=10) == [(1, ("docs/a", "docs/new\nline")), (2, ("docs/é",))]
    assert state.changes(run, "added", after_page=1, limit=10) == [(2, ("docs/é",))]
    assert state.changes(run, "updated", limit=10) == []


def test_only_the_newest_runs_keep_what_they_changed(state: SqliteStateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_runs, "KEPT_CHANGES_OF_RUNS", 2)
    monkeypatch.setattr(state_runs, "KEPT_RUNS", 3)
    runs = []
    for number in range(5):
        run = begun(state)
        state.add_changes(run, 1, {"removed": [f"docs/{number}"]})
        state.end_run(run, "done", {}, "")
        runs.append(run)
    assert [run.id for run in state.runs()] == [*reversed(runs[2:])]
    assert [bool(state.changes(run, "removed", limit=1)) for run in runs] == [False, False, False, True, True]


def test_a_scheduler_that_takes_over_plans_again_what_was_only_planned(state: SqliteStateStore) -> None:
    run = begun(state)
    state.plan_pages(run, [(1, b"x"), (2, b"x"), (3, b"x")])
    state.finish_pages(run, [PageOutcome(1, {"added": 60, "failed": 4}), PageOutcome(2, {"added": 3})])
    assert state.done_pages(run, [1, 3]) == {1: {"added": 60, "failed": 4}}
    assert state.take_over_pages(run) == ({"added": 63, "failed": 4}, 3)
    assert state.done_pages(run, [1, 2, 3]) == {1: {"added": 60, "failed": 4}, 2: {"added": 3}}
    state.end_run(run, "done", {}, "")
    assert state.take_over_pages(run) == ({}, 0)


def test_a_run_on_a_command_line_closes_those_that_have_lost_their_process_but_not_what_waits(
    state: SqliteStateStore,
) -> None:
    lost, waits = begun(state), queued(state)
    direct = state.begin_run(replace(queued_run(RunRequest(), "cli"), state="walking"), floor_generation=0)
    assert [run.state for run in state.runs()] == ["walking", "queued", "interrupted"]
    assert direct.is_open
    assert {lost, waits, direct.id} == {run.id for run in state.runs()}


def test_a_file_of_the_first_version_is_brought_up_to_date_also_for_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(open_writer(path, synchronous="FULL")) as connection:
        for statement in STEPS[0]:
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
        connection.execute("INSERT INTO base VALUES (1, 'old', 0, 7)")
        connection.execute(
            "INSERT INTO runs VALUES (1, 7, 'index', 'cli', '[\"docs\"]', 1, 'done', 5, 6, '{\"added\": 2}', '', 99)"
        )
    with closing(SqliteStateStore(path, read_only=True)) as state:
        (run,) = state.runs()
        assert state.base_id() == "old"
    assert (run.state, run.counts, run.roots, run.progress) == ("done", {"added": 2}, ("docs",), {})
    with closing(driver.connect(str(path), uri=False, timeout_s=1)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS),)


def test_a_reader_that_may_not_write_says_who_has_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from domain.errors import StorageError
    from store import state_connection

    path = tmp_path / "state.db"
    with closing(open_writer(path, synchronous="FULL")) as connection:
        for statement in STEPS[0]:
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")

    def refuse(_path: Path, *, synchronous: str) -> None:
        raise StorageError("it may not be written to")

    monkeypatch.setattr(state_connection, "open_writer", refuse)
    with pytest.raises(FormatError, match="older version") as raised:
        SqliteStateStore(path, read_only=True)
    assert "knowledge status" in raised.value.hint


def test_threads_that_share_a_ledger_do_not_meet_in_one_transaction(state: SqliteStateStore) -> None:
    """P2: a scheduler tells progress from its loop while the thread that plans records what pages did; a run had
    failed with "cannot start a transaction within a transaction"."""
    run = begun(state)
    together = threading.Barrier(4)

    def finish(first: int) -> None:
        together.wait()
        for page in range(first, first + 40):
            state.finish_pages(run, [PageOutcome(page, {"added": 1})])

    def tell(_: int) -> None:
        together.wait()
        for number in range(40):
            state.note_progress(run, {"checked": number})
            assert state.run(run) is not None

    with ThreadPoolExecutor(4) as threads:
        work = [threads.submit(call, first) for first, call in enumerate((finish, tell, tell, finish))]
        for one in work:
            one.result()
    carried, highest = state.take_over_pages(run)
    assert (carried, highest) == ({"added": 43}, 42)
