"""`knowledge_enumerate` over standard input and output: the complete set, page by page, and every status."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.enumerating import document_budget
from tests.support.command_line import CommandLine, write_files
from tests.support.mcp_clients import ask, connected, object_of, refused, text_of

COUNT = 25
MAX_PAGES = 50
TOKENS = 800  # 8 documents an answer


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    command = CommandLine(tmp_path_factory.mktemp("many"))
    texts: dict[str, str | bytes] = {
        f"docs/{number:02}.md": f"# Sheet {number}\n\nThe walnut table.\n\n## Legs\n\nOf {wood}.\n"
        for number in range(COUNT)
        for wood in ["oak" if number % 5 else "pine"]
    }
    write_files(command.cwd, texts)
    block = {"paths": ["docs"], "max_injected_tokens": TOKENS, "mcp": {"tools": ["knowledge_enumerate"]}}
    (command.cwd / "knowledge.yaml").write_text(json.dumps({"knowledge": block}), encoding="utf-8")
    assert command("index").status == 0
    return command


async def test_the_complete_set_comes_page_by_page(many: CommandLine) -> None:
    """S0-42, S0-49, S0-78: the total is that of all, each document comes once, and a page has its share of the room."""
    arguments: dict[str, Any] = {"query": "walnut oak", "sort": "path"}
    seen: list[str] = []
    async with connected(many, tools=None) as client:
        for _ in range(MAX_PAGES):
            result = await client.call_tool("knowledge_enumerate", arguments)
            page = object_of(result)
            assert (page["status"], page["matched"], page["indexed_documents"]) == ("ok", 20, COUNT)
            assert page["returned"] == len(page["documents"]) <= document_budget(TOKENS) == 8
            assert page["truncated"] is (page["next_cursor"] is not None)
            seen += [document["path"] for document in page["documents"]]
            assert f"matched: 20 of {COUNT} documents; {page['returned']} here" in text_of(result)
            assert all(document["citation"] in text_of(result) for document in page["documents"])
            if page["next_cursor"] is None:
                break
            assert page["next_cursor"] in text_of(result)
            arguments["cursor"] = page["next_cursor"]
        assert (
            "other arguments" in (await refused(client, "knowledge_enumerate", arguments | {"query": "oak"}))["message"]
        )
    assert seen == [f"docs/{number:02}.md" for number in range(COUNT) if number % 5]


async def test_it_is_the_object_of_match(many: CommandLine) -> None:
    """One answer, three surfaces: all of `match --json`, in a frame; what comes from documents is inside."""
    printed = many("match", "--json", "--limit", "8", "walnut", "-oak").value
    async with connected(many, tools=None) as client:
        value = await ask(client, "knowledge_enumerate", query="walnut -oak")
    assert value["untrusted"] is True
    keys = list(value)
    assert keys[keys.index("begin") + 1 : keys.index("end")] == ["terms", "documents"]
    for changing in ("note", "index"):
        del printed[changing]
    assert {key: value[key] for key in printed} == printed
    assert value["tier"] == "tier: lexical (FTS5) - the complete set, never ranked"


async def test_every_status_has_its_own_words(many: CommandLine, tmp_path: Path) -> None:
    """S0-51, S0-45, S0-46, S0-53: absent, never together, nothing to look for, not built; operators are refused."""
    async with connected(many, tools=None) as client:
        nowhere = await ask(client, "knowledge_enumerate", query="walnut zyzzyva")
        assert (nowhere["matched"], nowhere["no_match_cause"]) == (0, "nowhere")
        assert "zyzzyva is nowhere" in nowhere["note"]
        apart = await ask(client, "knowledge_enumerate", query="oak pine")
        assert (apart["matched"], apart["no_match_cause"]) == (0, "never_together")
        assert (await ask(client, "knowledge_enumerate", query="a"))["status"] == "query_empty"
        for query, named in (("walnut OR oak", "OR"), ("wal*", "*"), ('"walnut', "quote"), ("-oak", "not wanted")):
            assert named in (await refused(client, "knowledge_enumerate", {"query": query}))["message"]
        for arguments in (
            {"query": "oak", "limit": 3},
            {"query": "oak", "min_matches": 0},
            {"query": "oak", "sort": "x"},
        ):
            assert (await refused(client, "knowledge_enumerate", arguments))["code"] == "usage"
    async with connected(CommandLine(tmp_path), tools="knowledge_enumerate") as client:
        result = await client.call_tool("knowledge_enumerate", {"query": "oak"})
    assert object_of(result)["status"] == "index_not_built" and not result.is_error
    assert object_of(result)["matched"] is None and "knowledge index" in text_of(result)


async def test_listing_it_alone_says_what_is_lost(many: CommandLine) -> None:
    """S0-81."""
    async with connected(many, tools=None) as client:
        assert len((await client.list_tools()).tools) == 1
    assert "knowledge_enumerate is exposed without knowledge_search" in (many.cwd / "mcp.log").read_text(
        encoding="utf-8"
    )
