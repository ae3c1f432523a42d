"""The installed command: `knowledge index`, and what it says of how files have ended."""

import signal
import time
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write_files

TEXTS: dict[str, str | bytes] = {
    "notes/a.md": "# A\n\nalpha\n",
    "notes/b.md": "# B\n\nbeta\n",
    "notes/bad.md": b"\xff\xfe",
    "notes/empty.md": "",
}


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    write_files(tmp_path, TEXTS)
    return CommandLine(tmp_path)


def everything_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_dry_run_writes_nothing_and_the_run_does_what_it_said(command: CommandLine) -> None:
    before = everything_below(command.cwd)
    forecast = command("index", "notes", "--dry-run", "--json")
    assert forecast.status == 0, forecast.err
    assert forecast.value["counts"] == {"add": 4, "check": 0, "unchanged": 0, "skip": 0, "remove": 0}
    assert forecast.value["extensions"] == {".md": 4}
    told = command("index", "notes", "--dry-run").out
    assert "would add                4" in told
    assert "free disk there: " in told
    assert everything_below(command.cwd) == before
    done = command("index", "notes", "--json").value
    assert done["counts"]["added"] == 2
    assert done["counts"]["skipped"] == 2
    again = command("index", "--dry-run", "--json").value
    assert again["counts"]["add"] == 0
    anew = command("index", "--dry-run", "--json", "--reindex").value["counts"]
    assert (anew["add"], anew["unchanged"]) == (0, 0)
    assert anew["check"] + anew["skip"] == 4


def test_every_outcome_is_counted_and_the_first_of_each_reason_is_named(command: CommandLine) -> None:
    first = command("index", "notes")
    assert first.status == 0
    assert "indexed: 2 added, 2 skipped\n" in first.out
    assert "  skipped, empty: notes/empty.md\n" in first.out
    assert "  skipped, not UTF-8 text: notes/bad.md\n" in first.out
    assert "2 files, 2 chunks in the index\n" in first.out
    assert f"index: {command.cwd / 'knowledge' / 'default'} (default place)\n" in first.out
    write_files(command.cwd, {"notes/a.md": "# A\n\nanother text\n", "notes/c.md": "# C\n\ngamma\n"})
    (command.cwd / "notes" / "b.md").unlink()
    done = command("index", "--json").value
    assert done["counts"] == {
        "added": 1, "updated": 1, "moved": 0, "unchanged": 0, "skipped": 2, "failed": 0, "removed": 1,
        "embedded": 0,
    }  # fmt: skip
    assert done["status"] == "done"


def test_quiet_says_nothing_when_all_is_well(command: CommandLine) -> None:
    ended = command("index", "notes", "--quiet")
    assert (ended.status, ended.out, ended.err) == (0, "", "")


def test_held_removals_end_with_3_and_say_what_to_do(command: CommandLine) -> None:
    write_files(command.cwd, {f"many/{number}.md": f"text {number}\n" for number in range(60)})
    assert command("index", "many").status == 0
    for path in (command.cwd / "many").iterdir():
        if path.name != "0.md":
            path.unlink()
    held = command("index", "many")
    assert held.status == 3
    assert "removals held: 59 of 60 documents below many" in held.out
    assert f"knowledge index {command.cwd / 'many'} --allow-mass-delete" in held.out
    assert command("stats", "--json").value["documents"] == 60
    assert command("index", "many", "--allow-mass-delete").status == 0
    assert command("stats", "--json").value["documents"] == 1


@pytest.mark.parametrize("processes", ["0", "1"])
@pytest.mark.parametrize("in_background", [False, True])
def test_terminated_like_interrupted(command: CommandLine, processes: str, in_background: bool) -> None:
    """Also as a job in the background of a script, which a Ctrl-C for the script does not end."""
    write_files(command.cwd, {f"big/{number}.md": f"# T{number}\n\n" + "word " * 20_000 for number in range(400)})
    process = command.start("index", "big", "--workers", processes, ignores_sigint=in_background)
    lock = command.cwd / "knowledge" / "default" / "knowledge.lock"
    deadline = time.monotonic() + 20
    while not (lock.exists() and lock.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    if in_background:
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130, told
    assert b"run the same command to do the rest" in told
    assert b"Traceback" not in told
    assert "was interrupted" in command("status").out
