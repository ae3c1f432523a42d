"""Errors over HTTP name places of the machine to operators only (T28): a reader is not told where anything lies."""

from pathlib import Path

import msgspec
import pytest

from domain.settings import McpSettings
from tests.support.bases import build_base, layout_of
from tests.support.http_access import OPERATE, READ, asked, bearer, with_tokens

ASKED = ("/v1/search?q=queen", "/v1/stats", "/v1/documents", "/v1/match?q=queen", "/v1/sources", "/v1/words")


@pytest.mark.parametrize("path", ASKED)
def test_a_broken_index_is_told_without_its_place(tmp_path: Path, path: str) -> None:
    settings = build_base(tmp_path)
    layout_of(settings).database.write_bytes(b"no database any more" * 500)
    with asked(settings, with_tokens(tmp_path)) as client:
        reader, operator = (client.get(path, headers=bearer(token)) for token in (READ, OPERATE))
    assert reader.status_code == operator.status_code >= 400
    assert reader.json()["code"] == operator.json()["code"]
    assert str(tmp_path) not in reader.text
    assert str(settings.home) in operator.json()["detail"]
    assert "...knowledge.db" in reader.json()["detail"].replace("/", "")


def test_tools_over_http_are_told_without_it_too(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(build_base(tmp_path), mcp=McpSettings(tools=("knowledge_search",)))
    layout_of(settings).database.write_bytes(b"no database any more" * 500)
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "knowledge_search", "arguments": {"query": "queen"}},
    }
    headers = bearer(READ) | {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    with asked(settings, with_tokens(tmp_path)) as client:
        answer = client.post("/mcp", json=call, headers=headers)
    assert answer.status_code == 200
    assert "knowledge.db" in answer.text
    assert str(tmp_path) not in answer.text
