"""What a run never removes: under the guard, from a root that shows nothing, from one that cannot be read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.outcomes import IndexReport
from app.removing import settle_removals
from domain.errors import UsageError
from domain.settings import RootSettings
from tests.support.runs import Base, base_in, nothing_left
from tests.support.scratch import scratch_directory
from tests.support.trees import as_nobody, give_to_nobody, make_tree, mode

pytestmark = pytest.mark.redis


def many(count: int) -> dict[str, str]:
    return {f"{number:03}.md": f"# Page {number}\n\nword{number}\n" for number in range(count)}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = base_in(tmp_path)
    with nothing_left(made):
        yield made


def held_of(report: IndexReport) -> list[tuple[str, int, str]]:
    return [(held.root, held.count, held.cause) for held in report.removals.held]


def test_a_mass_removal_is_held_and_then_let_go(base: Base, tmp_path: Path) -> None:
    """R34: everything else is committed, the run ends `partial` with exit 3 and names the root."""
    docs = make_tree(tmp_path / "docs", many(200))
    base.index(docs)
    base.settle()
    for number in range(51):
        (docs / f"{number:03}.md").unlink()
    make_tree(docs, {"new.md": "# New\n"})
    report = base.index()
    assert report.counts == {"added": 1, "unchanged": 149}
    assert held_of(report) == [("docs", 51, "removals_held")]
    assert report.removals.held[0].path == str(docs)
    assert (report.state, report.exit_status) == ("partial", 3)
    assert base.last_run()[:2] == ("partial", "removals_held")
    assert len(base.stored_keys()) == 201
    base.settle()
    again = base.index()
    assert (held_of(again), again.exit_status) == ([("docs", 51, "removals_held")], 3)
    allowed = base.index(allow_mass_delete=True)
    assert allowed.counts == {"removed": 51, "unchanged": 150}
    assert (allowed.state, allowed.exit_status) == ("done", 0)
    assert len(base.stored_keys()) == 150


def test_fifty_removals_are_not_held(base: Base, tmp_path: Path) -> None:
    docs = make_tree(tmp_path / "docs", many(52))
    base.index(docs)
    base.settle()
    for number in range(50):
        (docs / f"{number:03}.md").unlink()
    assert base.index().counts == {"removed": 50, "unchanged": 2}


def test_moved_files_are_never_held(base: Base, tmp_path: Path) -> None:
    """R34: a folder that was renamed is no loss; what is lost beside it is held alone."""
    docs = make_tree(tmp_path / "docs", {f"old/{name}": text for name, text in many(80).items()})
    make_tree(docs, {f"lost/{name}": f"{text} lost" for name, text in many(60).items()})
    base.index(docs)
    base.settle()
    (docs / "old").rename(docs / "new")
    for path in sorted((docs / "lost").iterdir())[:-1]:
        path.unlink()
    report = base.index()
    assert report.counts == {"moved": 80, "unchanged": 1}
    assert held_of(report) == [("docs", 59, "removals_held")]
    assert len(base.stored_keys()) == 140


def test_a_root_that_is_named_in_parts_is_judged_once(base: Base, tmp_path: Path) -> None:
    """R29, R34: folders that are gone and named are under the guard, all of a root's together."""
    docs = make_tree(
        tmp_path / "docs", {f"{folder}/{name}": text for folder in "abc" for name, text in many(30).items()}
    )
    base.index(docs)
    base.settle()
    for folder in "ab":
        for path in (docs / folder).iterdir():
            path.unlink()
        (docs / folder).rmdir()
    report = base.index(docs / "a", docs / "b", docs / "c")
    assert held_of(report) == [("docs", 60, "removals_held")]
    assert report.counts == {"unchanged": 30}
    assert base.index(docs / "b", docs / "a", allow_mass_delete=True).counts == {"removed": 60}


def test_a_setting_switches_the_guard_off(tmp_path: Path) -> None:
    docs = make_tree(tmp_path / "docs", many(60))
    base = base_in(tmp_path, RootSettings(path=docs, held_removals=False))
    base.index()
    base.settle()
    for number in range(55):
        (docs / f"{number:03}.md").unlink()
    assert base.index().counts == {"removed": 55, "unchanged": 5}


def test_files_that_can_no_longer_be_indexed_are_under_the_guard(base: Base, tmp_path: Path) -> None:
    """R33: excluded and spoilt ones alike."""
    docs = make_tree(tmp_path / "docs", many(100))
    base.index(docs)
    base.settle()
    for number in range(30):
        (docs / f"{number:03}.md").write_bytes(b"\xff")
    (docs / ".knowledgeignore").write_text("04?.md\n05?.md\n06?.md\n", "utf-8")
    report = base.index()
    assert held_of(report) == [("docs", 60, "removals_held")]
    assert report.counts == {"unchanged": 40, "skipped": 60}
    assert len(base.stored_keys()) == 100
    base.index(allow_mass_delete=True)
    assert len(base.stored_keys()) == 40
    assert len(base.skipped()) == 60


def test_skipped_files_that_are_gone_are_no_loss(base: Base, tmp_path: Path) -> None:
    """The guard counts documents."""
    docs = make_tree(tmp_path / "docs", dict.fromkeys(many(60), b"\xff") | {"kept.md": "# Kept\n"})
    base.index(docs)
    base.settle()
    for name in many(60):
        (docs / name).unlink()
    report = base.index()
    assert (report.counts, report.exit_status) == ({"unchanged": 1}, 0)
    assert base.skipped() == {}


@pytest.mark.parametrize("change", ["gone", "emptied", "link", "file"])
def test_a_root_that_shows_nothing_loses_nothing(base: Base, tmp_path: Path, change: str) -> None:
    """P8, S0-32, S2-59: unmounted, emptied or replaced; few documents, so that no other guard would hold them."""
    docs = make_tree(tmp_path / "docs", many(3))
    other = make_tree(tmp_path / "other", {"o.md": "# O\n"})
    base.index(docs)
    base.index(other)
    base.settle()
    docs.rename(tmp_path / "aside")
    if change == "emptied":
        docs.mkdir()
    elif change == "link":
        docs.symlink_to(tmp_path / "aside")
    elif change == "file":
        docs.write_text("x", "utf-8")
    (other / "o.md").write_text("# O changed\n", "utf-8")
    report = base.index(allow_mass_delete=True)
    assert report.counts == {"updated": 1}
    assert report.exit_status == 3
    assert report.state == "partial"
    assert [root for root, _, _ in held_of(report)] == ["docs"]
    assert len(base.stored_keys()) == 4
    if change != "emptied":
        assert [key for key, _ in report.problems] == ["docs/"]
        docs.unlink(missing_ok=True)
    else:
        docs.rmdir()
    (tmp_path / "aside").rename(docs)
    base.settle()
    assert base.index().exit_status == 0


def test_a_part_of_a_root_that_is_gone_does_not_empty_it(base: Base, tmp_path: Path) -> None:
    """P8: also when a path below it is named."""
    docs = make_tree(tmp_path / "docs", many(3))
    base.index(docs)
    docs.rename(tmp_path / "aside")
    report = base.index(docs / "000.md")
    assert report.counts == {}
    assert len(base.stored_keys()) == 3
    assert report.exit_status == 3


@pytest.mark.parametrize("bits", [0, 0o444])
def test_a_folder_that_cannot_be_read_loses_nothing(bits: int) -> None:
    """P8: neither closed nor merely listed; nothing else of the root goes in that run."""
    with scratch_directory() as folder:
        docs = make_tree(folder / "docs", {"closed/a.md": "# A\n", "b.md": "# B\n", "gone.md": "# G\n"})
        give_to_nobody(docs)
        base = base_in(folder)
        base.index(docs)
        base.settle()
        (docs / "gone.md").unlink()
        give_to_nobody(base.settings.home)
        with mode(docs / "closed", bits):
            problems, exit_status, held = as_nobody(lambda: _looked(base))
            named = as_nobody(lambda: _looked(base, docs / "closed" / "a.md"))
        assert problems == ["docs/closed/"]
        assert exit_status == 3
        assert held[0][2] == "source_unreadable"
        assert named[1] == 3
        assert base.stored_keys() == ["docs/b.md", "docs/closed/a.md", "docs/gone.md"]
        report = base.index()
        assert report.counts["removed"] == 1
        assert base.stored_keys() == ["docs/b.md", "docs/closed/a.md"]


def _looked(base: Base, *paths: Path) -> tuple[list[str], int, list[tuple[str, int, str]]]:
    report = base.index(*paths)
    return [key for key, _ in report.problems], report.exit_status, held_of(report)


def test_a_file_that_is_back_is_not_removed(base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R34: each candidate is looked at again; one that is back is checked, and unchanged when it is."""
    docs = make_tree(tmp_path / "docs", many(3))
    base.index(docs)
    base.settle()
    text = (docs / "000.md").read_text("utf-8")
    (docs / "000.md").unlink()
    (docs / "001.md").unlink()

    def put_back(*arguments: object, **options: object) -> object:
        (docs / "000.md").write_text(text, "utf-8")
        (docs / "001.md").write_text("# Another\n\nreturned otherwise\n", "utf-8")
        return settle_removals(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("app.indexing.settle_removals", put_back)
    assert base.index().counts == {"unchanged": 2, "updated": 1}
    assert len(base.stored_keys()) == 3
    assert base.found("otherwise") == ["docs/001.md"]


def test_a_root_that_is_configured_no_more_keeps_answering(tmp_path: Path) -> None:
    """R29."""
    docs, notes = make_tree(tmp_path / "docs", many(2)), make_tree(tmp_path / "notes", {"n.md": "# N\n\nnotable\n"})
    base_in(tmp_path, RootSettings(path=docs), RootSettings(path=notes)).index()
    base = base_in(tmp_path, RootSettings(path=docs))
    base.settle()
    (notes / "n.md").unlink()
    assert base.index().counts == {"unchanged": 2}
    assert base.found("notable") == ["notes/n.md"]
    with pytest.raises(UsageError, match="outside every root"):
        base.index(notes)


def test_overlapping_roots_are_refused_before_anything_is_recorded(base: Base, tmp_path: Path) -> None:
    """R20."""
    docs = make_tree(tmp_path / "docs", {"sub/a.md": "# A\n"})
    base.index(docs / "sub")
    with pytest.raises(UsageError, match="lies in"):
        base.index(docs)
    with base.state() as state:
        assert [root.path for root in state.roots()] == [str(docs / "sub")]
        assert len(state.runs()) == 1


def test_the_index_inside_its_own_root_is_not_indexed(tmp_path: Path) -> None:
    """S0-14: the usual place is below the folder that is indexed."""
    docs = make_tree(tmp_path / "docs", {"a.md": "# A\n"})
    base = base_in(docs)
    make_tree(docs / "home", {"inside.md": "# Inside\n"})
    assert base.index(docs).counts == {"added": 1}
    base.settle()
    assert base.index().counts == {"unchanged": 1}
    other = base_in(tmp_path / "second")
    assert other.index(docs).counts == {"added": 1}
