"""The tools of MCP, letter by letter: a change here is one that agents see. And who may import their server."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.config_loaded import Loaded
from app.discovery import Located
from app.mcp_exposure import DECLARED
from domain.settings import RootSettings, Settings
from server.mcp_calls import ToolCalls
from server.mcp_server import KnowledgeMcpServer
from server.mcp_tools import TOOLS

GOLDEN = Path(__file__).parent / "golden" / "mcp_tools.json"
NAMES = [tool.name for tool in DECLARED]
DUMMY = TOOLS[0]._replace(name="knowledge_dummy")


@pytest.fixture
def calls(tmp_path: Path) -> ToolCalls:
    root = RootSettings(tmp_path / "docs", name="docs", description="Recipes")
    settings = Settings("b", tmp_path / "home", config_path=None, configured=False, description="Baking", roots=(root,))
    return ToolCalls(Loaded(Located("store", None, settings.home), settings))


async def test_the_tools_are_the_golden_ones(calls: ToolCalls) -> None:
    """S0-79, S1-58."""
    tools = await KnowledgeMcpServer(calls, NAMES).list_tools()
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == listed


def test_the_table_and_the_declarations_agree() -> None:
    """A tool that is declared can be served, and the other way round, in one order."""
    assert [tool.name for tool in TOOLS] == NAMES


async def test_a_tool_of_the_table_is_not_served_unless_it_is_named(calls: ToolCalls) -> None:
    """S0-80, with a dummy tool."""
    server = KnowledgeMcpServer(calls, NAMES, tools=(*TOOLS, DUMMY))
    assert [tool.name for tool in await server.list_tools()] == NAMES
    named = KnowledgeMcpServer(calls, [DUMMY.name], tools=(*TOOLS, DUMMY))
    assert [tool.name for tool in await named.list_tools()] == [DUMMY.name]
    assert (await server.call_tool(DUMMY.name, {"query": "x"})).structured_content["error"]["code"] == "not_found"


async def test_a_short_list_hides_and_forbids_nothing(calls: ToolCalls) -> None:
    """S4-17, S4-18: what the profile leaves out is called all the same; what is not exposed is in neither."""
    short = KnowledgeMcpServer(calls, [*NAMES, DUMMY.name], profile="agent", tools=(*TOOLS, DUMMY))
    assert [tool.name for tool in await short.list_tools()] == NAMES
    called = await short.call_tool(DUMMY.name, {"query": "x"})
    assert called.structured_content is not None and called.structured_content["status"] == "index_not_built"
    full = KnowledgeMcpServer(calls, [*NAMES, DUMMY.name], profile="full", tools=(*TOOLS, DUMMY))
    assert [tool.name for tool in await full.list_tools()] == [*NAMES, DUMMY.name]


async def test_a_tool_that_is_not_classified_is_told_as_one_that_writes(calls: ToolCalls) -> None:
    """S4-28, S4-73."""
    listed = await KnowledgeMcpServer(calls, [*NAMES, DUMMY.name], tools=(*TOOLS, DUMMY)).list_tools()
    hints = {tool.name: tool.annotations.read_only_hint for tool in listed if tool.annotations is not None}
    assert hints == {**dict.fromkeys(NAMES, True), DUMMY.name: False}


def test_instructions_are_short_and_the_same_for_every_base(calls: ToolCalls) -> None:
    """S4-21: under 100 tokens (of four characters each), and nothing in them that may change."""
    instructions = KnowledgeMcpServer(calls, NAMES).protocol.instructions or ""
    assert len(instructions) < 400
    assert "Baking" not in instructions and "docs" not in instructions
    assert not re.search(r"[0-9]", instructions)


def test_what_is_imported_late_is_there_when_it_is_asked_for() -> None:
    """The SDK's packages come without their lists of everything, and are whole for whoever wants more of them."""
    code = (
        "import sys, server.mcp_sdk as sdk; late = 'mcp.client' in sys.modules;"
        "from mcp import Client; from mcp.server import MCPServer, Server; import mcp;"
        "print(late, Server is sdk.Server, mcp.types.Tool is sdk.Tool, MCPServer.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True True MCPServer\n"


def test_only_this_verb_pays_for_the_import() -> None:
    """The SDK costs a second: nothing else imports it, nor `mcp config`."""
    modules = "cli.main, cli.mcp_verb, cli.verbs, cli.quick_pages, app.mcp_clients, app.search_context"
    code = f"import sys, {modules}; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
