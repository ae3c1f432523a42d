"""reset and rebuild: what they refuse and what they leave; what every verb does without an index or the lock."""

import time
from pathlib import Path

import pytest

from app import maintenance
from app.wiring import writable_base
from domain.commands import RemoveCommand
from domain.errors import IntegrityError, LockedError, NotBuiltError, RefusedError
from domain.layout import sidecars
from domain.settings import Settings
from store.failure_port import FailureRecord
from tests.support import drifts
from tests.support.bases import (
    ALL_KEYS,
    TEXTS,
    assert_sound,
    build_base,
    identity_of,
    index_into,
    keys_of,
    layout_of,
    settings_of,
)


@pytest.fixture
def base(place: Path) -> Settings:
    return build_base(place)


def test_reset_refuses_with_the_numbers(base: Settings) -> None:
    with pytest.raises(RefusedError) as caught:
        maintenance.reset(base, force=False)
    assert "5 documents" in caught.value.message
    assert "11 chunks" in caught.value.message
    assert "--force" in caught.value.hint
    assert caught.value.exit_status == 4
    assert keys_of(base) == ALL_KEYS


def test_reset_refuses_what_it_cannot_count(base: Settings) -> None:
    layout_of(base).database.write_bytes(b"no database " * 1000)
    with pytest.raises(RefusedError, match="unknown number"):
        maintenance.reset(base, force=False)


def test_reset_leaves_an_empty_store_that_indexes_again(base: Settings, place: Path) -> None:
    with writable_base(base, "test") as held:
        held.state.record_failures([FailureRecord("docs/bad.md", "unreadable", "", 1, 1, 1)])
        generation = held.writer.highest_generation()
    before = identity_of(base)
    report = maintenance.reset(base, force=True)
    assert (report.documents, report.chunks, report.is_replaced) == (5, 11, False)
    after = identity_of(base)
    assert after.base_id == before.base_id
    assert after.store_uuid != before.store_uuid
    assert after.complete_ns is None
    assert keys_of(base) == []
    with writable_base(base, "test") as held:
        assert held.writer.highest_generation() > generation
        assert [root.name for root in held.state.roots()] == ["docs"]
        assert held.state.failures() == []
        index_into(held, base, place / "docs", "docs", sorted(TEXTS))
    assert keys_of(base) == ALL_KEYS
    assert_sound(base)


def test_reset_takes_no_generation_back_where_the_store_knows_none(base: Settings) -> None:
    with writable_base(base, "test") as held:
        generation = held.writer.highest_generation()
    layout_of(base).database.write_bytes(b"no database " * 1000)
    assert maintenance.reset(base, force=True).is_replaced
    with writable_base(base, "test") as held:
        assert held.writer.highest_generation() > generation
    assert_sound(base)


def test_reset_pins_the_setting_of_today(base: Settings) -> None:
    changed = settings_of(base.home, substring_index="off")
    maintenance.reset(changed, force=True)
    assert identity_of(base).substring_index == "off"


def test_reset_of_a_store_that_is_gone_beside_its_state(base: Settings) -> None:
    layout_of(base).database.unlink()
    report = maintenance.reset(base, force=True)
    assert (report.documents, report.is_replaced) == (None, False)
    assert_sound(base)


def test_reset_shrinks_the_file(place: Path) -> None:
    settings = build_base(place, {f"n{number}.md": f"# n\n\n{'word ' * 2000}\n" for number in range(30)})
    path = layout_of(settings).database
    before = path.stat().st_size
    maintenance.reset(settings, force=True)
    assert path.stat().st_size < before / 2


def test_rebuild_of_what_is_damaged_beyond_full_text_says_so(base: Settings) -> None:
    drifts.apply_drift(layout_of(base).database, drifts.orphaned_chunks)
    maintenance.rebuild(base)  # it does not look at documents
    layout_of(base).database.write_bytes(b"no database " * 1000)
    with pytest.raises(IntegrityError) as caught:
        maintenance.rebuild(base)
    assert "reset --force" in caught.value.hint


def test_nothing_is_made_where_nothing_is(place: Path) -> None:
    settings = settings_of(place / "nowhere")
    for act in (
        lambda: maintenance.remove_paths(settings, place, ["x"]),
        lambda: maintenance.reset(settings, force=True),
        lambda: maintenance.reset(settings, force=False),
        lambda: maintenance.rebuild(settings),
    ):
        with pytest.raises(NotBuiltError):
            act()
    assert not (place / "nowhere").exists()


def test_an_emptied_file_is_no_index_that_could_be_mended(base: Settings, place: Path) -> None:
    """Full text of no chunk is not what `rebuild` was asked for."""
    database = layout_of(base).database
    for path in sidecars(database):
        path.unlink(missing_ok=True)
    database.touch(mode=0o600)
    for command in (
        lambda: maintenance.rebuild(base),
        lambda: maintenance.compact(base),
        lambda: maintenance.purge_paths(base, place, ["docs/a.md"]),
    ):
        with pytest.raises(NotBuiltError):
            command()
        assert database.stat().st_size == 0


def test_a_second_writer_is_told_who_holds_the_lock(base: Settings, place: Path) -> None:
    with writable_base(base, "knowledge index"):
        for act in (
            lambda: maintenance.remove_paths(base, place, ["docs"]),
            lambda: maintenance.reset(base, force=True),
            lambda: maintenance.rebuild(base),
        ):
            began = time.monotonic()
            with pytest.raises(LockedError, match="knowledge index"):
                act()
            assert time.monotonic() - began < 1


def test_a_command_takes_effect_once(base: Settings, place: Path) -> None:
    first = maintenance.remove_paths(base, place, ["docs/a.md"], command_id="c1")
    assert (first.documents, first.is_repeated) == (1, False)
    with writable_base(base, "test") as held:
        index_into(held, base, place / "docs", "docs", ["a.md"])
        again = maintenance.remove(held, base, RemoveCommand("c1", ("docs/a.md",)))
        assert (again.documents, again.is_repeated, again.exit_status) == (0, True, 0)
        other = maintenance.remove(held, base, RemoveCommand("c2", ("docs/a.md",)))
        assert (other.documents, other.is_repeated) == (1, False)
    rebuilt = maintenance.rebuild(base, command_id="c3")
    seen = identity_of(base)
    assert rebuilt.chunks == 9
    assert maintenance.rebuild(base, command_id="c3").is_repeated
    assert identity_of(base) == seen
    assert not maintenance.reset(base, force=True, command_id="c4").is_repeated
    uuid = identity_of(base).store_uuid
    assert maintenance.reset(base, force=True, command_id="c4").is_repeated
    assert identity_of(base).store_uuid == uuid
