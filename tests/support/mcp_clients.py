"""MCP clients over standard input and output: the SDK's own, and a bare one that sends what no client would."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent

from tests.support.command_line import COMMAND, CommandLine
from tests.support.signals import sigint

ALL_TOOLS = ("knowledge_search", "knowledge_enumerate", "knowledge_read")


@asynccontextmanager
async def connected(
    command: CommandLine, *arguments: str, tools: str | None = ",".join(ALL_TOOLS), mode: str = "auto"
) -> AsyncIterator[Client]:
    """The SDK's client of a child of its own; what the child says on the side goes to `mcp.log` in its folder."""
    given = [*COMMAND[1:], "mcp", *(["--tools", tools] if tools is not None else []), *arguments]
    parameters = StdioServerParameters(
        command=COMMAND[0], args=given, cwd=command.cwd, env=command.environment({}), encoding="utf-8"
    )
    with (command.cwd / "mcp.log").open("a", encoding="utf-8") as log:
        async with Client(stdio_client(parameters, errlog=log), mode=mode, read_timeout_seconds=60) as client:
            yield client


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def object_of(result: CallToolResult) -> dict[str, Any]:
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The object of an answer that is no error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return object_of(result)


async def refused(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The error of a call, the same in both forms."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    error: dict[str, Any] = object_of(result)["error"]
    assert set(error) == {"code", "message", "hint"}
    assert error["message"] in text_of(result) and error["code"] in text_of(result)
    return error


class BareClient:
    """Lines to and from a child; nothing is checked but that every line it writes is a JSON object."""

    def __init__(
        self, command: CommandLine, *arguments: str, ignores_sigint: bool = False, log: Path | None = None
    ) -> None:
        """`log`: a file for what the child says on the side; for more of it than a pipe holds."""
        with sigint(ignored=ignores_sigint), nullcontext() if log is None else log.open("wb") as aside:
            self.process = subprocess.Popen(
                [sys.executable, *COMMAND[1:], "mcp", *arguments],
                cwd=command.cwd,
                env=command.environment({}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if aside is None else aside,
            )

    def send(self, line: str | bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        if isinstance(line, dict):
            line = json.dumps(line)
        self.process.stdin.write((line if isinstance(line, bytes) else line.encode()) + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        value = json.loads(self.process.stdout.readline())
        assert isinstance(value, dict)
        return value

    def greet(self) -> dict[str, Any]:
        self.send(
            {
                "jsonrpc": "2.0",
                "id": 0,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "bare", "version": "0"},
                },
            }
        )
        answer = self.receive()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, number: int, tool: str, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Close its input; the exit status, what it still wrote, and what it said on the side."""
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], (err or b"").decode()


def index_files(home: Path) -> dict[str, bytes]:
    """What may not change while tools are called."""
    return {path.name: path.read_bytes() for path in home.glob("*.db")}
