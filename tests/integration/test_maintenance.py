"""rm, reset, rebuild: what they take out, what they refuse, and that an id takes effect once."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import maintenance
from app.wiring import readable_base, writable_base
from domain.commands import RemoveCommand
from domain.errors import (
    IntegrityError,
    InterruptedRunError,
    LockedError,
    NotBuiltError,
    NotFoundError,
    RefusedError,
    UsageError,
)
from domain.files import FileStat, Reason
from domain.settings import RootSettings, Settings
from store.port import FailureRecord, RunRecord, SkipWrite, StoreIdentity, Visibility, WriteGroup
from tests.support import drifts
from tests.support.audit import audit
from tests.support.bases import TEXTS, build_base, index_into, layout_of, settings_of, write_files
from tests.support.scratch import scratch_directory

ALL = ["docs/a.md", "docs/b.md", "docs/e.md", "docs/sub/c.md", "docs/sub/d.txt"]


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch_directory() as path:
        yield path


@pytest.fixture
def base(place: Path) -> Settings:
    return build_base(place)


def keys_of(settings: Settings) -> list[str]:
    with readable_base(settings) as base:
        rows = base.store.reader().documents("", visibility=Visibility.everything())
        return [row.key for row in rows]


def identity_of(settings: Settings) -> StoreIdentity:
    with readable_base(settings) as base:
        return base.store.reader().identity()


def runs_of(settings: Settings) -> list[RunRecord]:
    with readable_base(settings) as base:
        return list(base.state.runs())


def assert_sound(settings: Settings) -> None:
    assert audit(layout_of(settings).database) == []
    assert maintenance.verify(settings, deep=True).exit_status == 0


@pytest.mark.parametrize(
    ("cwd", "argument", "gone"),
    [
        (".", "docs/a.md", ["docs/a.md"]),
        (".", "docs/sub/", ["docs/sub/c.md", "docs/sub/d.txt"]),
        (".", "docs/sub", ["docs/sub/c.md", "docs/sub/d.txt"]),
        (".", "docs", ALL),
        (".", "docs/", ALL),
        ("docs", "a.md", ["docs/a.md"]),
        ("docs", "./sub", ["docs/sub/c.md", "docs/sub/d.txt"]),
        ("docs/sub", "../b.md", ["docs/b.md"]),
        ("docs/sub", ".", ["docs/sub/c.md", "docs/sub/d.txt"]),
        ("docs", ".", ALL),
    ],
)
def test_a_key_or_a_path_is_removed(base: Settings, place: Path, cwd: str, argument: str, gone: list[str]) -> None:
    report = maintenance.remove_paths(base, place / cwd, [argument])
    assert report.documents == len(gone)
    assert report.exit_status == 0
    assert report.targets[0].is_still_there
    assert keys_of(base) == [key for key in ALL if key not in gone]
    assert_sound(base)


def test_an_absolute_path_and_one_that_is_gone(base: Settings, place: Path) -> None:
    (place / "docs" / "b.md").unlink()
    report = maintenance.remove_paths(base, Path("/"), [str(place / "docs" / "a.md"), str(place / "docs" / "b.md")])
    assert [target.is_still_there for target in report.targets] == [True, False]
    assert keys_of(base) == ALL[2:]


def test_what_is_not_indexed_is_named(base: Settings, place: Path) -> None:
    report = maintenance.remove_paths(base, place, ["docs/a.md", "nope.md", "/etc/passwd", "", "docs/a", "~nobody-x/y"])
    assert report.documents == 1
    assert report.not_indexed == ("nope.md", "/etc/passwd", "", "docs/a", "~nobody-x/y")
    assert report.exit_status == NotFoundError.exit_status
    assert keys_of(base) == ALL[1:]


def test_one_name_within_another_counts_for_both(base: Settings, place: Path) -> None:
    report = maintenance.remove_paths(base, place, ["docs/", "docs/a.md"])
    assert [target.documents for target in report.targets] == [5, 0]
    assert report.exit_status == 0


def test_a_name_that_means_two_documents_is_refused(place: Path) -> None:
    settings = build_base(place, {"docs/a.md": "# inner\n\nx\n", "a.md": "# outer\n\ny\n"})
    with pytest.raises(UsageError, match="two things"):
        maintenance.remove_paths(settings, place / "docs", ["docs/a.md"])
    maintenance.remove_paths(settings, place / "docs", ["./docs/a.md"])
    assert keys_of(settings) == ["docs/a.md"]


def test_more_than_one_group(place: Path) -> None:
    settings = build_base(place, {f"n{number:04}.md": f"# n\n\nword{number}\n" for number in range(450)})
    before = identity_of(settings).commit_seq
    assert maintenance.remove_paths(settings, place, ["docs"]).documents == 450
    assert identity_of(settings).commit_seq == before + 3  # 200, 200, 50
    assert keys_of(settings) == []
    assert_sound(settings)


def test_a_removal_is_fenced_and_recorded(base: Settings, place: Path) -> None:
    maintenance.remove_paths(base, place, ["docs/a.md"])
    newest = runs_of(base)[0]
    assert (newest.kind, newest.state, newest.roots) == ("rm", "done", ("docs",))
    with writable_base(base, "test") as held:
        assert held.writer.highest_generation() == newest.generation
        # a page of an older run comes late: it does not bring the document back
        stale = SkipWrite("docs/a.md", "docs", Reason.EMPTY, FileStat(0, 0, 0, 0, 0), 1, 1, newest.generation - 1)
        assert held.writer.apply(WriteGroup(skips=[stale])).results[0].verdict == "stale"
        # a newer run does
        index_into(held, base, place / "docs", "docs", ["a.md"])
    assert keys_of(base) == ALL
    assert_sound(base)


def test_a_root_goes_with_everything_known_of_it(base: Settings, place: Path) -> None:
    other = place / "other"
    write_files(other, {"x.md": "# x\n\nwords\n"})
    with writable_base(base, "test") as held:
        generation = index_into(held, base, other, "other", ["x.md"])
        stat = FileStat(1, 1, 1, 1, 1)
        skips = [
            SkipWrite(f"{root}/big.md", root, Reason.TOO_LARGE, stat, 1, 1, generation) for root in ("docs", "other")
        ]
        held.writer.apply(WriteGroup(skips=skips))
        held.state.record_failures(
            [FailureRecord(f"{root}/bad.md", "unreadable", "", 1, 1, 1) for root in ("docs", "other")]
        )
    configured = settings_of(base.home, roots=(RootSettings(path=place / "docs"),))
    report = maintenance.remove_paths(configured, place, [], root="docs")
    assert report.root is not None
    assert (report.root.documents, report.root.skipped_files, report.root.failures) == (5, 1, 1)
    assert report.root.is_configured
    assert report.root.path == str(place / "docs")
    assert report.exit_status == 0
    with readable_base(base) as opened:
        assert [root.name for root in opened.state.roots()] == ["other"]
        assert [failure.key for failure in opened.state.failures()] == ["other/bad.md"]
        assert [skipped.key for skipped in opened.store.reader().skipped()] == ["other/big.md"]
    assert keys_of(base) == ["other/x.md"]
    assert_sound(base)


def test_a_root_whose_removal_was_cut_short_is_removed_by_its_name(base: Settings, place: Path) -> None:
    with writable_base(base, "test") as held:
        held.state.remove_root("docs")
    assert maintenance.remove_paths(base, place, [], root="docs").documents == 5
    assert keys_of(base) == []


def test_a_root_of_another_name_is_not_found(base: Settings, place: Path) -> None:
    with pytest.raises(NotFoundError, match="nope") as caught:
        maintenance.remove_paths(base, place, [], root="nope")
    assert "docs" in caught.value.hint
    assert caught.value.exit_status == 4
    assert keys_of(base) == ALL
    assert runs_of(base)[0].kind == "index"


def test_reset_refuses_with_the_numbers(base: Settings) -> None:
    with pytest.raises(RefusedError) as caught:
        maintenance.reset(base, force=False)
    assert "5 documents" in caught.value.message
    assert "11 chunks" in caught.value.message
    assert "--force" in caught.value.hint
    assert caught.value.exit_status == 4
    assert keys_of(base) == ALL


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
    assert keys_of(base) == ALL
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


def test_a_run_that_is_broken_off_is_recorded(base: Settings, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("store.documents.SqliteStoreWriter.apply", break_off)
        with pytest.raises(InterruptedRunError):
            maintenance.remove_paths(base, place, ["docs"])
    assert runs_of(base)[0].state == "interrupted"
    assert keys_of(base) == ALL
