"""`knowledge words`: parses and prints; retrieval.vocabulary lists."""

from typing import get_args

from app.consistency import listed_consistently
from app.present import json_text
from app.present_words import (
    count_line,
    word_lines,
    words_error,
    words_json,
    words_not_built_json,
    words_notes,
    words_text,
)
from app.tiers import base_tier
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, opened, tell_notes
from domain.errors import NotBuiltError, UsageError
from retrieval.vocabulary import DEFAULT_LIMIT, Field, Sort, WordsRequest, count_words, list_words
from retrieval.word_pattern import compile_pattern
from store.vector_port import NO_VECTORS

FLAGS = (
    Flag("--limit", int, f"How many words at most; default: {DEFAULT_LIMIT}.", "N"),
    Flag("--min-docs", int, "Only words that at least N chunks hold.", "N"),
    Flag("--max-docs", int, "Only words that at most N chunks hold.", "N"),
    Flag("--field", str, "Only words of one part of the chunks: body, heading or names.", "FIELD", get_args(Field)),
    Flag("--sort", str, "count (the most common first; the default) or word.", "ORDER", get_args(Sort)),
    Flag("--words-only", bool, "A word a line, and nothing else."),
    Flag("--count", bool, "How many words there are, and nothing else."),
    Flag("--exit-code", bool, "End with status 1 when there is no such word."),
    JSON_FLAG,
    CONFIG_FLAG,
)
HELP = """List the words of the index with their counts.

REGEX is a regular expression as Python has them, looked for anywhere in a word, blind to case: '^net' are the
words that begin so. Words stand as the index has them: in lower case, without accents.
"""


def call(arguments: Arguments) -> int:
    request = _request(arguments)
    _refuse_contradictions(arguments)
    compile_pattern(request.pattern)  # a pattern that cannot be read is told even where there is no index
    loaded = chosen(arguments.text("config"))
    as_json, counts_only = arguments.flag("json"), arguments.flag("count")
    try:
        with opened(loaded) as base:
            with base.store.snapshot() as snapshot:
                answer = count_words(snapshot, request) if counts_only else list_words(snapshot, request)
                tier = base_tier(loaded.settings, snapshot.vector_status(), has_documents=answer.has_documents)
            answer = listed_consistently(answer, base)
    except NotBuiltError as error:
        if not as_json:
            raise
        tier = base_tier(loaded.settings, NO_VECTORS, has_documents=False)
        terminal.write_json(json_text(words_not_built_json(error, request, tier)))
        return error.exit_status
    lacking = words_error(answer)
    if as_json:
        terminal.write_json(json_text(words_json(answer, request, tier, with_words=not counts_only)))
        if lacking is not None:
            return lacking.exit_status
    elif counts_only or arguments.flag("words_only"):
        if lacking is not None:
            raise lacking
        terminal.write(count_line(answer) if counts_only else word_lines(answer))
        terminal.tell_all(words_notes(answer, request))
    else:
        terminal.write(words_text(answer, request, tier, loaded.located, loaded.settings))
        tell_notes(loaded)
    return 1 if arguments.flag("exit_code") and not answer.matched else 0


def _request(arguments: Arguments) -> WordsRequest:
    limit = arguments.number("limit")
    return WordsRequest(
        pattern=arguments.words[0] if arguments.words else "",
        limit=DEFAULT_LIMIT if limit is None else limit,
        min_chunks=arguments.number("min_docs") or 0,
        max_chunks=arguments.number("max_docs"),
        field=_field(arguments.text("field")),
        sort=_sort(arguments.text("sort")),
        with_stems=not arguments.flag("words_only"),
    )


def _field(written: str | None) -> Field | None:
    if written is None:
        return None
    known: dict[str, Field] = {field: field for field in get_args(Field)}
    if written not in known:
        raise UsageError(f"--field takes {', '.join(known)}, not {written[:40]!r}")
    return known[written]


def _sort(written: str | None) -> Sort:
    known: dict[str, Sort] = {order: order for order in get_args(Sort)}
    if written is not None and written not in known:
        raise UsageError(f"--sort takes {' or '.join(known)}, not {written[:40]!r}")
    return known[written or "count"]


def _refuse_contradictions(arguments: Arguments) -> None:
    """Options that ask for two things at once."""
    if arguments.flag("words_only"):
        for other in ("count", "json"):
            if arguments.flag(other):
                raise UsageError(
                    f"--words-only and --{other} ask for two kinds of output", hint="leave one of them out"
                )
    if arguments.flag("count"):
        for other in ("limit", "sort"):
            if arguments.values[other] is not None:
                raise UsageError(
                    f"--count counts every word: --{other} means nothing to it", hint=f"leave out --{other}"
                )


TABLE_VERBS = (
    TableVerb(
        "words", HELP, FLAGS, call, words_metavar="REGEX", words_help="Only words that it is found in.", most_words=1
    ),
)  # fmt: skip
