"""The protocol's JavaScript SDK as a client, where it is: MCP_NODE_FOLDER names the folder of its node_modules."""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.mcp_exposure import DECLARED
from domain.settings import McpSettings, Settings
from tests.support.bases import build_base
from tests.support.command_line import COMMAND
from tests.support.mcp_http import serving

CLIENT = Path(__file__).parent.parent / "support" / "mcp_node_client.cjs"
FOLDER = os.environ.get("MCP_NODE_FOLDER", "")
NODE = shutil.which("node") or ""
NAMES = tuple(tool.name for tool in DECLARED)
pytestmark = [
    pytest.mark.skipif(not NODE, reason="there is no node"),
    pytest.mark.skipif(
        not (Path(FOLDER) / "node_modules" / "@modelcontextprotocol" / "sdk").is_dir(),
        reason="MCP_NODE_FOLDER names no folder with the JavaScript SDK",
    ),
]


@pytest.fixture
def base(tmp_path: Path) -> Settings:
    texts = {"bread.md": "# Bread\n\nThe loaf is done when it sounds hollow.\n"}
    return msgspec.structs.replace(build_base(tmp_path, texts), mcp=McpSettings(NAMES))


async def seen_by_node(base: Settings, *target: str) -> dict[str, Any]:
    environment = {**os.environ, "KNOWLEDGE_DIRECTORY": str(base.home)}
    client = await asyncio.create_subprocess_exec(
        NODE, str(CLIENT), FOLDER, *target, stdout=-1, stderr=-1, env=environment
    )
    try:
        out, err = await asyncio.wait_for(client.communicate(), 60)
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()
    assert client.returncode == 0, err.decode()
    value = json.loads(out)
    assert isinstance(value, dict)
    return value


def check(seen: dict[str, Any]) -> None:
    assert (seen["server"], seen["troubles"]) == ("knowledge", [])
    assert seen["tools"] == list(NAMES)
    assert seen["templates"] == ["knowledge://{root}/{+path}{#number}"]
    assert [row["citation"] for row in seen["search"]["results"]] == ["docs/bread.md#0"]
    assert seen["refused"]["isError"] is True
    assert "sounds hollow" in seen["resource"]
    assert seen["unknown"] == -32602
    assert seen["together"] == ["ok"] * 10


async def test_over_standard_input(base: Settings) -> None:
    check(await seen_by_node(base, *COMMAND, "mcp", "--tools", ",".join(NAMES)))


async def test_over_http(base: Settings) -> None:
    async with serving(base) as url:
        check(await seen_by_node(base, "--http", url))
