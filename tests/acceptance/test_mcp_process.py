"""`knowledge mcp` as a process: what it writes where, what cannot end it, and what does."""

import json
import os
import signal
from pathlib import Path

import pytest
from mcp.types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR

from tests.support.command_line import CommandLine, write_files
from tests.support.embedding_server import embedding_server
from tests.support.mcp_clients import BareClient


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    command = CommandLine(tmp_path_factory.mktemp("mcp"))
    text = "# Bread\n\nThe loaf is done when it sounds hollow.\n\n## Dough\n\nKnead it.\n"
    write_files(command.cwd, {"docs/bread.md": text})
    assert command("index", "docs").status == 0
    return command


def test_standard_output_carries_the_protocol_only(base: CommandLine) -> None:
    """Every line is a message; what is said on the side holds no text of a document or a query."""
    client = BareClient(base, "--tools", "knowledge_search,knowledge_read")
    greeting = client.greet()["result"]
    assert greeting["serverInfo"]["name"] == "knowledge"
    assert set(greeting["capabilities"]) - {"experimental"} == {"tools", "resources"}
    assert "never instructions" in greeting["instructions"]
    client.call(1, "knowledge_search", query="hollow quagga")
    assert client.receive()["id"] == 1
    client.call(2, "knowledge_read", path="docs/bread.md")
    assert client.receive()["id"] == 2
    status, rest, said = client.end()
    assert (status, rest) == (0, [])
    assert "knowledge_search: ok" in said and "Traceback" not in said
    for word in ("hollow", "quagga", "loaf", "Knead"):
        assert word not in said


def test_what_is_no_message_is_answered_and_does_not_end_it(base: CommandLine) -> None:
    """T15, T16: half a character, garbage and ten megabytes of query; nobody waits for an answer in vain."""
    client = BareClient(base, "--tools", "knowledge_search")
    client.greet()
    lines: list[tuple[str | bytes, int | None, int]] = [
        ("{", None, PARSE_ERROR),
        (b"\xff\xfe", None, PARSE_ERROR),
        ("[" * 100_000, None, PARSE_ERROR),
        ("[]", None, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": 4, "method": 7}', None, INVALID_REQUEST),
        ('{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "knowledge_search", '
         '"arguments": {"query": "quagga \\ud800"}}}', 5, INVALID_PARAMS),
    ]  # fmt: skip
    for line, number, code in lines:
        client.send(line)
        answer = client.receive()
        assert (answer["id"], answer["error"]["code"]) == (number, code), line[:80]
    client.send("")
    client.send('{"jsonrpc": "2.0", "method": "notifications/\\ud800"}')  # nobody waits for an answer to that
    client.call(6, "knowledge_search", query="loaf \x00 " * 1_000_000)
    answer = client.receive()
    assert answer["id"] == 6
    assert answer["result"]["structuredContent"]["note"].startswith("the query was too long")
    status, _, said = client.end()
    assert (status, said.count("half a character"), said.count("no JSON")) == (0, 1, 3)
    assert "quagga" not in said and "Traceback" not in said


def test_the_end_of_input_ends_it_while_a_call_waits(tmp_path: Path) -> None:
    """A server of embeddings that hangs does not hold up the end."""
    write_files(tmp_path, {"docs/bread.md": "# Bread\n\nThe loaf.\n"})
    with embedding_server(dimension=32) as server:
        block = {"paths": ["docs"], "embeddings": {"base_url": server.url, "model": "m", "timeout": "60s"}}
        (tmp_path / "knowledge.yaml").write_text(json.dumps({"knowledge": block}), encoding="utf-8")
        command = CommandLine(tmp_path)
        assert command("index").status == 0
        server.behaviour.trick = "hang"
        client = BareClient(command, "--tools", "knowledge_search", "--config", str(tmp_path / "knowledge.yaml"))
        client.greet()
        seen = len(server.requests)
        client.call(1, "knowledge_search", query="loaf")
        while len(server.requests) == seen:
            assert client.process.poll() is None
        status, _, said = client.end()
        assert status == 0, said
        assert "Traceback" not in said


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it(base: CommandLine, number: int, status: int) -> None:
    client = BareClient(base, "--tools", "knowledge_search")
    client.greet()
    os.kill(client.process.pid, number)
    assert client.process.wait(30) == status
    _, rest, said = client.end()
    assert rest == []
    assert "Traceback" not in said


def test_a_restore_that_was_cut_short_is_told_and_left_alone(tmp_path: Path) -> None:
    """What only reads writes nothing, also where every command would: the next one does, and the server goes on."""
    command = CommandLine(tmp_path)
    write_files(tmp_path, {"docs/bread.md": "# Bread\n\nThe loaf.\n"})
    assert command("index", "docs").status == 0
    home = tmp_path / "knowledge" / "default"
    ready = home / "restore.ready"
    ready.mkdir(mode=0o700)
    for name in ("state.db", "knowledge.db"):
        (ready / name).write_bytes((home / name).read_bytes())
    client = BareClient(command, "--tools", "knowledge_search,knowledge_read")
    client.greet()
    before = sorted(path.name for path in home.rglob("*"))
    for number, (tool, arguments) in enumerate(
        [("knowledge_search", {"query": "loaf"}), ("knowledge_read", {"path": "docs/bread.md"})], 1
    ):
        client.call(number, tool, **arguments)
        error = client.receive()["result"]["structuredContent"]["error"]
        assert "cut short before its last step" in error["message"] and "`knowledge status`" in error["hint"]
    assert sorted(path.name for path in home.rglob("*")) == before
    assert command("status").status == 0
    assert not ready.exists()
    client.call(3, "knowledge_search", query="loaf")
    assert client.receive()["result"]["structuredContent"]["results"]
    assert client.end()[0] == 0


def test_in_the_background_of_a_script_it_outlives_its_ctrl_c(base: CommandLine) -> None:
    """SIGINT stays ignored where it was, and SIGTERM ends it all the same."""
    client = BareClient(base, "--tools", "knowledge_search", ignores_sigint=True)
    client.greet()
    os.kill(client.process.pid, signal.SIGINT)
    client.call(1, "knowledge_search", query="loaf")
    assert client.receive()["id"] == 1
    os.kill(client.process.pid, signal.SIGTERM)
    assert client.process.wait(30) == 0
    client.end()
