"""The installed command: `knowledge match` over a small index, an empty one and none (S0-42..S0-56)."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write_files

TEXTS: dict[str, str | bytes] = {
    "docs/apart.md": "# One\n\nkernel here\n\n# Two\n\ndriver there\n",
    "docs/kernel.md": "# Kernel\n\nonly kernels, kernels\n",
    "docs/draft.md": '# Draft\n\nkernel driver draft, a "memory map"\n',
    "docs/evil\x1b]0;x\x07\u202e.md": "# Evil\n\nomega\n",
}


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    folder = tmp_path_factory.mktemp("match")
    write_files(folder, TEXTS)
    command = CommandLine(folder)
    ended = command("index", "docs")
    assert ended.status == 0, ended.err
    yield command


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    folder = tmp_path_factory.mktemp("empty")
    write_files(folder, {"docs/skipped.png": b"\x00"})
    command = CommandLine(folder)
    assert command("index", "docs").status == 0
    yield command


def test_words_in_two_chunks_of_a_document_match(command: CommandLine) -> None:
    """S0-42, S0-43, S0-53."""
    ended = command("match", "kernel", "driver")
    assert ended.status == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0] == "tier: lexical (FTS5) - the complete set, never ranked"
    assert lines[1].startswith("note: every document that holds all terms")
    assert "asked: kernel AND driver" in lines
    assert "matched: 2 of 4 documents, most matches first" in lines
    assert any(line.startswith("docs/apart.md#0  One · 2 in text, 0 in headings of 2 chunks") for line in lines)


@pytest.mark.parametrize("name", ["match", "enumerate", "which"])
def test_the_verb_has_two_other_names(command: CommandLine, name: str) -> None:
    """S0-55."""
    assert command(name, "kernel", "-draft", "--paths-only").out == "docs/kernel.md\ndocs/apart.md\n"


@pytest.mark.parametrize(
    ("arguments", "out"),
    [
        (["kernel", "--paths-only", "--limit", "1"], "docs/kernel.md\n"),
        (["kernel", "--paths-only", "--sort", "path", "--all"], "docs/apart.md\ndocs/draft.md\ndocs/kernel.md\n"),
        (["heading:kernel", "--paths-only"], "docs/kernel.md\n"),
        (['"memory map"', "--paths-only"], "docs/draft.md\n"),
        (["kernel", "--min-matches", "2", "--paths-only"], "docs/kernel.md\n"),
        (["kernel", "--path", "a*.md", "--paths-only"], "docs/apart.md\n"),
        (["kernel", "--root", "docs", "--count"], "3\n"),
        (["zebra", "--count"], "0\n"),
        (["zebra", "--paths-only"], ""),
        (["omega", "--paths-only"], "docs/evil<U+001B>]0;x<U+0007><U+202E>.md\n"),
    ],
)
def test_only_what_was_asked_for_is_written(command: CommandLine, arguments: list[str], out: str) -> None:
    ended = command("match", *arguments)
    assert (ended.status, ended.out, ended.err) == (0, out, "")


def test_json_has_it_all(command: CommandLine) -> None:
    """S0-48, S0-49, S0-54."""
    value = command("match", "kernel", "x", "-zebra", "--limit", "1", "--json").value
    assert (value["status"], value["compiled"]) == ("ok", "kernel AND -zebra")
    assert (value["matched"], value["returned"], value["truncated"], value["indexed_documents"]) == (3, 1, True, 4)
    assert value["documents"] == [
        {
            "path": "docs/kernel.md", "citation": "docs/kernel.md#0", "ordinal": 0, "title": "Kernel",
            "body_matches": 1, "heading_matches": 1, "total_chunks": 1,
        }
    ]  # fmt: skip
    assert [term["not_queried"] for term in value["terms"]] == [None, "too_short", None]
    assert value["terms"][0] == {
        "term": "kernel", "field": None, "excluded": False, "not_queried": None, "reading": "words", "stem": "kernel",
        "documents": 3, "as_written": 3, "related_forms": [{"word": "kernels", "chunks": 1}], "only_in_names": 0,
    }  # fmt: skip
    counted = command("match", "kernel", "--count", "--json").value
    assert counted["matched"] == 3
    assert "documents" not in counted


def test_explain_tells_of_each_term(command: CommandLine) -> None:
    ended = command("match", "kernels", "-draft", "--explain")
    assert "  kernels: 3 documents in any form (stem kernel); 1 as written; other forms: kernel (3 chunks)" in ended.out
    assert "  -draft: 1 document in any form (stem draft); 1 as written" in ended.out
    assert "terms:" not in command("match", "kernels").out


def test_an_empty_answer_says_why_and_ends_with_0_unless_asked(command: CommandLine) -> None:
    """S0-55."""
    nowhere = command("match", "kernel", "zebra")
    assert (nowhere.status, "note: zebra is nowhere\n" in nowhere.out) == (0, True)
    never = command("match", "here", "draft", "--exit-code")
    assert (never.status, "no document holds all of them" in never.out) == (1, True)
    assert command("match", "kernel", "--exit-code").status == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("--all", "--limit=3"), ("--count", "--all"), ("--count", "--limit=3"), ("--count", "--sort=path"),
        ("--count", "--paths-only"), ("--count", "--explain"), ("--paths-only", "--explain"),
        ("--paths-only", "--json"),
    ],
)  # fmt: skip
def test_contradictions_are_errors(command: CommandLine, one: str, other: str) -> None:
    """S0-55."""
    ended = command("match", "kernel", one, other)
    assert ended.status == 2
    assert "contradict each other" in ended.out + ended.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["kernel", "or", "driver"], "OR is no operator here"),
        (["kern*"], "* in 'kern*'"),
        (["title:kernel"], "there is no field 'title'"),
        (["kernel", "--limt", "3"], "two minuses stand before 'limt'"),
        (["-kernel"], "only says what is not wanted"),
        (["kernel", "--sort", "size"], "--sort takes matches or path"),
        (["kernel", "--limit", "0"], "--limit takes a number from 1 up"),
        (["kernel", "--min-matches", "0"], "min-matches takes a number from 1 up"),
        (["kernel", "--root", "other"], "there is no root 'other'"),
        ([], "the query holds nothing to look for"),
        (["x"], "x (a single character)"),
    ],
)
def test_what_cannot_be_asked_ends_with_2(command: CommandLine, arguments: list[str], told: str) -> None:
    ended = command("match", *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert told in ended.err
    assert "hint: " in ended.err or "--sort" in arguments


def test_a_query_of_nothing_is_an_error_for_machines_as_well(command: CommandLine) -> None:
    """S0-51."""
    ended = command("match", "x", "--json")
    assert ended.status == 2
    assert (ended.value["status"], ended.value["error"]["code"]) == ("query_empty", "query_empty")


@pytest.mark.parametrize("machine", ["--count", "--paths-only"])
def test_machines_never_take_a_missing_index_for_an_empty_set(empty: CommandLine, tmp_path: Path, machine: str) -> None:
    """S0-56."""
    no_index = CommandLine(tmp_path)("match", "kernel", machine)
    assert (no_index.status, no_index.out) == (10, "")
    assert "there is no index" in no_index.err
    nothing = empty("match", "kernel", machine)
    assert (nothing.status, nothing.out) == (10, "")
    assert "the index holds no document" in nothing.err


def test_json_says_which_of_the_two_it_is(empty: CommandLine, tmp_path: Path) -> None:
    """S0-51, S0-56."""
    no_index, nothing = CommandLine(tmp_path)("match", "kernel", "--json"), empty("match", "kernel", "--json")
    assert (no_index.status, nothing.status) == (10, 10)
    assert (no_index.value["status"], no_index.value["error"]["code"]) == ("index_not_built", "index_not_built")
    assert (nothing.value["status"], nothing.value["error"]["code"]) == ("corpus_empty", "corpus_empty")
    assert set(no_index.value) == set(nothing.value)


def test_people_are_told_of_an_empty_index_without_an_error(empty: CommandLine) -> None:
    ended = empty("match", "kernel")
    assert (ended.status, "note: the index holds no document" in ended.out) == (0, True)
    assert empty("match", "kernel", "--exit-code").status == 1


def test_a_fresh_process_imports_nothing_that_a_set_does_not_need(command: CommandLine) -> None:
    program = (
        "import sys; from cli.main import run; run(['match', 'kernel', '--count']);"
        "sys.exit(' '.join({'numpy', 'httpx', 'arq', 'typer', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=command.cwd, env=command.environment({}), capture_output=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"3\n", b"\n")
