"""Every list of tools that an operator can write (P28): those tools are told and answer, and no other can be called."""

import hashlib
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from app.config_loaded import Loaded
from app.discovery import Located
from app.mcp_exposure import DECLARED
from domain.settings import Settings
from server.mcp_calls import ToolCalls
from server.mcp_server import KnowledgeMcpServer
from tests.support.bases import build_base
from tests.support.scratch import scratch_directory

NAMES = tuple(tool.name for tool in DECLARED)
LISTS = [names for count in range(len(NAMES) + 1) for names in combinations(NAMES, count)]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "knowledge_search": {"query": "fox"},
    "knowledge_enumerate": {"query": "fox"},
    "knowledge_read": {"path": "docs/a.md"},
}
NO_TOOLS = (
    "knowledge_index",
    "knowledge_reset",
    "knowledge_rm",
    "knowledge_rebuild",
    "index",
    "reset",
    "",
    "*",
    "../a",
)


@pytest.fixture(scope="module")
def base() -> Iterator[Settings]:
    with scratch_directory() as path:
        yield build_base(path)


def digests(home: Path) -> dict[str, str]:
    """Of the two databases; their logs are made and dropped by who reads."""
    return {name: hashlib.sha256((home / name).read_bytes()).hexdigest() for name in ("knowledge.db", "state.db")}


@pytest.mark.parametrize("names", LISTS, ids=lambda names: "+".join(names) or "none")
async def test_each_list_of_tools_gives_those_tools_and_no_other(base: Settings, names: tuple[str, ...]) -> None:
    """P28, R9: of all 2^n lists; also the empty one, with which a server does not start at all."""
    before = digests(base.home)
    server = KnowledgeMcpServer(ToolCalls(Loaded(Located("store", None, base.home), base)), names)
    assert tuple(tool.name for tool in await server.list_tools()) == names
    for name in (*NAMES, *NO_TOOLS):
        told = await server.call_tool(name, ARGUMENTS.get(name, {}))
        answer = told.structured_content
        assert answer is not None
        if name in names:
            assert (told.is_error, answer["status"]) == (False, "ok")
        else:
            assert told.is_error
            assert answer["error"]["code"] == "not_found"
    assert digests(base.home) == before


def test_a_list_for_every_combination_is_tried() -> None:
    """P28: whoever adds a tool adds its arguments here."""
    assert set(ARGUMENTS) == set(NAMES)
    assert len(LISTS) == 2 ** len(NAMES)
