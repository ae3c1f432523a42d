"""`rm`: what a name means, what goes with it, and that a removal is fenced and recorded like a run."""

from pathlib import Path

import pytest

from app import maintenance
from app.wiring import readable_base, writable_base
from domain.errors import InterruptedRunError, NotFoundError, UsageError
from domain.files import FileStat, Reason
from domain.settings import RootSettings, Settings
from store.failure_port import FailureRecord
from store.write_port import SkipWrite, WriteGroup
from tests.support.bases import (
    ALL_KEYS as ALL,
)
from tests.support.bases import (
    assert_sound,
    build_base,
    identity_of,
    index_into,
    keys_of,
    runs_of,
    settings_of,
    write_files,
)


@pytest.fixture
def base(place: Path) -> Settings:
    return build_base(place)


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


def test_a_file_that_became_a_folder_goes_with_what_lies_in_it(base: Settings, place: Path) -> None:
    """A run that was killed has stored what is in the folder, and the file is still there: the name means both."""
    (place / "docs" / "a.md").unlink()
    write_files(place / "docs", {"a.md/inner.md": "# inner\n\nx\n", "a.md5.md": "# beside\n\ny\n"})
    with writable_base(base, "test") as held:
        index_into(held, base, place / "docs", "docs", ["a.md/inner.md", "a.md5.md"])
    report = maintenance.remove_paths(base, place, ["docs/a.md"])
    assert report.documents == 2
    assert keys_of(base) == sorted([*ALL[1:], "docs/a.md5.md"])
    assert_sound(base)


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


def test_a_run_that_is_broken_off_is_recorded(base: Settings, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("store.documents.SqliteStoreWriter.apply", break_off)
        with pytest.raises(InterruptedRunError):
            maintenance.remove_paths(base, place, ["docs"])
    assert runs_of(base)[0].state == "interrupted"
    assert keys_of(base) == ALL
