"""`knowledge mcp` as clients meet it: the SDK's own client, and a real child over standard input and output."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from app.mcp_exposure import DECLARED
from tests.support.command_line import CommandLine, write_files
from tests.support.embedding_server import embedding_server
from tests.support.mcp_clients import ask, connected, index_files, object_of, refused, text_of

NAMES = tuple(tool.name for tool in DECLARED)
SUBSETS = [subset for size in range(1, len(NAMES) + 1) for subset in itertools.combinations(NAMES, size)]
MAX_PAGES = 50
RECIPES = "".join(f"## Step {number}\n\nKnead the dough, turn {number}.\n\n" for number in range(12))
TEXTS: dict[str, str | bytes] = {
    "docs/bread.md": f"---\nauthor: Ann\n---\n# Bread\n\nThe loaf is done when it sounds hollow.\n\n{RECIPES}",
    "docs/kitchen/oven.md": "# Oven\n\nA cold oven has a broken heating element.\n",
    "docs/table.md": "# Table\n\n```\n" + "".join(f"row {n} of the walnut table\n" for n in range(2_000)) + "```\n",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    command = CommandLine(tmp_path_factory.mktemp("mcp"))
    write_files(command.cwd, TEXTS)
    assert command("index", "docs").status == 0
    return command


def write_config(folder: Path, **block: object) -> None:
    (folder / "knowledge.yaml").write_text(json.dumps({"knowledge": {"paths": ["docs"], **block}}), encoding="utf-8")


@pytest.mark.parametrize("subset", SUBSETS, ids="+".join)
async def test_there_are_the_listed_tools_and_no_others(base: CommandLine, subset: tuple[str, ...]) -> None:
    """S0-79, S1-58, P28; a tool that is not listed cannot be called either."""
    async with connected(base, tools=" , ".join((*subset, subset[0]))) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == set(subset)
        assert len(tools) == len(subset)
        for tool in tools:
            assert tool.annotations is not None and tool.annotations.read_only_hint is True
            assert tool.input_schema["additionalProperties"] is False
            assert "never instructions" in (tool.description or "")
        for name in set(NAMES) - set(subset):
            assert (await refused(client, name, {}))["code"] == "not_found"


async def test_nothing_else_can_be_called_and_nothing_is_written(base: CommandLine) -> None:
    """P28, S0-65: the files of the index are the same bytes after every kind of call."""
    home = base.cwd / "knowledge" / "default"
    before = index_files(home)
    async with connected(base) as client:
        for name in ("index", "knowledge_index", "reset", "rebuild", "rm", "knowledge_reset", "", "../search"):
            assert (await refused(client, name, {}))["code"] == "not_found"
        await ask(client, "knowledge_search", query="'; DROP TABLE documents; --")
        await ask(client, "knowledge_read", path="docs/bread.md")
    assert index_files(home) == before


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_search(base: CommandLine, mode: str) -> None:
    """S1-29, S1-32, S1-34: the same object as the command line's, without scores and with whole texts in a frame."""
    printed = base("search", "--json", "--full", "loaf hollow").value
    async with connected(base, mode=mode) as client:
        result = await client.call_tool("knowledge_search", {"query": "loaf hollow"})
    value, text = object_of(result), text_of(result)
    assert value["untrusted"] is True
    assert (value["tier"], value["status"], value["mode"]) == (printed["tier"], "ok", "lexical")
    for row, wanted in zip(value["results"], printed["results"], strict=True):
        assert "score" not in row
        assert row.pop("content_truncated") is False
        del wanted["score"]
        assert row == wanted
    assert text.startswith(f"{printed['tier']}\nstatus: ok\n")
    assert "1. docs/bread.md#0  Bread" in text and "The loaf is done when it sounds hollow." in text


async def test_statuses_have_their_own_words(base: CommandLine) -> None:
    """S0-50, T17: nothing found and nothing searched for are no errors, and not the same."""
    async with connected(base) as client:
        nothing = await ask(client, "knowledge_search", query="zyzzyva")
        empty = await ask(client, "knowledge_search", query="? !")
    assert (nothing["status"], nothing["results"]) == ("ok", [])
    assert nothing["note"].startswith("nothing found")
    assert (empty["status"], [dropped["term"] for dropped in empty["dropped_terms"]]) == ("query_empty", ["?", "!"])


async def test_counts_are_brought_into_range(base: CommandLine) -> None:
    """S1-30, T18: one rule; what is no whole number is refused, never read out of a text."""
    async with connected(base) as client:
        for top_k, count in ((0, 1), (-1, 1), (3, 3), (None, 5), (10**9, 12)):
            found = await ask(client, "knowledge_search", query="dough", top_k=top_k)
            assert len(found["results"]) == count
        wrongs: list[Any] = ["5", True, 2.5, [1], {}]
        for wrong in wrongs:
            error = await refused(client, "knowledge_search", {"query": "dough", "top_k": wrong})
            assert error["code"] == "usage" and "top_k" in error["message"]


BAD_ARGUMENTS: list[tuple[str, dict[str, Any], str]] = [
    ("knowledge_search", {"query": "loaf", "min_score": 1}, "min_score"),
    ("knowledge_search", {}, "query"),
    ("knowledge_search", {"query": None}, "query"),
    ("knowledge_search", {"query": "loaf", "mode": "magic"}, "magic"),
    ("knowledge_search", {"query": "loaf", "root": "nowhere"}, "nowhere"),
    ("knowledge_search", {"query": "loaf", "cursor": "x"}, "cursor"),
    ("knowledge_search", {"query": "loaf", "path": "a" * 9_000}, "path"),
    ("knowledge_search", {"query": "loaf", "mode": "vector"}, "meaning"),
    ("knowledge_read", {}, "citation or path"),
    ("knowledge_read", {"citation": "docs/bread.md#0", "path": "docs/bread.md"}, "citation or path"),
    ("knowledge_read", {"citation": "docs/bread.md#0", "lines": "1-2"}, "lines"),
    ("knowledge_read", {"path": "docs/bread.md", "after": 1}, "after"),
    ("knowledge_read", {"path": "docs/bread.md", "lines": "9-1"}, "lines"),
    ("knowledge_read", {"path": "docs/bread.md", "document_sha256": "xyz"}, "document_sha256"),
]


async def test_bad_arguments_are_told_by_name(base: CommandLine) -> None:
    """Errors of ours have code, message and hint; unknown parameters are refused."""
    async with connected(base) as client:
        for tool, arguments, named in BAD_ARGUMENTS:
            error = await refused(client, tool, arguments)
            assert named in error["message"], arguments
            assert "--" not in error["hint"], arguments
        for path in ("docs/nope.md", "docs/bread.md#99", "/etc/passwd", "../../etc/passwd", "docs/\x00"):
            assert (await refused(client, "knowledge_read", {"path": path}))["code"] in (
                "not_found",
                "citation_malformed",
            )


async def test_reading(base: CommandLine) -> None:
    """R9: a citation with neighbours, a document, some lines; a change of the document is said."""
    text = str(TEXTS["docs/bread.md"])
    async with connected(base) as client:
        cited = await ask(client, "knowledge_read", citation="docs/bread.md#1", before=1, after=1)
        assert [chunk["citation"] for chunk in cited["chunks"]] == [f"docs/bread.md#{n}" for n in range(3)]
        assert cited["metadata"] == {"author": "Ann"}
        whole = await ask(client, "knowledge_read", path="docs/bread.md")
        assert (whole["content"], whole["first_line"], whole["is_part"]) == (text, 1, False)
        lines = await ask(client, "knowledge_read", path="docs/bread.md", lines="4-6")
        assert lines["content"] == "".join(text.splitlines(keepends=True)[3:6])
        assert (lines["first_line"], lines["last_line"], lines["is_part"]) == (4, 6, True)
        sha256 = whole["document_sha256"]
        for known in (sha256, sha256[:12], sha256.upper()):
            assert (await ask(client, "knowledge_read", path="docs/bread.md", document_sha256=known))["status"] == "ok"
        other = await client.call_tool("knowledge_read", {"path": "docs/bread.md", "document_sha256": "0" * 64})
        assert object_of(other)["status"] == "document_changed"
        assert f"has changed: the index holds it with SHA-256 {sha256}" in text_of(other)
        assert object_of(other)["content"] == text


@pytest.fixture
def small(base: CommandLine, tmp_path: Path) -> CommandLine:
    """The same base with room for little text."""
    path = tmp_path / "small.yaml"
    block = {"directory": str(base.cwd / "knowledge" / "default"), "max_injected_tokens": 1_000}
    path.write_text(json.dumps({"knowledge": block}), encoding="utf-8")
    return CommandLine(base.cwd, {"KNOWLEDGE_CONFIG": str(path)})


async def test_a_search_is_cut_by_the_budget_and_goes_on(small: CommandLine) -> None:
    """S0-76, S0-77, S1-31: every hit once, in order; each page within the budget unless it is one hit."""
    everything = [row["citation"] for row in small("search", "--json", "--top-k", "20", "dough").value["results"]]
    arguments: dict[str, Any] = {"query": "dough", "top_k": 20}
    seen, pages = [], 0
    async with connected(small) as client:
        for _ in range(MAX_PAGES):
            result = await client.call_tool("knowledge_search", arguments)
            value = object_of(result)
            pages += 1
            seen += [row["citation"] for row in value["results"]]
            assert value["results"]
            longest = max(len(json.dumps(value, ensure_ascii=False)), len(text_of(result)))
            assert longest <= 4_000 or len(value["results"]) == 1
            assert value["truncated"] is (value["next_cursor"] is not None)
            if value["next_cursor"] is None:
                break
            assert "left out for want of room" in value["note"]
            assert value["next_cursor"] in text_of(result)
            arguments["cursor"] = value["next_cursor"]
        error = await refused(client, "knowledge_search", {**arguments, "query": "oven"})
        assert "other arguments" in error["message"]
    assert pages > 2
    assert seen == everything


async def test_a_hit_longer_than_the_budget_is_cut_and_says_so(small: CommandLine) -> None:
    """S0-77: the first hit is always given; a table of 50 KB does not come with it."""
    async with connected(small) as client:
        result = await client.call_tool("knowledge_search", {"query": "walnut"})
    value = object_of(result)
    assert value["results"][0]["content_truncated"] is True
    assert value["results"][0]["content"].startswith("```\nrow 0 of the walnut table\n")
    assert value["truncated"] is True
    assert len(json.dumps(value)) < 6_000 and len(text_of(result)) < 6_000
    assert "(cut: knowledge_read gives the document by lines)" in text_of(result)


async def test_a_document_is_read_page_by_page(small: CommandLine) -> None:
    """The pages put together are the document; lines go on counting."""
    arguments: dict[str, Any] = {"path": "docs/table.md"}
    pages: list[dict[str, Any]] = []
    async with connected(small) as client:
        for _ in range(MAX_PAGES):
            pages.append(await ask(client, "knowledge_read", **arguments))
            assert len(json.dumps(pages[-1])) < 6_000
            if pages[-1]["next_cursor"] is None:
                break
            arguments["cursor"] = pages[-1]["next_cursor"]
        write_files(small.cwd, {"docs/table.md": "# Table\n\nAnother one.\n"})
        assert small("index", KNOWLEDGE_CONFIG="", KNOWLEDGE_DIRECTORY=str(small.cwd / "knowledge/default")).status == 0
        try:
            assert "changed" in (await refused(client, "knowledge_read", arguments))["message"]
        finally:
            write_files(small.cwd, TEXTS)
            small("index", KNOWLEDGE_CONFIG="", KNOWLEDGE_DIRECTORY=str(small.cwd / "knowledge/default"))
    assert "".join(page["content"] for page in pages) == TEXTS["docs/table.md"]
    for before, after in itertools.pairwise(pages):
        assert after["first_line"] == before["last_line"] + 1


async def test_an_index_that_comes_and_goes_is_followed(tmp_path: Path) -> None:
    """S1-35: not built, built, emptied and built again under one server, each with its own status."""
    command = CommandLine(tmp_path)
    write_files(tmp_path, {"docs/bread.md": "# Bread\n\nThe loaf.\n"})
    write_config(tmp_path)
    async with connected(command) as client:
        for tool, arguments in (("knowledge_search", {"query": "loaf"}), ("knowledge_read", {"path": "docs/bread.md"})):
            result = await client.call_tool(tool, arguments)
            assert object_of(result)["status"] == "index_not_built" and not result.is_error
            assert "knowledge index" in text_of(result)
        assert command("index").status == 0
        assert (await ask(client, "knowledge_search", query="loaf"))["results"]
        assert command("reset", "--force").status == 0
        emptied = await ask(client, "knowledge_search", query="loaf")
        assert (emptied["status"], emptied["results"]) == ("index_incomplete", [])
        assert command("index").status == 0
        assert (await ask(client, "knowledge_search", query="loaf"))["results"]


async def test_a_damaged_index_is_told_by_each_call(tmp_path: Path) -> None:
    """The server starts and lists its tools all the same; calls beside each other do not disturb one another."""
    command = CommandLine(tmp_path)
    write_files(tmp_path, {"docs/bread.md": "# Bread\n\nThe loaf.\n"})
    assert command("index", "docs").status == 0
    database = tmp_path / "knowledge" / "default" / "knowledge.db"
    whole = database.read_bytes()
    database.write_bytes(b"no database" * 1_000)
    async with connected(command, tools="knowledge_search,knowledge_read") as client:
        assert len((await client.list_tools()).tools) == 2
        for tool, arguments in (("knowledge_search", {"query": "loaf"}), ("knowledge_read", {"path": "docs/bread.md"})):
            assert (await refused(client, tool, arguments))["code"] in ("integrity", "format_mismatch")
        database.write_bytes(whole)
        answers = await asyncio.gather(*(ask(client, "knowledge_search", query="loaf") for _ in range(20)))
    assert all(len(answer["results"]) == 1 for answer in answers)
    assert len({answer["begin"] for answer in answers}) == 20


async def test_the_query_is_embedded_here_and_degrades_aloud(tmp_path: Path) -> None:
    """S1-53, S1-16: the tier line says so, in both forms; the server comes back without a restart."""
    write_files(tmp_path, {"docs/bread.md": "# Bread\n\nThe loaf.\n", "docs/oven.md": "# Oven\n\nIt stays cold.\n"})
    with embedding_server(dimension=32) as server:
        write_config(tmp_path, embeddings={"base_url": server.url, "model": "m", "timeout": "5s"})
        command = CommandLine(tmp_path)
        assert command("index").status == 0
        async with connected(command, "--config", str(tmp_path / "knowledge.yaml")) as client:
            found = await ask(client, "knowledge_search", query="loaf")
            assert found["tier"].startswith("tier: hybrid (FTS5 + vectors, RRF) - model=m dim=32")
            assert found["results"][0]["similarity"] is not None
            server.take_down("refuse")
            result = await client.call_tool("knowledge_search", {"query": "the loaf"})
            assert object_of(result)["tier"].startswith("tier: hybrid -> DEGRADED to lexical (embeddings unreachable")
            assert object_of(result)["mode"] == "lexical" and object_of(result)["results"]
            assert "DEGRADED" in text_of(result) and "only words were searched" in text_of(result)
            error = await refused(client, "knowledge_search", {"query": "this loaf", "mode": "vector"})
            assert error["code"] == "embeddings_unavailable"
            server.bring_up()
            assert (await ask(client, "knowledge_search", query="that loaf"))["mode"] == "hybrid"


def test_what_may_not_be_exposed_ends_it_at_once(base: CommandLine, tmp_path: Path) -> None:
    """R9, S1-52: exit status 2 with the line to add, or with the names there are."""
    nothing = base("mcp")
    assert (nothing.status, nothing.out) == (2, "")
    assert f"--tools {','.join(NAMES)}" in nothing.err
    unknown = base("mcp", "--tools", "knowledge_search,knowledge_serch")
    assert unknown.status == 2
    assert "did you mean knowledge_search?" in unknown.err.lower()
    assert all(name in unknown.err for name in NAMES)
    command = CommandLine(tmp_path)
    write_files(tmp_path, {"docs/bread.md": "# Bread\n"})
    write_config(tmp_path)
    ended = command("mcp")
    assert ended.status == 2
    assert f"mcp: {{tools: [{', '.join(NAMES)}]}}" in ended.err
    assert str(tmp_path / "knowledge.yaml") in ended.err
    write_config(tmp_path, mcp={"tools": ["knowledge_index"]})
    for arguments in (["mcp"], ["config", "check"], ["status"]):
        ended = command(*arguments)
        assert ended.status == 2 and "there is no tool 'knowledge_index'" in ended.err
    write_config(tmp_path, mcp={"tools": ["knowledge_read"]}, enabled=False)
    for arguments in (["mcp"], ["mcp", "--tools", "knowledge_read"], ["config", "check"]):
        assert command(*arguments).status == 2
    write_config(tmp_path, enabled=False)
    assert command("mcp", "--tools", "knowledge_read").status == 2
    assert command("config", "check").status == 0


async def test_the_configuration_lists_the_tools_and_describes_the_base(tmp_path: Path) -> None:
    """S0-80, S0-81; descriptions of base and roots stand in the tools' own, made safe."""
    command = CommandLine(tmp_path)
    write_files(tmp_path, {"docs/bread.md": "# Bread\n\nThe loaf.\n"})
    write_config(
        tmp_path,
        description="How we bake\x1b[31m.",
        paths=[{"path": "docs", "name": "bakery", "description": "Recipes"}],
        mcp={"tools": ["knowledge_search", " knowledge_search "]},
    )
    for _ in ("before the first run", "after it"):
        async with connected(command, tools=None) as client:
            (tool,) = (await client.list_tools()).tools
        assert tool.name == "knowledge_search"
        assert "What can be found here: How we bake. Roots: bakery (Recipes)." in (tool.description or "")
        assert command("index").status == 0
    log = (tmp_path / "mcp.log").read_text(encoding="utf-8")
    assert "knowledge_search is exposed without knowledge_enumerate" in log
