"""`knowledge backup` and `knowledge restore` over the command line (P32, R37)."""

import shutil
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write_files

TEXTS: dict[str, str | bytes] = {"docs/a.md": "# Ants\n\nA queen founds the nest.\n", "docs/b.md": "# Bees\n\nHoney.\n"}


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    made = CommandLine(tmp_path)
    write_files(made.cwd, TEXTS)
    assert made("index", "docs").status == 0
    return made


def test_there_and_back(command: CommandLine) -> None:
    home = command.cwd / "knowledge" / "default"
    written = command("backup", "b.tar")
    assert written.status == 0
    assert "backed up: 2 documents and 2 chunks" in written.out
    refused = command("backup", "b.tar")
    assert (refused.status, "--force" in refused.err) == (4, True)
    value = command("backup", "b.tar", "--force", "--json").value
    assert (value["documents"], value["path"]) == (2, str(command.cwd / "b.tar"))
    assert value["file_bytes"] == (command.cwd / "b.tar").stat().st_size
    in_the_way = command("restore", "b.tar", "--json")
    assert in_the_way.status == 4
    assert "2 documents and 2 chunks" in in_the_way.value["error"]["message"]
    write_files(command.cwd, {"docs/a.md": "# Ants\n\nWorkers carry leaves.\n"})
    shutil.rmtree(home)
    restored = command("restore", "b.tar")
    assert restored.status == 0
    assert "restored: 2 documents" in restored.out
    assert "the place of" not in restored.out
    assert "queen" in command("search", "queen").out
    assert "1 updated" in command("index").out
    assert "nothing found" in command("search", "queen").out
    again = command("restore", "--force", "b.tar", "--json").value
    assert (again["was_replaced"], again["documents"]) == (True, 2)
    assert "queen" in command("search", "queen").out
    assert command("verify", "--deep").status == 0
    assert command("doctor").status == 0


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["backup"], 2),
        (["backup", "nowhere/b.tar"], 2),
        (["backup", "docs"], 2),
        (["backup", "knowledge/default/b.tar"], 2),
        (["restore"], 2),
        (["restore", "nope.tar"], 2),
        (["restore", "docs"], 2),
        (["restore", "docs/a.md"], 12),
    ],
)
def test_what_cannot_be_done(command: CommandLine, arguments: list[str], status: int) -> None:
    before = sorted(path.name for path in command.cwd.iterdir())
    ended = command(*arguments)
    assert ended.status == status
    assert "hint: " in ended.err
    assert "Traceback" not in ended.err
    assert sorted(path.name for path in command.cwd.iterdir()) == before


def test_a_damaged_backup(command: CommandLine) -> None:
    assert command("backup", "b.tar").status == 0
    raw = bytearray((command.cwd / "b.tar").read_bytes())
    raw[len(raw) // 2] ^= 1
    (command.cwd / "b.tar").write_bytes(raw)
    ended = command("restore", "b.tar", "--force")
    assert ended.status == 13
    assert "damaged" in ended.err
    assert "queen" in command("search", "queen").out


def test_without_an_index(tmp_path: Path) -> None:
    ended = CommandLine(tmp_path)("backup", "b.tar")
    assert (ended.status, str(tmp_path) in ended.err) == (10, True)
    assert not list(tmp_path.iterdir())


def test_a_blank_index_is_not_an_ordinary_empty_one(command: CommandLine) -> None:
    """S2-21: what deleting knowledge.db and a command that makes it anew leave."""
    for path in (command.cwd / "knowledge" / "default").glob("knowledge.db*"):
        path.unlink()
    (command.cwd / "docs").rename(command.cwd / "away")
    assert command("search", "queen").status == 10
    assert command("index", "away/none.md").status == 2
    command("index")  # its root is not there: the run makes a blank index and ends
    told = command("search", "queen", "--json").value
    assert (told["status"], told["results"]) == ("index_inconsistent", [])
    assert "knowledge doctor" in told["note"]
    assert "blank" in command("search", "queen").out
    assert command("doctor").status == 5
    (command.cwd / "away").rename(command.cwd / "docs")
    assert command("index").status == 0
    assert "queen" in command("search", "queen").out
    assert command("doctor").status == 0
