"""Arguments of the hot verbs: read by our own reader, and the same by typer."""

import pytest

from cli.arguments import Arguments, Flag, TableVerb, read, wants_help
from cli.index_verb import FLAGS as INDEX_FLAGS
from cli.search_verb import FLAGS as SEARCH_FLAGS
from domain.errors import UsageError


def search(*arguments: str) -> Arguments:
    return read(SEARCH_FLAGS, arguments, unknown_are_words=True)


def test_options_stand_anywhere_in_a_query() -> None:
    read_ = search("what", "--top-k", "3", "is", "--json", "this", "--root=docs")
    assert read_.words == ["what", "is", "this"]
    assert read_.number("top_k") == 3
    assert read_.flag("json")
    assert read_.text("root") == "docs"
    assert not read_.flag("full")
    assert read_.number("open") is None


@pytest.mark.parametrize("query", [["--dry-run"], ["-foo"], ["-"], ["--jsonx"], ["--json=x"], ["a", "-b", "--c=d"]])
def test_what_is_no_option_is_the_query(query: list[str]) -> None:
    assert search(*query).words == query


def test_behind_two_dashes_everything_is_the_query() -> None:
    assert search("--", "--json", "--").words == ["--json", "--"]
    assert not wants_help(["--", "--help"])
    assert wants_help(["a", "--help"])


@pytest.mark.parametrize("top_k", ["-1", "0", "1000000000"])
def test_any_whole_number_is_read(top_k: str) -> None:
    assert search("a", "--top-k", top_k).number("top_k") == int(top_k)


@pytest.mark.parametrize("arguments", [["--top-k"], ["--top-k", "five"], ["--top-k=1e3"], ["--root"]])
def test_a_wrong_or_missing_value_is_told(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        search(*arguments)


@pytest.mark.parametrize(("written", "meant"), [("--dry", "--dry-run"), ("--reindx", "--reindex"), ("--zzz", "")])
def test_a_strict_verb_names_the_nearest_option(written: str, meant: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(INDEX_FLAGS, [written], unknown_are_words=False)
    assert meant in raised.value.hint


def test_typer_reads_the_same() -> None:
    from typer.main import get_group

    from cli.quick_pages import typer_callback
    from cli.verbs import verb_app

    seen: list[Arguments] = []

    def call(arguments: Arguments) -> int:
        seen.append(arguments)
        return 7

    flags = (Flag("--top-k", int, "", "N"), Flag("--json", bool, ""), Flag("--root", str, "", "R"))
    verb = TableVerb("ask", "Ask.", flags, call, "WORDS", most_words=None, unknown_are_words=True)
    app = verb_app()
    app.command("ask", context_settings={"ignore_unknown_options": True})(typer_callback(verb))
    arguments = ["-x", "what", "--top-k", "3", "--dry-run", "--json", "--", "--root"]
    assert get_group(app).main(["ask", *arguments], standalone_mode=False) == 7
    assert seen == [read(flags, arguments, unknown_are_words=True)]
