"""Calls of the writer through files (app.roles.calls), and the first run of an index that is being made."""

import io
from contextlib import closing
from pathlib import Path

import pytest

from app.roles.calls import (
    CollectVectors,
    answer_call,
    answered,
    await_answer,
    forget_old_calls,
    place_call,
    read_call,
    waiting_calls,
)
from app.roles.role_log import make_log
from app.roles.runtime import Runtime
from app.roles.scheduler_ticks import Ticks
from domain.errors import CancelledRunError
from domain.layout import BaseLayout
from domain.settings import RootSettings
from store.state import SqliteStateStore
from tests.support.bases import settings_of


def test_a_call_that_is_gone_without_an_answer_is_placed_again(tmp_path: Path) -> None:
    """An asker waits as long as it takes, so nobody's tidying up may make that for ever (P2)."""
    call_id = place_call(tmp_path, CollectVectors(3))
    looks = 0

    def heed() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            for path in tmp_path.iterdir():
                path.unlink()
        elif waiting_calls(tmp_path):
            assert read_call(tmp_path, call_id) == CollectVectors(3)
            answer_call(tmp_path, call_id, answered(7))

    assert await_answer(tmp_path, call_id, int, heed) == 7
    assert list(tmp_path.iterdir()) == []


def test_a_call_that_goes_while_the_writer_looks_does_not_end_it(tmp_path: Path) -> None:
    """P2: askers take their calls away when they have their answers. A link to nothing is listed, and is not there."""
    (tmp_path / "gone.call").symlink_to(tmp_path / "nowhere")
    call_id = place_call(tmp_path, CollectVectors(3))
    assert waiting_calls(tmp_path) == [call_id]


def test_a_call_whose_asker_gives_up_is_taken_back(tmp_path: Path) -> None:
    call_id = place_call(tmp_path, CollectVectors(3))

    def heed() -> None:
        raise CancelledRunError("cancelled", hint="none")

    with pytest.raises(CancelledRunError):
        await_answer(tmp_path, call_id, int, heed)
    assert list(tmp_path.iterdir()) == []


def test_a_clock_that_jumps_a_day_ahead_costs_an_asker_nothing(tmp_path: Path) -> None:
    """P29: the writer drops answers that seem to be old; whoever waits for one has the call done once more."""
    call_id = place_call(tmp_path, CollectVectors(3))
    answers = iter([5, 6])
    looks = 0

    def heed() -> None:
        nonlocal looks
        looks += 1
        if waiting_calls(tmp_path):
            answer_call(tmp_path, call_id, answered(next(answers)))
        if looks == 1:
            forget_old_calls(tmp_path, older_than_s=-60.0)
            assert list(tmp_path.iterdir()) == []

    assert await_answer(tmp_path, call_id, int, heed) == 6
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_is_being_made_is_filled_too(tmp_path: Path) -> None:
    """S4-15: the scheduler may look in the instant in which the writer has made the file and nothing in it."""
    docs = tmp_path / "docs"
    docs.mkdir()
    settings = settings_of(tmp_path / "home", roots=(RootSettings(docs),))
    layout = BaseLayout(settings.home)
    layout.home.mkdir()
    layout.database.touch()
    runtime = Runtime(settings, layout, "scheduler", "one", make_log("scheduler", "json", io.StringIO()))
    with closing(SqliteStateStore(layout.state)) as state:
        first = Ticks(runtime, state).queue_first_run()
        assert first is not None and first.state == "queued"
        assert Ticks(runtime, state).queue_first_run() is None, "once"
