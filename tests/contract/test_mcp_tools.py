"""The tools of MCP, letter by letter: a change here is one that agents see. And who may import their server."""

import json
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
    dummy = TOOLS[0]._replace(name="knowledge_dummy")
    server = KnowledgeMcpServer(calls, NAMES, tools=(*TOOLS, dummy))
    assert [tool.name for tool in await server.list_tools()] == NAMES
    named = KnowledgeMcpServer(calls, ["knowledge_dummy"], tools=(*TOOLS, dummy))
    assert [tool.name for tool in await named.list_tools()] == ["knowledge_dummy"]


def test_only_this_verb_pays_for_the_import() -> None:
    """The SDK costs a second: nothing else imports it, nor `mcp config`."""
    modules = "cli.main, cli.mcp_verb, cli.verbs, cli.quick_pages, app.mcp_clients, app.search_context"
    code = f"import sys, {modules}; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
