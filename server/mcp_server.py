"""The MCP server over the tools of one base, whatever carries it: lists what is exposed, answers calls in threads."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from anyio import CapacityLimiter, create_memory_object_stream, create_task_group, to_thread

from app.mcp_exposure import READ, declaration_of, is_listed
from app.present import unexpected_error
from app.present_mcp import SERVER_INSTRUCTIONS, ToolAnswer, failed
from app.present_safe import name as safe_name
from domain.errors import KnowledgeError, NotFoundError
from domain.settings import ToolProfile
from domain.status import DegradeCause
from server.mcp_calls import Stopped, ToolCalls
from server.mcp_resources import read_resource, resource_handlers, where
from server.mcp_sdk import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Server,
    ServerRequestContext,
    SessionMessage,
    TextContent,
    Tool,
    ToolAnnotations,
    stdio_server,
)
from server.mcp_tools import TOOLS, McpTool
from server.mcp_unreadable import without_unreadable

SERVER_NAME = "knowledge"
CALLS_AT_A_TIME = 4  # each works in a thread of its own; more would only wait for the processor
MAX_SHOWN_CHARS = 80
log = logging.getLogger("knowledge.mcp")


class KnowledgeMcpServer:
    """Serves the named tools of `tools` and no others; documents as resources where they may be read at all; no
    prompts. Arguments are checked here, not by signatures: what a client sends is refused in our own words, and nothing
    is guessed."""

    def __init__(
        self,
        calls: ToolCalls,
        names: Sequence[str],
        *,
        profile: ToolProfile = "full",
        tools: Sequence[McpTool] = TOOLS,
        limiter: CapacityLimiter | None = None,
    ) -> None:
        """`limiter`: of the threads that calls work in; its own when there is none."""
        self._calls = calls
        self._profile = profile
        self._exposed = {tool.name: tool for tool in tools if tool.name in names}
        self._limiter = limiter or CapacityLimiter(CALLS_AT_A_TIME)
        self.protocol: Server[Any] = Server(
            SERVER_NAME,
            version=_version(),
            instructions=SERVER_INSTRUCTIONS,
            on_list_tools=self._on_list_tools,
            on_call_tool=self._on_call_tool,
            # no parameter of ours is repeated in a header: without this, every call over HTTP would list all tools
            get_tool_input_schema=lambda _tool: None,
            **(resource_handlers(self._read_resource) if READ in self._exposed else {}),
        )

    async def run_stdio(self) -> None:
        """Until the client closes standard input."""
        to_server, readable = create_memory_object_stream[SessionMessage | Exception]()
        async with stdio_server() as (received, sent), create_task_group() as tasks:
            tasks.start_soon(without_unreadable, received, to_server, sent)
            await self.protocol.run(readable, sent, self.protocol.create_initialization_options())
            tasks.cancel_scope.cancel()

    async def list_tools(self) -> list[Tool]:
        return await to_thread.run_sync(self._tools)

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Never raises: a failure is a result that says so, for the model to read."""
        answer: ToolAnswer = await self._in_thread(partial(self._answer, name, arguments))
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)],
            structured_content=answer.value,
            is_error=answer.is_error,
        )

    async def _in_thread(self, function: Callable[[Stopped], Any]) -> Any:
        gone = threading.Event()  # whoever asked waits no more

        def stopped() -> DegradeCause | None:
            return DegradeCause.CANCELED if gone.is_set() else None

        try:
            return await to_thread.run_sync(partial(function, stopped), abandon_on_cancel=True, limiter=self._limiter)
        finally:
            gone.set()

    async def _read_resource(self, uri: str) -> str:
        """Raises MCPError."""
        text: str = await self._in_thread(partial(read_resource, self._calls, uri))
        return text

    async def _on_list_tools(
        self, _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=await self.list_tools())

    async def _on_call_tool(self, _context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        return await self.call_tool(params.name, params.arguments or {})

    def _tools(self) -> list[Tool]:
        listed = [tool for name, tool in self._exposed.items() if is_listed(declaration_of(name), self._profile)]
        return [
            Tool(
                name=tool.name,
                title=tool.title,
                description=tool.description(self._calls),
                input_schema=tool.schema(),
                annotations=_annotations(tool.name),
            )
            for tool in listed
        ]

    def _answer(self, name: str, arguments: dict[str, Any], stopped: Stopped) -> ToolAnswer:
        began_s = time.monotonic()
        tool = self._exposed.get(name)
        outcome = "ok"
        try:
            if tool is None:
                raise _no_tool(name, self._exposed)
            answer = tool.answer(self._calls, arguments, stopped)
        except KnowledgeError as error:
            answer, outcome = failed(error), error.code
        except Exception as error:  # noqa: BLE001 - one bad call must not end the server for all others
            answer, outcome = failed(unexpected_error(error)), where(error)
        log.info("%s: %s, %d ms", tool.name if tool else "unknown tool", outcome, (time.monotonic() - began_s) * 1000)
        return answer


def _annotations(tool: str) -> ToolAnnotations:
    reads = declaration_of(tool).tool_class == "read"
    return ToolAnnotations(
        read_only_hint=reads, destructive_hint=not reads, idempotent_hint=reads, open_world_hint=False
    )


def _no_tool(name: str, exposed: dict[str, McpTool]) -> NotFoundError:
    return NotFoundError(
        f"there is no tool {safe_name(name[:MAX_SHOWN_CHARS])!r}", hint=f"there are: {', '.join(exposed)}"
    )


def _version() -> str:
    try:
        return version("knowledge-service")
    except PackageNotFoundError:
        return ""
