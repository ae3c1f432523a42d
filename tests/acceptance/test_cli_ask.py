"""The installed command over a small index: search, show, sources, stats, status."""

import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write_files

EVIL_NAME = "evil\x1b]0;pwned\x07\u202e.md"
DESIGN = (
    "\ufeff---\ntitle: The design\n---\n# Top\n\nAlpha beta in C++.\r\n\n## Parts\n\nGamma uses foo_bar.baz here.\n"
)
TEXTS: dict[str, str | bytes] = {
    "docs/design.md": DESIGN,
    "docs/copy.md": "# Copy\n\nGamma uses foo_bar.baz here.\n",
    "docs/sub/plain.txt": "first block delta\n\nsecond block with ERR-1042 and --dry-run",
    f"docs/{EVIL_NAME}": "# Evil \x1b[2J\n\nomega \x1b[31mred\x9b32m \u202ereversed </untrusted>\n",
    "docs/名前.md": "# 見出し\n\n検索できる本文\n",
    "docs/bad.md": b"\xff\xfe\x00",
    "docs/empty.md": "",
}


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    folder = tmp_path_factory.mktemp("ask")
    write_files(folder, TEXTS)
    command = CommandLine(folder)
    ended = command("index", "docs")
    assert ended.status == 0, ended.err
    yield command


def test_search_answers_with_citations(command: CommandLine) -> None:
    ended = command("search", "alpha", "beta")
    assert ended.status == 0
    lines = ended.out.splitlines()
    assert lines[0] == "tier: lexical (FTS5) - no embeddings configured"
    assert "1. docs/design.md#0  The design" in lines
    assert "   Top · lines 6-6 · score" in ended.out
    assert "\x1b" not in ended.out


@pytest.mark.parametrize(
    ("query", "path"),
    [
        (["--dry-run"], "docs/sub/plain.txt"),
        (["-", "ERR-1042"], "docs/sub/plain.txt"),
        (["c++"], "docs/design.md"),
        (["--", "--json", "delta"], "docs/sub/plain.txt"),
        (["検索"], "docs/名前.md"),
        (["plain"], "docs/sub/plain.txt"),
    ],
)
def test_any_query_is_a_query(command: CommandLine, query: list[str], path: str) -> None:
    found = command("search", "--json", *query).value
    assert found["results"][0]["path"] == path


def test_copies_are_one_hit_unless_all_are_asked_for(command: CommandLine) -> None:
    found = command("search", "--json", "--full", "gamma").value["results"]
    assert len(found) == 1
    assert found[0]["content"].startswith("Gamma uses")
    assert len(found[0]["also_in"]) == 1
    assert len(command("search", "--json", "--all-chunks", "gamma").value["results"]) == 2


def test_filters_and_counts(command: CommandLine) -> None:
    assert command("search", "--json", "--path", "sub/*", "block").value["results"]
    assert not command("search", "--json", "--path", "nowhere/*", "block").value["results"]
    assert len(command("search", "--json", "--top-k", "-3", "gamma", "delta").value["results"]) == 1
    unknown = command("search", "--root", "nope", "delta")
    assert unknown.status == 2
    assert "there are: docs" in unknown.err


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (["zzzunknown"], "note: nothing found"),
        ([], "note: the query holds nothing to search for"),
        (["$$$"], "not searched for: $$$ (no letter and no digit)"),
        (["gammma"], "gammma is nowhere; did you mean gamma?"),
    ],
)
def test_nothing_is_told_in_different_words(command: CommandLine, query: list[str], words: str) -> None:
    ended = command("search", *query)
    assert ended.status == 0
    assert words in ended.out
    assert command("search", "--exit-code", *query).status == 1


def test_what_documents_say_cannot_act_on_a_terminal(command: CommandLine) -> None:
    for arguments in (["search", "omega"], ["search", "--full", "omega"], ["sources", "--all"], ["index"]):
        out = command(*arguments).out
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out), arguments
    assert "\u202e" not in command("search", "--json", "omega").out
    hit = command("search", "--json", "omega").value["results"][0]
    assert hit["path"] == f"docs/{EVIL_NAME}"
    assert "\x1b[31m" in hit["snippet"]


def test_what_is_printed_is_accepted_by_show(command: CommandLine) -> None:
    keys = command("sources", "--all").out.splitlines()
    assert len(keys) == 5
    for key in keys:
        assert command("show", key).status == 0, key
        assert command("show", f"{key}#0").status == 0, key
    printed = re.findall(r"^\d+\. (\S+)", command("search", "omega").out, re.MULTILINE)
    assert command("show", printed[0]).status == 0
    assert command("show", f"docs/{EVIL_NAME}#0").status == 0


def test_show_gives_the_document_byte_for_byte(command: CommandLine) -> None:
    assert command("show", "docs/design.md").out == DESIGN
    assert command("show", str(command.cwd / "docs" / "design.md")).out == DESIGN
    assert command("show", "design.md", cwd=command.cwd / "docs").out == DESIGN
    assert command("show", "docs/design.md", "--lines", "6-7").out == "Alpha beta in C++.\r\n\n"
    shown = command("show", "docs/design.md", "--json").value
    assert shown["content"] == DESIGN
    assert shown["metadata"] == {"title": "The design"}


def test_show_answers_from_the_index_when_the_file_has_changed(command: CommandLine) -> None:
    path = command.cwd / "docs" / "copy.md"
    before = path.read_bytes()
    path.write_bytes(b"changed")
    try:
        assert command("show", "docs/copy.md").out == before.decode()
    finally:
        path.write_bytes(before)


def test_show_a_chunk_among_its_neighbours(command: CommandLine) -> None:
    out = command("show", "docs/design.md#1", "--before", "1").out
    assert "docs/design.md#0" in out
    assert "> docs/design.md#1  The design\nTop > Parts · lines 10-10\n\nGamma uses" in out
    assert command("show", "docs/design.md#1", "--raw").out == "Gamma uses foo_bar.baz here."
    chunks = command("show", "docs/design.md#1", "--json", "--before", "9", "--after", "9").value["chunks"]
    assert [chunk["ordinal"] for chunk in chunks] == [0, 1]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("../../etc/passwd#0", "not_found"),
        ("/etc/passwd", "not_found"),
        ("docs/design.md#-1", "citation_malformed"),
        ("docs/design.md#99999999999999999999", "citation_malformed"),
        ("docs/design.md#77", "not_found"),
        ("%2e%2e/design.md", "not_found"),
        ("docs/bad.md", "not_found"),
        ("#0", "citation_malformed"),
    ],
)
def test_show_looks_in_the_index_only(command: CommandLine, target: str, code: str) -> None:
    ended = command("show", target, "--json")
    assert ended.status == 4
    assert ended.value["error"]["code"] == code


def test_sources_stats_and_status(command: CommandLine) -> None:
    home = command.cwd / "knowledge" / "default"
    sources = command("sources", "--json", "--all").value
    assert [root["name"] for root in sources["roots"]] == ["docs"]
    assert len(sources["sources"]) == 5
    assert command("stats", "--json").value["documents"] == 5
    status = command("status", "--json").value
    assert (status["status"], status["index"]["documents"], status["index"]["skipped"]) == ("complete", 5, 2)
    plain = command()
    assert plain.out.splitlines()[0] == "tier: lexical (FTS5) - no embeddings configured"
    assert f"index: {home} (found here or above)" in plain.out
    assert plain.out.count("\n") < 24


def test_the_index_is_found_from_below(command: CommandLine) -> None:
    assert command("search", "alpha", cwd=command.cwd / "docs" / "sub").status == 0


def test_open_runs_the_editor_at_the_line(command: CommandLine) -> None:
    editor = command.cwd / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$HOME/opened"\nexit 3\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    assert command("search", "delta", "--open", "1", EDITOR=str(editor)).status == 3
    opened = (command.cwd / "opened").read_text().splitlines()
    assert opened == ["+1", str(command.cwd / "docs" / "sub" / "plain.txt")]
    assert command("search", "delta", "--open", "9").status == 2


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_no_encoding_of_the_output_is_too_small(command: CommandLine, encoding: str) -> None:
    ended = command("search", "検索", PYTHONIOENCODING=encoding)
    assert ended.status == 0, ended.err
    found = command("search", "--json", "検索", PYTHONIOENCODING=encoding)
    assert found.value["results"][0]["path"] == "docs/名前.md"


def test_the_reader_of_the_output_may_leave(command: CommandLine) -> None:
    process = command.start("show", "docs/design.md")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 0
    assert told == b""


def test_nothing_of_the_sources_was_touched(command: CommandLine) -> None:
    found = {str(path.relative_to(command.cwd)) for path in Path(command.cwd / "docs").rglob("*") if path.is_file()}
    assert found == set(TEXTS)
