"""`knowledge runs` over a `knowledge index` in another terminal, with no service: asked, ended, found dead (C-08)."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from domain.layout import BaseLayout
from store.run_port import RunRecord
from store.state import SqliteStateStore
from tests.support.command_line import CommandLine, write_files
from tests.support.waiting import eventually

pytestmark = pytest.mark.redis

# an index run that takes its time: every folder with this name a fifth of a second, every removal too
SLOW = """
import os, time
scan = os.scandir
def slowly(path="."):
    if "slow" in str(path):
        time.sleep(0.2)
    return scan(path)
os.scandir = slowly
"""


@pytest.fixture
def knowledge(tmp_path: Path) -> CommandLine:
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text(SLOW, encoding="utf-8")
    write_files(tmp_path / "docs", {f"{number}.md": f"# Page {number}\n" for number in range(30)})
    return CommandLine(tmp_path, {"PYTHONPATH": str(tmp_path / "first")})


def runs_of(knowledge: CommandLine) -> list[RunRecord]:
    layout = BaseLayout(knowledge.cwd / "knowledge" / "default")
    if not layout.state.exists():
        return []
    with closing(SqliteStateStore(layout.state, read_only=True)) as state:
        return list(state.runs())


@contextmanager
def going_on(knowledge: CommandLine) -> "Iterator[subprocess.Popen[bytes]]":
    """An index run over a hundred slow folders, once it has begun."""
    for number in range(100):
        (knowledge.cwd / "docs" / f"slow-{number:03}").mkdir()
    known = len(runs_of(knowledge))
    process = knowledge.start("index", "docs")
    try:
        eventually(lambda: len(runs_of(knowledge)) > known and runs_of(knowledge)[0].state != "queued")
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_run_in_another_terminal_is_cancelled(knowledge: CommandLine) -> None:
    with going_on(knowledge) as process:
        listed = knowledge("runs")
        assert "run 1: index of docs, by command line; " in listed.out
        cancelled = knowledge("runs", "cancel", "1")
        assert (cancelled.status, cancelled.out[:16]) == (0, "run 1: cancelled"), cancelled
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert b"the run was cancelled; what was committed stays" in err
    run = runs_of(knowledge)[0]
    assert (run.state, run.cause) == ("cancelled", "cancelled")
    again = knowledge("runs", "cancel", "1")
    assert (again.status, "run 1 has ended (cancelled)" in again.err) == (4, True)


def test_a_run_that_was_killed_is_told_as_interrupted_and_closed(knowledge: CommandLine) -> None:
    """Nobody works on it: that is seen at once, not when the next run begins."""
    with going_on(knowledge) as process:
        os.kill(process.pid, 9)
        process.wait()
    shown = knowledge("runs", "show", "1", "--json").value
    assert (shown["state"], shown["cause"]) == ("interrupted", "its process ended before it did")
    assert runs_of(knowledge)[0].ended_ns is None
    closed = knowledge("runs", "cancel", "1", "--json")
    assert (closed.status, closed.value["state"]) == (0, "interrupted")
    run = runs_of(knowledge)[0]
    assert (run.state, run.requested, run.ended_ns is not None) == ("interrupted", "", True)
    assert knowledge("runs", "retry", "1", "--detach").status == 2
    for number in range(100):
        (knowledge.cwd / "docs" / f"slow-{number:03}").rmdir()
    retried = knowledge("runs", "retry", "1")
    assert (retried.status, "indexed: " in retried.out) == (0, True), retried


def test_a_run_in_another_terminal_stands_still_and_goes_on(knowledge: CommandLine) -> None:
    with going_on(knowledge) as process:
        assert knowledge("runs", "pause", "1").status == 0
        eventually(lambda: runs_of(knowledge)[0].state == "paused")
        assert process.poll() is None
        assert "run 1: index of docs, by command line; paused" in knowledge("runs").out
        resumed = knowledge("runs", "resume", "1")
        assert (resumed.status, "paused" in resumed.out) == (0, False)
        _, _ = process.communicate(timeout=60)
        assert process.returncode == 0
    assert runs_of(knowledge)[0].counts == {"added": 30}


def test_changes_and_the_list(knowledge: CommandLine) -> None:
    assert knowledge("runs").status == 10
    assert knowledge("index", "docs").status == 0
    (knowledge.cwd / "docs" / "3.md").unlink()
    assert knowledge("index").status == 0
    assert knowledge("rm", "docs/4.md").status == 0
    changed = knowledge("runs", "show", "2", "--changes")
    assert changed.out.endswith("removed docs/3.md\n")
    assert knowledge("runs", "show", "3", "--changes", "--json").value["changes"] == {
        "added": [], "updated": [], "moved": [], "removed": ["docs/4.md"],
    }  # fmt: skip
    first = knowledge("runs", "show", "1", "--changes").out.splitlines()
    assert [line for line in first if line.startswith("added ")] == sorted(
        f"added docs/{number}.md" for number in range(30)
    )
    assert [one["id"] for one in knowledge("runs", "--limit", "2", "--json").value["runs"]] == [3, 2]
    layout = BaseLayout(knowledge.cwd / "knowledge" / "default")
    with closing(SqliteStateStore(layout.state)) as state:
        for _ in range(30):
            state.begin_beside(state.runs(1)[0], floor_generation=0)
    gone = knowledge("runs", "show", "1", "--changes")
    assert gone.out.endswith("what run 1 has changed is on record no more: it is kept for the newest 30 runs\n")
    assert knowledge("runs", "show", "1", "--changes", "--json").value["changes"] is None
