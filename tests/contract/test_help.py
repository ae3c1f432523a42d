"""`--help`: the verbs of this version and no others, each described, each documented with all its options."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from cli.arguments import Arguments
from cli.examples import EXAMPLES, Example
from cli.examples import FIRST_PAGE as FIRST_EXAMPLES
from cli.main import GROUPS, USUAL_VERBS, _verb_first, run
from cli.quick_verbs import QUICK_VERBS, quick_verb
from cli.verbs import ALL_VERBS, MORE_VERBS, VERBS, VerbGroup
from cli.verbs import GROUPS as GROUP_NAMES
from cli.verbs import app as root_app

REFERENCE = sorted((Path(__file__).parents[2] / "docs").glob("reference*.md"))
ROLES = ("up", "scheduler", "worker", "writer", "serve")
WITHOUT_JSON = ("mcp", "completion", *ROLES)  # speaks a protocol; writes a script; keep a log
WITHOUT_BASE = ("config init", "embed-server")
EVERY_EXAMPLE = {one.line: one for examples in (FIRST_EXAMPLES, *EXAMPLES.values()) for one in examples}.values()
HEADINGS = ("Arguments:", "Options:", "Examples:")
FIRST_PAGE = (
    "index", "search", "show", "sources", "status", "stats", "config", "verify", "rebuild", "rm", "reset", "doctor",
)  # fmt: skip


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its words: `search`, `config init`."""
    group = get_group(root_app)
    assert isinstance(group, VerbGroup)
    for verb in ALL_VERBS:
        command = group.get_command(None, verb)
        inner = getattr(command, "commands", None)
        if inner is None:
            yield verb, command
        else:
            yield from ((f"{verb} {name}", below) for name, below in inner.items())


def options(command: Any) -> list[str]:
    return [written for parameter in command.params for written in parameter.opts if written.startswith("--")]


def test_the_first_page_shows_the_twelve_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    page = capsys.readouterr().out
    assert tuple(VERBS) == FIRST_PAGE
    for verb, (_, summary) in VERBS.items():
        assert f"  {verb} " in page
        assert summary[:40] in page
    assert f"Also: {', '.join(MORE_VERBS)}." in " ".join(page.split())


def test_both_readers_of_arguments_know_the_groups() -> None:
    assert set(GROUPS) == set(GROUP_NAMES)


@pytest.mark.parametrize("group", [group for group in GROUPS if group not in USUAL_VERBS])
def test_a_group_alone_shows_its_page(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([group]) == 0
    assert f"Usage: knowledge {group}" in capsys.readouterr().out


@pytest.mark.parametrize(("group", "usual"), USUAL_VERBS.items())
def test_a_group_with_a_usual_verb_does_that_alone(
    group: str, usual: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([group, "--json"]) == run([group, usual, "--json"]) == 10
    said = capsys.readouterr().out
    assert said[: len(said) // 2] == said[len(said) // 2 :]
    assert run([group, "--help"]) == 0
    assert f"Usage: knowledge {group}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [words for words, _ in commands()])
def test_every_verb_has_a_page(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words.split(), "--help"]) == 0
    page = capsys.readouterr().out
    command = dict(commands())[words]
    assert f"Usage: knowledge {words}" in page
    assert command.help
    for option in options(command):
        assert option in page


def test_every_verb_has_examples() -> None:
    assert set(EXAMPLES) == {words for words, _ in commands()}
    for words, examples in EXAMPLES.items():
        assert 2 <= len(examples) <= 4, words
        assert any(example.line.startswith(f"knowledge {words}") for example in examples) or words == "runs list"


@pytest.mark.parametrize("example", EVERY_EXAMPLE, ids=lambda example: example.line)
def test_examples_can_be_typed(example: Example) -> None:
    """The parser takes each line; nothing is carried out."""
    program, *arguments = shlex.split(example.line.partition(" > ")[0])
    assert program == "knowledge"
    assert len(example.line) <= 80
    verb, *rest = _verb_first(arguments)
    if verb in QUICK_VERBS:
        seen: list[Arguments] = []

        def call(read: Arguments) -> int:
            seen.append(read)
            return 0

        assert quick_verb(verb)._replace(call=call).run(rest) == 0
        assert not [word for word in seen[0].words if word.startswith("--")]
        return
    known = dict(commands())
    words = f"{verb} {rest[0]}" if verb in GROUPS else verb
    known[words].make_context("knowledge", rest[1:] if verb in GROUPS else rest)


@pytest.mark.parametrize("words", [words for words, _ in commands()])
def test_the_pages_are_made_alike(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    run([*words.split(), "--help"])
    page = capsys.readouterr().out
    headings = [line for line in page.splitlines() if line in HEADINGS]
    assert headings == [heading for heading in HEADINGS if heading in headings]
    assert headings[-1] == "Examples:"
    for example in EXAMPLES[words]:
        assert f"  {example.line}\n      {example.does}\n" in page
    assert page.index("--help  ") > max(page.find(f"  {option} ") for option in ("--config", "--json"))
    assert not any(sign in page for sign in ("<", "[x", "[required]"))
    assert dict(commands())[words].help.rstrip().endswith((".", "'", "'\"exit 11\"'"))


@pytest.mark.parametrize("words", [words for words, _ in commands() if words not in WITHOUT_BASE])
def test_every_verb_reads_config_and_those_that_answer_give_json(words: str) -> None:
    written = options(dict(commands())[words])
    assert "--config" in written
    assert "--json" in written or words in WITHOUT_JSON


def test_no_short_options_where_a_query_is_taken() -> None:
    for words in ("search", "show"):
        command = dict(commands())[words]
        assert all(written.startswith("--") for parameter in command.params[1:] for written in parameter.opts)


@pytest.mark.parametrize("words", [words for words, _ in commands()])
def test_every_verb_and_option_is_documented(words: str) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in REFERENCE)
    assert f"knowledge {words}" in text
    for option in options(dict(commands())[words]):
        assert option in text
