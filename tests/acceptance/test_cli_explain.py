"""The installed command: words, explain, sources --coverage."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write_files

ANSI_NAME = "evil\x1b[31m\u202e.md"
TEXTS: dict[str, str | bytes] = {
    "docs/river.md": "# River\n\nThe river ran, and rivers run.\n",
    "docs/long.md": f"# Long\n\n{'supercalifragilistic' * 2} café 東京\n",
    "docs/greek.md": "# Greek\n\nalpha beta gamma delta epsilon zeta eta theta iota\n",
    "docs/bad.md": b"\xff\xfe",
    "docs/private/x.md": "secret",
    "docs/.knowledgeignore": "private/\n",
    f"docs/{ANSI_NAME}": "# Evil\n\nplain\n",
}


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    folder = tmp_path_factory.mktemp("explain")
    write_files(folder, TEXTS)
    command = CommandLine(folder)
    ended = command("index", "docs")
    assert ended.status == 0, ended.err
    yield command


def test_words_are_a_table(command: CommandLine) -> None:
    """S0-55: the facts row's four columns up to twenty rows, three above; long words are elided in it."""
    ended = command("words", "^(r|super)")
    assert ended.status == 0
    lines = ended.out.splitlines()
    assert lines[0] == "tier: lexical (FTS5) - no embeddings configured"
    assert lines[1].startswith("index: ")
    assert lines[4].split("  ")[0] == "word"
    assert lines[4].endswith("as written  any form")
    rows = {line.split()[0]: line.split()[1:] for line in lines[5:]}
    assert rows["rivers"] == ["river", "1", "1"]
    assert rows["supercalifragi…"] == ["supercalifragi…", "1", "1"]
    assert "any form" not in command("words", "--limit", "21").out
    assert command("words", "--limit", "20").out.count("\n") == 5 + 20


def test_words_for_machines(command: CommandLine) -> None:
    """S0-56"""
    assert command("words", "--words-only", "^r", "--sort", "word").out == "ran\nriver\nrivers\nrun\n"
    assert command("vocab", "supercali", "--words-only").out == f"{'supercalifragilistic' * 2}\n"
    assert command("terms", "--count", "^r").out == "4\n"
    value = command("words", "^RIVER", "--json", "--field", "heading").value
    assert value["words"] == [{"word": "river", "stem": "river", "chunks": 1, "chunks_any_form": 1}]
    assert (value["status"], value["matched"], value["field"]) == ("ok", 1, "heading")
    assert "words" not in command("words", "--json", "--count").value


def test_words_exit_code(command: CommandLine) -> None:
    """S0-55"""
    assert command("words", "zzz").status == 0
    assert "no word is like this" in command("words", "zzz").out
    assert command("words", "zzz", "--exit-code").status == 1
    for pattern, note in (("^rivér", "words stand in the index without accents: try ^river"), ("река", ""), ("ø", "")):
        assert command("words", pattern, "--words-only").err == (f"note: {note}\n" if note else "")
        assert command("words", pattern, "--json").value["note"] == (note or None)
    assert command("words", "river", "--exit-code").status == 0


@pytest.mark.parametrize("mode", [["--words-only"], ["--count"], []])
def test_words_of_no_index_are_an_error(tmp_path: Path, mode: list[str]) -> None:
    """S0-56: nothing on standard output could be taken for an empty vocabulary."""
    ended = CommandLine(tmp_path)("words", *mode)
    assert (ended.status, ended.out) == (10, "")
    assert "there is no index yet" in ended.err


def test_words_of_no_index_as_json(tmp_path: Path) -> None:
    ended = CommandLine(tmp_path)("words", "--json")
    assert ended.status == 10
    assert (ended.value["status"], ended.value["error"]["code"]) == ("index_not_built", "index_not_built")
    assert ended.value["matched"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--count", "--words-only"],
        ["--json", "--words-only"],
        ["--count", "--limit", "5"],
        ["--count", "--sort", "word"],
        ["--field", "title"],
        ["--sort", "size"],
        ["--limit", "0"],
        ["--min-docs", "5", "--max-docs", "2"],
        ["[a"],
        ["a", "b"],
    ],
)
def test_words_refuses_what_contradicts_itself(command: CommandLine, arguments: list[str]) -> None:
    ended = command("words", *arguments)
    assert ended.status == 2
    assert ended.out == "" or ended.value["error"]["code"] == "usage"


def test_a_runaway_pattern_ends(command: CommandLine) -> None:
    ended = command("words", r"^(\w*)*!")
    assert ended.status == 2
    assert "takes too long" in ended.err
    assert "hint:" in ended.err


def test_explain_says_why(command: CommandLine) -> None:
    """Faults 39: is this file indexed, and if not, why?"""
    indexed = command("explain", "docs/river.md").out
    assert indexed.startswith("tier: lexical")
    for said in ("state      in the index", "in run 1, generation 1", "chunks     1, vectors: none", "next run"):
        assert said in indexed
    ignored = command("explain", "docs/private/x.md")
    assert ignored.status == 0
    rule = f"the pattern private/ in {command.cwd.resolve()}/docs/.knowledgeignore leaves out private/"
    assert rule in ignored.out
    assert "why        not UTF-8 text" in command("explain", "docs/bad.md").out
    assert command("explain", "docs/nope.md").status == 4


def test_explain_json(command: CommandLine) -> None:
    value = command("explain", "docs/private/x.md", "--json").value
    assert (value["state"], value["reason"], value["next_run"]["action"]) == ("skipped", "excluded", "skip")
    assert value["rule"]["pattern"] == "private/"
    assert value["rule"]["source"].endswith("docs/.knowledgeignore")
    indexed = command("explain", "docs/river.md", "--json", "--query", "rivers").value
    assert (indexed["chunks"], indexed["vectors"], indexed["run_id"]) == (1, "none", 1)
    assert indexed["query"]["cause"] == "hit"
    assert indexed["query"]["lanes"]["words"] == {"rank": 1, "length": 1, "is_cut": False, "similarity": None}
    assert command("explain", "docs/nope.md", "--json").value["exit_status"] == 4


def test_explain_shows_names_safely(command: CommandLine) -> None:
    """S1-56"""
    ended = command("explain", f"docs/{ANSI_NAME}")
    assert "in the index" in ended.out
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out


def test_explain_a_query(command: CommandLine) -> None:
    out = command("explain", "docs/long.md", "--query", "river 東京").out
    assert "word river: in 0 of its chunks, in 1 chunk of the index" in out
    assert "lane substring: place 1 of 1" in out
    assert "it is hit " in out


def test_explain_needs_a_query_for_a_mode(command: CommandLine) -> None:
    assert command("explain", "docs/river.md", "--mode", "lexical").status == 2


def test_explain_without_an_index(tmp_path: Path) -> None:
    assert CommandLine(tmp_path)("explain", "a.md").status == 10


def test_coverage(command: CommandLine) -> None:
    """Faults 39: indexed of seen."""
    out = command("sources", "--coverage").out
    assert out.startswith("tier: lexical")
    assert ": 4 / 5 files indexed\n" in out
    assert "  1 skipped: not UTF-8 text\n" in out
    (root,) = command("sources", "--coverage", "--json").value["roots"]
    assert root["coverage"]["seen"] == 5
    assert root["coverage"]["skipped"] == {"not_utf8": 1}
    assert command("sources", "--coverage", "--all").status == 2


def test_a_search_pays_for_none_of_it(command: CommandLine) -> None:
    """Their modules are imported by their own verbs."""
    code = (
        "import sys; from cli.main import run; run(['search', 'river']);"
        " print([m for m in sys.modules if 'explain' in m or 'word_pattern' in m or m == 'app.coverage'])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=command.cwd,
        env=command.environment({}),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.decode().splitlines()[-1] == "[]"
