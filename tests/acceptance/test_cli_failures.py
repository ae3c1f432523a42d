"""`failures`, `retry` and `ignore` as one types them: words, JSON, exit statuses (C-06, R37)."""

import os
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write_files
from tests.support.poison import poisoned

pytestmark = pytest.mark.redis


@pytest.fixture
def knowledge(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The same where reading some files fails."""
    poisoned(tmp_path, monkeypatch, "fault")
    return CommandLine(tmp_path, {"PYTHONPATH": os.environ["PYTHONPATH"]})


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    texts: dict[str, str | bytes] = {name: f"# {name}\n" for name in ("a.md", "poison.md", "sub/poison-2.md")}
    write_files(tmp_path / "docs", texts)
    return tmp_path / "docs"


def paths(told: CommandLine) -> list[tuple[str, str, int]]:
    return [(row["path"], row["standing"], row["tries"]) for row in told("failures", "--json").value["failures"]]


def test_from_a_failure_to_its_mending(knowledge: CommandLine, failing: CommandLine, docs: Path) -> None:
    """C-06: listed with reason, tries, times and next try; tried on demand; the document is there then."""
    first = failing("index", str(docs))
    assert first.status == 3
    assert "failed, an unexpected error: 2, the first is docs/poison.md" in first.out
    again = failing("index")
    assert again.status == 3
    assert "failed before, an unexpected error: 2, the first is docs/poison.md; next try in" in again.out
    assert "knowledge retry --all" in again.out

    listed = knowledge("failures")
    assert listed.status == 0
    assert "2 files failed: 2 to be tried again\n" in listed.out
    assert "docs/poison.md\n  an unexpected error (RuntimeError: a fault of ours)\n  1 try, the first" in listed.out
    told = knowledge("failures", "--json").value
    assert (told["open"], told["quarantined"], told["ignored"]) == (2, 0, 0)
    row = told["failures"][0]
    assert row.keys() == {"path", "reason", "detail", "standing", "tries", "first_at", "last_at", "next_at"}
    assert row["next_at"] > row["last_at"] == row["first_at"]

    vain = failing("retry", "docs/poison.md")
    assert vain.status == 3
    assert "trying again: docs/poison.md\n" in vain.out
    assert paths(knowledge) == [("docs/poison.md", "open", 2), ("docs/sub/poison-2.md", "open", 1)]

    mended = knowledge("retry", str(docs / "sub"))
    assert mended.status == 0
    assert "indexed: 1 added" in mended.out
    rest = knowledge("retry", "--all", "--json")
    assert (rest.status, rest.value["files"], rest.value["run"]["counts"]["added"]) == (0, 1, 1)
    assert paths(knowledge) == []
    nothing = knowledge("retry", "--all")
    assert (nothing.status, nothing.out) == (0, "nothing to try again\n")
    assert "no file failed\n" in knowledge("failures").out


def test_an_ignored_file_is_left_alone_and_counted_apart(
    knowledge: CommandLine, failing: CommandLine, docs: Path
) -> None:
    failing("index", str(docs))
    ignored = knowledge("ignore", "docs/sub")
    assert ignored.status == 0
    assert "ignored from now on: docs/sub/poison-2.md" in ignored.out
    assert "ignored already: docs/sub/poison-2.md\n" in knowledge("ignore", "docs/sub/poison-2.md").out
    told = knowledge("failures")
    assert "1 file failed: 1 to be tried again; 1 more ignored\n" in told.out
    assert "ignored: not tried again" in told.out
    explained = knowledge("explain", "docs/sub/poison-2.md")
    assert "would not try it: ignored: not tried again, or `knowledge ignore --undo" in explained.out
    retried = knowledge("retry", "--all", "--json")
    assert (retried.status, retried.value["files"]) == (0, 1)
    run = knowledge("index", "--json")
    assert run.status == 0
    assert run.value["counts"]["skipped"] == 1
    undone = knowledge("ignore", "--undo", "docs/sub/poison-2.md")
    assert "no longer ignored" in undone.out
    assert knowledge("index", "--json").value["counts"]["added"] == 1
    assert paths(knowledge) == []


def test_what_cannot_be_retried_is_said(knowledge: CommandLine, failing: CommandLine, docs: Path) -> None:
    """R37: 2 for what makes no sense, 4 for a path without a failure, 10 without an index."""
    assert knowledge("failures").status == 10
    assert knowledge("retry", "--all").status == 10
    failing("index", str(docs))
    statuses = {
        ("retry",): 2,
        ("retry", "--all", "docs/poison.md"): 2,
        ("retry", "--all", "--reason", "unreadable"): 2,
        ("retry", "--reason", "unreadable", "docs/poison.md"): 2,
        ("retry", "--reason", "bad_luck"): 2,
        ("failures", "--reason", "empty"): 2,
        ("ignore",): 2,
        ("retry", "docs/a.md"): 4,
        ("retry", "docs/nowhere.md"): 4,
        ("ignore", "/nowhere/at/all.md"): 4,
        ("retry", "--reason", "unreadable"): 0,
        ("failures", "--reason", "unreadable"): 0,
    }
    assert {asked: knowledge(*asked).status for asked in statuses} == statuses
    assert "`knowledge failures` lists them" in knowledge("retry", "docs/a.md").err
    contradictory = knowledge("retry", "--all", "--reason", "unreadable", "docs/poison.md").err
    assert "PATHS and --all and --reason contradict each other" in contradictory


def test_a_file_that_is_gone_has_failed_for_the_last_time(
    knowledge: CommandLine, failing: CommandLine, docs: Path
) -> None:
    failing("index", str(docs))
    (docs / "poison.md").unlink()
    told = knowledge("retry", "docs/poison.md")
    assert (told.status, told.out) == (0, "not there any more, and forgotten: docs/poison.md\n")
    assert [path for path, _, _ in paths(knowledge)] == ["docs/sub/poison-2.md"]


def test_a_dry_run_says_what_it_would_leave(failing: CommandLine, docs: Path) -> None:
    failing("index", str(docs))
    told = failing("index", "--dry-run", "--json").value
    (left,) = told["not_tried"]
    assert (left["reason"], left["standing"], left["count"]) == ("unexpected", "open", 2)
    assert told["counts"]["add"] == 0
    assert "failed before, an unexpected error: 2" in failing("index", "--dry-run").out
    assert failing("index", "--dry-run", "--rehash", "--json").value["counts"]["add"] == 2
