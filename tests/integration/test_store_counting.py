"""Counts are remembered for as long as nobody has committed, and for the state that a reader sees."""

from contextlib import closing
from pathlib import Path

import pytest

from app.wiring import writable_base
from domain.settings import Settings
from store import queries
from store.counting import MOST_KEPT
from store.port import Visibility
from store.sqlite import SqliteStore
from tests.support.bases import build_base, index_into, layout_of, write_files

ALL = Visibility.everything()


@pytest.fixture
def base(tmp_path: Path) -> Settings:
    return build_base(tmp_path)


def add(base: Settings, where: Path, *names: str) -> None:
    write_files(where, {name: f"# New\n\nwords of {name}\n" for name in names})
    with writable_base(base, "test") as writable:
        index_into(writable, base, where, "more", list(names))


def test_what_nobody_has_changed_is_counted_once(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    count = queries.counts

    def noted(connection: object, prefix: str, visibility: Visibility) -> object:
        counted.append(prefix)
        return count(connection, prefix, visibility)  # type: ignore[arg-type]

    monkeypatch.setattr("store.counting.queries.counts", noted)
    with closing(SqliteStore(layout_of(base).database, base_id=None)) as store:
        for _ in range(3):
            with store.snapshot() as snapshot:
                assert snapshot.counts(visibility=ALL).documents > snapshot.counts("none/", visibility=ALL).documents
            assert store.reader().counts(visibility=ALL).documents > 0
        assert counted == ["", "none/"]
        hidden = Visibility(hidden_item_ids=frozenset({"an-item"}))
        store.reader().counts(visibility=hidden)
        assert counted == ["", "none/", ""], "what may be seen belongs to the question"


def test_a_commit_of_another_is_counted(base: Settings, tmp_path: Path) -> None:
    with closing(SqliteStore(layout_of(base).database, base_id=None)) as store:
        before = store.reader().counts(visibility=ALL).documents
        assert store.reader().counts("more/", visibility=ALL).documents == 0
        add(base, tmp_path / "one", "a.md", "b.md")
        assert store.reader().counts(visibility=ALL).documents == before + 2
        assert store.reader().counts("more/", visibility=ALL).documents == 2


def test_a_snapshot_counts_what_it_sees(base: Settings, tmp_path: Path) -> None:
    """A commit while it is open belongs to the next one."""
    with closing(SqliteStore(layout_of(base).database, base_id=None)) as store:
        with store.snapshot() as snapshot:
            before = snapshot.counts(visibility=ALL).documents
            add(base, tmp_path / "one", "a.md")
            assert snapshot.counts(visibility=ALL).documents == before
            assert snapshot.counts("more/", visibility=ALL).documents == 0
        assert store.reader().counts(visibility=ALL).documents == before + 1
        assert store.reader().counts("more/", visibility=ALL).documents == 1


def test_questions_without_end_are_not_all_kept(base: Settings) -> None:
    with closing(SqliteStore(layout_of(base).database, base_id=None)) as store:
        for number in range(3 * MOST_KEPT):
            assert store.reader().counts(f"folder-{number}/", visibility=ALL).documents == 0
        assert len(store._counts._kept) <= MOST_KEPT
