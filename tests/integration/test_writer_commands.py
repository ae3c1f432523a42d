"""What is asked of a service's writer beside pages: calls that are taken back are broken off, done once, forgotten."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.compacting import CompactReport
from app.maintenance import RebuildReport
from app.removal_command import RemoveReport
from app.roles.calls import (
    Call,
    Compact,
    Rebuild,
    Remove,
    Verify,
    answer_call,
    answer_within,
    forget_old_calls,
    is_called,
    place_call,
    waiting_calls,
)
from app.roles.writer_calls import answer_to
from app.roles.writer_commands import broken_off
from app.verifying import VerifyReport
from app.wiring import WritableBase, writable_base
from domain.errors import NotFoundError, StorageError
from domain.settings import Settings
from store.connection import translated
from store.run_port import RunRecord
from tests.support.bases import ALL_KEYS, assert_sound, build_base, keys_of, runs_of

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return build_base(tmp_path)


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    (tmp_path / "calls").mkdir()
    return tmp_path / "calls"


@pytest.fixture
def base(settings: Settings) -> Iterator[WritableBase]:
    with writable_base(settings, "test") as opened:
        yield opened


def wanted() -> bool:
    return True


def asked(
    base: WritableBase, settings: Settings, calls: Path, call: Call, is_wanted: Callable[[], bool] = wanted
) -> str:
    """Placed, and done as the writer does it."""
    call_id = place_call(calls, call)
    answer_call(calls, call_id, answer_to(call, base, settings, is_wanted))
    return call_id


def test_a_statement_that_nobody_wants_any_more_is_broken_off(base: WritableBase) -> None:
    looked: list[bool] = []

    def is_wanted() -> bool:
        looked.append(True)
        return len(looked) < 3

    connection, path = base.writer.connection, base.layout.database
    with pytest.raises(StorageError, match="interrupted"), broken_off(connection, is_wanted), translated(path):
        connection.execute(ENDLESS).fetchall()
    assert len(looked) == 3
    assert connection.execute("SELECT count(*) FROM documents").fetchone() == (len(ALL_KEYS),)


def test_reports_come_back_as_they_were(base: WritableBase, settings: Settings, calls: Path) -> None:
    verified = answer_within(calls, asked(base, settings, calls, Verify(True)), VerifyReport, 0)
    assert verified is not None
    assert (verified.home, verified.is_deep, verified.exit_status) == (settings.home, True, 0)
    compacted = answer_within(calls, asked(base, settings, calls, Compact("c")), CompactReport, 0)
    assert compacted is not None
    assert compacted.after.segments <= compacted.before.segments
    rebuilt = answer_within(calls, asked(base, settings, calls, Rebuild("r")), RebuildReport, 0)
    assert rebuilt is not None
    assert rebuilt.chunks > 0
    removed = answer_within(calls, asked(base, settings, calls, Remove("m", ("docs/a.md",), "")), RemoveReport, 0)
    assert removed is not None
    assert (removed.home, removed.documents) == (settings.home, 1)
    assert not list(calls.iterdir())


def test_an_error_comes_back_as_itself(base: WritableBase, settings: Settings, calls: Path) -> None:
    call_id = asked(base, settings, calls, Remove("m", (), "nowhere"))
    with pytest.raises(NotFoundError, match="there is no root nowhere") as raised:
        answer_within(calls, call_id, RemoveReport, 0)
    assert raised.value.hint == "the roots are: docs"


def test_a_command_is_done_once(base: WritableBase, settings: Settings, calls: Path) -> None:
    """The writer was killed between the effect and its answer: its successor does the call again."""
    call = Remove("m", ("docs/a.md",), "")
    assert answer_within(calls, asked(base, settings, calls, call), RemoveReport, 0) is not None
    again = answer_within(calls, asked(base, settings, calls, call), RemoveReport, 0)
    assert again is not None
    assert (again.is_repeated, again.documents) == (True, 0)


def test_a_removal_leaves_the_run_that_goes_on_open(base: WritableBase, settings: Settings, calls: Path) -> None:
    open_run = base.state.begin_run(
        RunRecord(0, 0, "index", "cli", ("docs",), "walking", 1, None, {}), floor_generation=0
    )
    asked(base, settings, calls, Remove("m", ("docs/sub/",), ""))
    still = base.state.open_run()
    assert still is not None
    assert still.id == open_run.id
    removal = base.state.runs(1)[0]
    assert (removal.kind, removal.state, removal.counts) == ("rm", "done", {"removed": 2})
    assert removal.generation > open_run.generation


def test_a_removal_that_is_cut_short_reads_as_interrupted(settings: Settings) -> None:
    with writable_base(settings, "test") as base:
        base.state.begin_beside(RunRecord(0, 0, "rm", "cli", (), "walking", 1, None, {}), floor_generation=0)
        assert base.state.open_run() is None
    run = runs_of(settings)[0]
    assert (run.state, run.ended_ns is not None) == ("interrupted", True)


@pytest.mark.parametrize("call", [Verify(False), Compact("c"), Rebuild("r")])
def test_a_command_that_is_taken_back_leaves_a_sound_index(settings: Settings, calls: Path, call: Call) -> None:
    """Whether it was broken off or was done before anybody looked: the index is whole."""
    with writable_base(settings, "test") as base:
        answer_to(call, base, settings, lambda: False)
        base.writer.connection.execute("SELECT 1").fetchall()
    assert keys_of(settings) == ALL_KEYS
    assert_sound(settings)


def test_what_is_not_answered_in_time_stays_asked_for(calls: Path) -> None:
    call_id = place_call(calls, Rebuild("r"))
    assert answer_within(calls, call_id, RebuildReport, 0) is None
    assert waiting_calls(calls) == [call_id]
    assert is_called(calls, call_id)


def test_a_call_that_is_placed_again_has_the_answer_that_it_had(
    base: WritableBase, settings: Settings, calls: Path
) -> None:
    """A scheduler that takes a verify over asks for the same call."""
    first = place_call(calls, Verify(False), "run-7")
    answer_call(calls, first, answer_to(Verify(False), base, settings, wanted))
    assert place_call(calls, Verify(False), "run-7") == first
    assert waiting_calls(calls) == []
    assert answer_within(calls, first, VerifyReport, 0) is not None


def test_answers_that_nobody_came_for_are_forgotten(base: WritableBase, settings: Settings, calls: Path) -> None:
    old = asked(base, settings, calls, Verify(False))
    young = asked(base, settings, calls, Verify(False))
    long_ago = time.time() - 7200
    os.utime(calls / f"{old}.answer", (long_ago, long_ago))
    forget_old_calls(calls, older_than_s=3600)
    assert {path.name for path in calls.iterdir()} == {f"{young}.call", f"{young}.answer"}
