"""MCP over HTTP: the SDK's own client, and what no client would send."""

import asyncio
import gc
import json
import shutil
import threading
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from httpx2 import AsyncClient
from mcp import MCPError
from mcp.server.streamable_http import StreamableHTTPServerTransport

from app import mcp_exposure
from app.mcp_exposure import DECLARED, ToolDeclaration
from app.present_mcp import ToolAnswer
from domain.settings import McpSettings, ServerSettings, Settings
from server import mcp_http
from server.mcp_calls import Stopped, ToolCalls
from server.mcp_server import KnowledgeMcpServer
from server.mcp_tools import TOOLS
from tests.support.bases import build_base
from tests.support.http_service import http_client
from tests.support.mcp_clients import ask, object_of, refused, text_of
from tests.support.mcp_http import connected_by_http, serving

NAMES = tuple(tool.name for tool in DECLARED)
EXPOSED = McpSettings(NAMES)
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
SEARCH = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "knowledge_search", "arguments": {"query": "fox"}},
}


@pytest.fixture
def base(tmp_path: Path) -> Settings:
    return build_base(tmp_path, mcp=EXPOSED)


@pytest.fixture
async def url(base: Settings) -> AsyncIterator[str]:
    async with serving(base) as address:
        yield address


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_tools_and_resources_are_those_of_standard_input(url: str, mode: str) -> None:
    """S1-58, P28: both ages of the protocol."""
    async with connected_by_http(url, mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(NAMES)
        found = await client.call_tool("knowledge_search", {"query": "fox"})
        assert [row["citation"] for row in object_of(found)["results"]] == ["docs/a.md#0"]
        assert "The quick brown fox." in text_of(found) and "BEGIN UNTRUSTED DATA" in text_of(found)
        assert (await ask(client, "knowledge_enumerate", query="fox"))["matched"] == 1
        assert (await ask(client, "knowledge_read", citation="docs/a.md#1"))["chunks"][0]["ordinal"] == 1
        for name in ("knowledge_index", "reset", "", "../search"):
            assert (await refused(client, name, {}))["code"] == "not_found"
        (contents,) = (await client.read_resource("knowledge://docs/a.md#0")).contents
        assert "The quick brown fox." in contents.model_dump()["text"]
        with pytest.raises(MCPError):
            await client.read_resource("file:///etc/passwd")


async def test_many_at_once_under_one_number(url: str) -> None:
    """Two clients choose the same number; each gets its own answer."""
    async with AsyncClient(headers=HEADERS, timeout=60) as http:

        async def asked(query: str) -> list[str]:
            params = {"name": "knowledge_search", "arguments": {"query": query}}
            answer = (await http.post(url, json={**SEARCH, "params": params})).json()
            assert answer["id"] == 1
            return [row["path"] for row in answer["result"]["structuredContent"]["results"]]

        found = await asyncio.gather(*(asked(query) for query in ("fox", "dogs") * 10))
    assert found == [["docs/a.md"], ["docs/b.md"]] * 10


async def test_nothing_is_left_of_a_request(url: str) -> None:
    """No session, no transport and no task stays behind."""
    async with AsyncClient(headers=HEADERS, timeout=60) as http:
        assert (await http.post(url, json=PING)).json()["result"] == {}
        await asyncio.sleep(0.1)
        tasks = len(asyncio.all_tasks())
        for _ in range(30):
            answer = await http.post(url, json=SEARCH)
            assert answer.status_code == 200 and "mcp-session-id" not in answer.headers
        await asyncio.sleep(0.1)
        assert len(asyncio.all_tasks()) <= tasks
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, StreamableHTTPServerTransport)]


DEEP = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
NO_MESSAGES: list[tuple[str, bytes, int]] = [
    ("nothing", b"", -32700),
    ("no JSON", b"{", -32700),
    ("no UTF-8", b"\xff\xfe", -32700),
    ("half a character", json.dumps({**PING, "id": "\ud800"}).encode(), -32700),
    ("no number of JSON", b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700),
    ("depth", DEEP, -32700),
    ("depth of a list", b"[" * 10_000 + b"]" * 10_000, -32700),
    ("a batch", json.dumps([PING, PING]).encode(), -32600),
    ("an empty batch", b"[]", -32600),
    ("a text", b'"ping"', -32600),
    ("null", b"null", -32600),
    ("no version", b'{"id":1,"method":"ping"}', -32600),
    ("another version", b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    ("no method", b'{"jsonrpc":"2.0","id":1}', -32600),
    ("a method that is none", b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    ("parameters that are none", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600),
    ("a number that is none", b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    ("a number that is true", b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    ("a number that is broken", b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
]


@pytest.mark.parametrize("version", [None, "2025-11-25", "2026-07-28", "1999-01-01"])
async def test_what_is_no_message_is_told_so(url: str, version: str | None) -> None:
    """Never an error of the server's, and never silence; nothing of the body is said again."""
    headers = HEADERS | ({"mcp-protocol-version": version} if version else {})
    async with AsyncClient(headers=headers, timeout=60) as http:
        for told, body, code in NO_MESSAGES:
            answer = await http.post(url, content=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), told
            assert answer.json()["id"] is None


async def test_what_is_a_message_and_no_use(base: Settings, url: str) -> None:
    messages: list[tuple[dict[str, Any], int]] = [
        ({**PING, "method": "no/such"}, -32601),
        ({**PING, "method": "prompts/list"}, -32601),
        ({**PING, "method": "tools/call"}, -32602),
        ({**PING, "method": "tools/call", "params": {"name": 7}}, -32602),
        ({**PING, "method": "resources/read", "params": {"uri": "knowledge://docs/none.md"}}, -32602),
        ({**PING, "id": 10**30, "method": "no/such"}, -32601),
    ]
    async with AsyncClient(headers=HEADERS, timeout=60) as http:
        for message, code in messages:
            answer = await http.post(url, json=message)
            assert answer.status_code < 500, message
            assert answer.json()["error"]["code"] == code, message
        nested: Any = "x"
        for _ in range(150):
            nested = [nested]
        deep = {**SEARCH, "params": {"name": "knowledge_search", "arguments": {"query": nested}}}
        assert (await http.post(url, json=deep)).json()["result"]["isError"] is True
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await http.post(url, json=cancelled)).status_code == 202
        assert (await http.post(url, json={"jsonrpc": "2.0", "id": 1, "result": {}})).status_code < 500


async def test_requests_that_are_none_of_ours(url: str) -> None:
    """T27, T28: method, kind, size, name and page, before a message is looked at."""
    async with AsyncClient(headers=HEADERS, timeout=60) as http:
        for method in ("GET", "DELETE", "PUT"):
            answer = await http.request(method, url)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        plain = await http.post(url, content=b"{}", headers={"content-type": "text/plain"})
        assert plain.status_code == 415
        assert (await http.post(url, json=PING, headers={"accept": "text/html"})).status_code == 406
        big = {**SEARCH, "params": {"name": "knowledge_search", "arguments": {"query": "x" * 100_000}}}
        assert (await http.post(url, json=big)).status_code == 413
        assert (await http.post(url, json=PING, headers={"host": "evil.example"})).status_code == 421
        assert (await http.post(url, json=PING, headers={"origin": "https://evil.example"})).status_code == 403
        assert (await http.post(url, json=PING)).status_code == 200


async def test_a_token_is_wanted_where_there_is_one(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """T27: reading is enough."""
    monkeypatch.setenv("READ_IT", "r" * 32)
    guarded = msgspec.structs.replace(base, server=ServerSettings(read_token_env="READ_IT"))
    async with serving(guarded) as url:
        async with AsyncClient(headers=HEADERS, timeout=60) as http:
            nobody = await http.post(url, json=SEARCH)
            wrong = await http.post(url, json=SEARCH, headers={"authorization": "Bearer " + "w" * 32})
        assert (nobody.status_code, wrong.status_code) == (401, 401)
        assert "bearer" in nobody.headers["www-authenticate"].lower()
        async with connected_by_http(url, authorization="Bearer " + "r" * 32) as client:
            assert (await ask(client, "knowledge_search", query="fox"))["status"] == "ok"


async def test_whoever_goes_takes_the_call_along(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call whose client is gone is told to stop; others are answered meanwhile."""
    begun, told = threading.Event(), threading.Event()

    def wait_for_the_end(_calls: ToolCalls, _arguments: Any, stopped: Stopped) -> ToolAnswer:
        begun.set()
        while stopped() is None:
            time.sleep(0.01)
        told.set()
        return ToolAnswer("", {})

    slow = TOOLS[0]._replace(call=wait_for_the_end)
    monkeypatch.setattr(mcp_http, "KnowledgeMcpServer", partial(KnowledgeMcpServer, tools=(slow, *TOOLS[1:])))
    for version in ("2025-11-25", "2026-07-28"):
        begun.clear()
        told.clear()
        async with serving(base) as url, AsyncClient(headers=HEADERS, timeout=60) as http:
            body, headers = in_version(version, SEARCH)
            asked = asyncio.ensure_future(http.post(url, json=body, headers=headers))
            assert await asyncio.to_thread(begun.wait, 30)
            read = {"name": "knowledge_read", "arguments": {"path": "docs/a.md"}}
            answer = await http.post(url, json={**SEARCH, "params": read})
            assert answer.json()["result"]["structuredContent"]["status"] == "ok"
            asked.cancel()
            assert await asyncio.to_thread(told.wait, 30)


def in_version(version: str, message: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A request as that version of the protocol has it."""
    if version < "2026":
        return message, {"mcp-protocol-version": version}
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {"mcp-protocol-version": version, "mcp-method": message["method"], "mcp-name": message["params"]["name"]}
    return {**message, "params": {**message["params"], "_meta": meta}}, headers


async def test_another_index_in_the_place_is_followed(base: Settings, url: str, tmp_path: Path) -> None:
    """S1-35, though the service keeps the index open."""
    async with connected_by_http(url) as client:
        assert (await ask(client, "knowledge_search", query="fox"))["results"]
        shutil.rmtree(base.home)
        assert (await ask(client, "knowledge_search", query="fox"))["status"] == "index_not_built"
        with pytest.raises(MCPError, match="index"):
            await client.read_resource("knowledge://docs/a.md")
        build_base(tmp_path, {"new.md": "# New\n\nA fox of another kind.\n"})
        assert [row["path"] for row in (await ask(client, "knowledge_search", query="fox"))["results"]] == [
            "docs/new.md"
        ]


async def test_over_http_no_tool_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S4-73: also where an operator has allowed it on standard input."""
    writes = (ToolDeclaration(NAMES[0], "write", "agent"), *DECLARED[1:])
    monkeypatch.setattr(mcp_http, "declaration_of", lambda tool: mcp_exposure.declaration_of(tool, writes))
    base = build_base(tmp_path, mcp=McpSettings(NAMES, allow_write=True))
    async with serving(base) as url, connected_by_http(url) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(NAMES[1:])
        assert (await refused(client, NAMES[0], {"query": "fox"}))["code"] == "not_found"


@pytest.mark.parametrize(
    ("mcp", "status"), [(McpSettings(), 404), (McpSettings(NAMES), 200), (McpSettings(NAMES, port=8770), 404)]
)
def test_where_it_stands(tmp_path: Path, mcp: McpSettings, status: int) -> None:
    """S1-51: nowhere without a listed tool; with a port of its own, there only."""
    with http_client(build_base(tmp_path, mcp=mcp)) as client:
        answer = client.post("/mcp", json=PING, headers=HEADERS)
        assert answer.status_code == status
        assert status == 404 or answer.json()["result"] == {}


def test_what_is_lost_is_said_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """S0-81."""
    with http_client(build_base(tmp_path, mcp=McpSettings(NAMES[1:]))):
        assert [record.levelname for record in caplog.records if "without knowledge_search" in record.msg] == [
            "WARNING"
        ]
