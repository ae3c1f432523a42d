"""The table of the tools of MCP: what each is called, takes and does. Only those that an operator lists are served."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from app.mcp_exposure import ENUMERATE, READ, SEARCH
from app.present_mcp import ToolAnswer, tool_description
from server.mcp_arguments import EnumerateArguments, ReadArguments, SearchArguments, arguments_from, schema_of
from server.mcp_calls import Stopped, ToolCalls


class McpTool(NamedTuple):
    name: str
    title: str
    what: str  # the beginning of its description
    arguments: type[Struct]
    call: Callable[[ToolCalls, Any, Stopped], ToolAnswer]

    def schema(self) -> dict[str, Any]:
        return schema_of(self.arguments)

    def description(self, calls: ToolCalls) -> str:
        return tool_description(self.what, calls.settings.description, calls.roots())

    def answer(self, calls: ToolCalls, given: dict[str, Any], stopped: Stopped) -> ToolAnswer:
        """Raises KnowledgeError."""
        return self.call(calls, arguments_from(self.arguments, given), stopped)


TOOLS: Sequence[McpTool] = (
    McpTool(
        SEARCH,
        "Search the documents",
        "Finds the passages that answer a question best, the best first, each with its whole text and a citation. "
        "Ranked: that something is missing here does not prove that it is nowhere.",
        SearchArguments,
        ToolCalls.search,
    ),
    McpTool(
        ENUMERATE,
        "List every document that holds words",
        "Lists the documents that hold all the given words, in any of their forms, and says how many there are: the "
        "complete set, not a ranking. What it does not count is in no text that is indexed.",
        EnumerateArguments,
        ToolCalls.enumerate,
    ),
    McpTool(
        READ,
        "Read a passage or a document",
        "Gives a cited passage with its neighbours, or a document or some of its lines, as they were indexed.",
        ReadArguments,
        ToolCalls.read,
    ),
)
