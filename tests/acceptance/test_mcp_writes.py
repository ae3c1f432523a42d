"""P28: 1,000 attempts to write through the server that agents are given; the index and its folder stay as they are."""

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine, write_files
from tests.support.mcp_clients import ALL_TOOLS, BareClient
from tests.support.write_attempts import TOOLS, calls

COUNT = 1_000
AT_A_TIME = 25
HOW_TO_READ = "resources/templates/list"  # the same words for every index
# SQLite's own, which say who reads: made by reading, and empty of any content of the index
READERS_FILES = ("knowledge.db-shm", "knowledge.db-wal", "state.db-shm", "state.db-wal")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    command = CommandLine(tmp_path_factory.mktemp("writes"))
    write_files(command.cwd, {"docs/bread.md": "# Bread\n\nThe loaf is done.\n", "docs/oven.md": "# Oven\n\nCold.\n"})
    (command.cwd / "docs" / "link-to-etc").symlink_to("/etc")
    assert command("index", "docs").status == 0
    return command


def contents(folder: Path) -> dict[str, tuple[str, int]]:
    """Of everything below a folder: what it holds, and its mode."""
    return {
        str(path.relative_to(folder)): (held_by(path), path.lstat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.name not in READERS_FILES
    }


def held_by(path: Path) -> str:
    if path.is_symlink():
        return str(path.readlink())
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def logs_are_empty(home: Path) -> bool:
    return not any(path.stat().st_size for path in home.glob("*-wal"))


def answers(
    client: BareClient, asked: list[dict[str, Any]], first: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Requests sent at once, each with its answer."""
    waiting = {}
    for number, request in enumerate(asked, first):
        client.send({"jsonrpc": "2.0", "id": number, **request})
        waiting[number] = request
    while waiting:
        answer = client.receive()
        if "id" in answer:  # else it is a notification
            yield waiting.pop(answer["id"]), answer


def test_a_thousand_attempts_change_nothing(base: CommandLine) -> None:
    """P28, S0-65, S1-58: each is answered, what is no tool of the list is refused, and the next call is answered."""
    home = base.cwd / "knowledge" / "default"
    before = contents(base.cwd)
    client = BareClient(base, "--tools", ",".join(ALL_TOOLS))
    client.greet()
    refused = answered = 0
    attempts = calls(COUNT, str(home))
    while asked := list(islice(attempts, AT_A_TIME)):
        for request, answer in answers(client, asked, answered + 1):
            is_refused = "error" in answer or answer["result"].get("isError", False)
            reads = request["params"].get("name") in TOOLS or request["method"] == HOW_TO_READ
            assert is_refused or reads, (request, answer)
            assert "unexpected" not in str(answer), (request, answer)
            refused, answered = refused + is_refused, answered + 1
        assert logs_are_empty(home)
    assert answered >= COUNT and refused > COUNT // 2
    client.call(0, "knowledge_search", query="loaf")
    assert client.receive()["result"]["structuredContent"]["results"][0]["path"] == "docs/bread.md"
    status, rest, said = client.end()
    assert (status, rest) == (0, []) and "Traceback" not in said and "unexpected" not in said
    assert contents(base.cwd) == before and logs_are_empty(home)
    assert base("verify").status == 0
