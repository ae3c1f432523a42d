"""`knowledge upgrade` over the command line: what a user sees after an update of the program (S0-57, R37)."""

from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write_files
from tests.support.old_stores import OLD, by

TEXTS: dict[str, str | bytes] = {"docs/a.md": "# Ants\n\nA queen founds the nest.\n", "docs/b.md": "# Bees\n\nHoney.\n"}


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    made = CommandLine(tmp_path)
    write_files(made.cwd, TEXTS)
    assert made("index", "docs").status == 0
    return made


def database_of(command: CommandLine) -> Path:
    return command.cwd / "knowledge" / "default" / "knowledge.db"


def test_after_an_update_of_the_program(command: CommandLine) -> None:
    OLD["a table less"](database_of(command))
    for verb in (["search", "queen"], ["status"], ["index"], ["verify"], ["backup", "b.tar"]):
        refused = command(*verb)
        assert refused.status in (12, 13)
        said = refused.err + refused.out
        assert 0 <= said.find("knowledge upgrade") < said.find("knowledge reset")
    foreseen = command("upgrade", "--dry-run")
    assert foreseen.status == 0
    assert "would upgrade: format 1 -> 2, 2 documents in the old index" in foreseen.out
    done = command("upgrade")
    assert done.status == 0
    assert "upgraded: format 1 -> 2, 2 documents in the old index" in done.out
    assert "files: 2 added" in done.out
    assert "queen" in command("search", "queen").out
    again = command("upgrade")
    assert (again.status, "nothing to do" in again.out) == (0, True)
    assert command("doctor").status == 0
    assert command("verify", "--deep").status == 0
    assert "upgrade" in command("status").out


def test_json(command: CommandLine) -> None:
    assert command("upgrade", "--json").value["status"] == "current"
    OLD["only its number"](database_of(command))
    (command.cwd / "docs" / "a.md").unlink()
    write_files(command.cwd, {"docs/c.md": b"\xff"})
    ended = command("upgrade", "--json")
    value = ended.value
    assert (ended.status, ended.err) == (0, "")
    assert (value["status"], value["from_format"], value["to_format"]) == ("upgraded", 1, 2)
    assert value["missing"] == {"count": 1, "first": ["docs/a.md"], "not_compared": 0}
    assert (value["needed_bytes"], value["free_bytes"]) == (None, None)  # not 0: nothing has been measured
    assert value["run"]["skipped"] == [{"reason": "not_utf8", "count": 1, "first": "docs/c.md"}]
    assert value["run"]["counts"]["added"] == 1
    assert (value["vectors_taken"], value["vectors_left"], value["held"]) == (0, [], [])


def test_held(command: CommandLine) -> None:
    """Exit 3, with the folder, the cause and the command that does it all the same."""
    OLD["only its number"](database_of(command))
    for name in ("a.md", "b.md"):
        (command.cwd / "docs" / name).unlink()
    held = command("upgrade")
    assert held.status == 3
    assert "missing: 2 of 2 documents below docs (the folder shows no file at all" in held.out
    assert "knowledge upgrade --allow-mass-delete" in held.out
    value = command("upgrade", "--json").value
    assert (value["status"], value["exit_status"], value["held"][0]["cause"]) == ("held", 3, "source_empty")
    assert command("upgrade", "--allow-mass-delete").status == 0
    assert "0 documents" in command("status").out or "empty" in command("status").out


@pytest.mark.parametrize(("version", "status", "words"), [("3", 12, "upgrade this program"), ("1", 0, "upgraded")])
def test_versions(command: CommandLine, version: str, status: int, words: str) -> None:
    by(version=version)(database_of(command))
    ended = command("upgrade")
    assert (ended.status, words in ended.err + ended.out) == (status, True)


def test_where_there_is_no_index(tmp_path: Path) -> None:
    ended = CommandLine(tmp_path)("upgrade")
    assert ended.status == 10
    assert "knowledge index" in ended.err
