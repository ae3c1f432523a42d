"""A state.db that is lost, or lacks a part, is told; nothing but a reset makes it anew (R2, S2-62, T26)."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app import failures, maintenance, runs, submitting
from app.consistency import absence_of
from app.run_request import RunRequest
from app.wiring import readable_base, writable_base
from domain.errors import IntegrityError, KnowledgeError, NotBuiltError
from domain.settings import Settings
from domain.status import Absence
from store.failure_port import FailureRecord
from store.state import SqliteStateStore
from store.state_schema import STEPS
from tests.support.bases import build_base, identity_of, layout_of
from tests.support.drifts import apply_drift, open_plain

FAILURE = FailureRecord("docs/bad.md", "unreadable", "", 1, 1, 1)


def remove_state(settings: Settings) -> None:
    for path in settings.home.glob("state.db*"):
        path.unlink()


def empty_state(settings: Settings) -> None:
    remove_state(settings)
    layout_of(settings).state.touch(mode=0o600)


def write_to_base(settings: Settings) -> None:
    with writable_base(settings, "test"):
        pass


def record_runs(settings: Settings) -> None:
    with runs.recorded_runs(settings, writes=True):
        pass


WAYS: dict[str, Callable[[Settings], object]] = {
    "to write": write_to_base,
    "to submit a run": lambda settings: submitting.submit(settings, RunRequest()),
    "to steer a run": record_runs,
    "to ignore a failure": lambda settings: failures.ignore(settings, [FAILURE], undo=False),
    "to rebuild": maintenance.rebuild,
    "to open it": lambda settings: SqliteStateStore(layout_of(settings).state).close(),
    "to read it": lambda settings: SqliteStateStore(layout_of(settings).state, read_only=True).close(),
}


@pytest.mark.parametrize("lose", [remove_state, empty_state])
@pytest.mark.parametrize("way", WAYS)
def test_a_lost_record_is_not_made_anew(tmp_path: Path, way: str, lose: Callable[[Settings], None]) -> None:
    base = build_base(tmp_path)
    lose(base)
    with pytest.raises(NotBuiltError) as caught:
        WAYS[way](base)
    assert caught.value.hint
    state = layout_of(base).state
    assert not state.exists() or state.stat().st_size == 0
    assert absence_of(base) is Absence.RECORD_LOST


@pytest.mark.parametrize("lose", [remove_state, empty_state])
def test_a_reset_makes_a_lost_record_anew(tmp_path: Path, lose: Callable[[Settings], None]) -> None:
    base = build_base(tmp_path)
    before = identity_of(base).base_id
    lose(base)
    maintenance.reset(base, force=True)
    assert identity_of(base).base_id != before


def tables() -> list[str]:
    with closing(open_plain(Path(":memory:"))) as connection:
        for step in STEPS:
            for statement in step:
                connection.execute(statement)
        return [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]


@pytest.mark.parametrize("table", tables())
def test_a_state_that_lacks_a_table_is_damaged(tmp_path: Path, table: str) -> None:
    """13, and not 14: no disk has failed."""
    base = build_base(tmp_path)
    apply_drift(layout_of(base).state, lambda connection: connection.execute(f"DROP TABLE {table}"))
    for ask in (lambda: readable_base(base), lambda: writable_base(base, "test")):
        with pytest.raises(KnowledgeError) as caught, ask():
            pass
        if table == "base":  # by this one a state.db is known as ours
            assert caught.value.exit_status == 12
            continue
        assert isinstance(caught.value, IntegrityError)
        assert table in caught.value.message
        assert "knowledge restore" in caught.value.hint
