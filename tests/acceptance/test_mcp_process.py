"""`knowledge mcp` as a process: what it writes where, what cannot end it, and what does."""

import json
import os
import signal
from pathlib import Path

import pytest

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


def test_what_is_no_message_does_not_end_it(base: CommandLine) -> None:
    """T15, T16: half a character, garbage and ten megabytes of query; each next call is answered."""
    client = BareClient(base, "--tools", "knowledge_search")
    client.greet()
    client.send("{")
    client.send(b"\xff\xfe")
    client.send('{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "knowledge_search", '
                '"arguments": {"query": "\\ud800"}}}')  # fmt: skip
    client.call(6, "knowledge_search", query="loaf \x00 " * 1_000_000)
    while (answer := client.receive()).get("id") != 6:
        assert "error" in answer or answer["result"]["isError"]
    assert answer["result"]["structuredContent"]["note"].startswith("the query was too long")
    assert client.end()[0] == 0


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
