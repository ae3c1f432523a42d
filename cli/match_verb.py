"""`knowledge match`: parses and prints; app.enumerating answers."""

import time
from typing import get_args

from app.enumerating import enumerate_base
from app.present import json_text
from app.present_match import (
    count_line,
    index_notes,
    match_error,
    match_json,
    match_not_built_json,
    match_text,
    path_lines,
)
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, opened, tell_notes
from domain.errors import CorpusEmptyError, NotBuiltError, UsageError
from retrieval.match_answer import DEFAULT_LIMIT, MatchAnswer, MatchRequest, MatchSort

FLAGS = (
    Flag("--limit", int, f"How many documents are listed at most; default: {DEFAULT_LIMIT}.", "N"),
    Flag("--all", bool, "List every document that matches."),
    Flag("--sort", str, "matches (the most matches first; the default) or path.", "ORDER", get_args(MatchSort)),
    Flag("--min-matches", int, "Only documents with at least N matches, in text and headings together.", "N"),
    Flag("--paths-only", bool, "A path a line, and nothing else."),
    Flag("--count", bool, "How many documents match, and nothing else."),
    Flag("--explain", bool, "Say of each term how many documents hold it, as written and in other forms."),
    Flag("--exit-code", bool, "End with status 1 when no document matches."),
    Flag("--root", str, "Only documents of this root (see `knowledge sources`).", "NAME"),
    Flag("--path", str, "Only documents whose path matches, such as 'guide/*.md'.", "GLOB"),
    JSON_FLAG,
    CONFIG_FLAG,
)
HELP = """List every document that holds all of the words: the complete set, not the best of it.

A query is made of words, "phrases", a minus before what is not wanted, and heading: or body: before what is looked
for there only. In a shell, quote the whole: knowledge match 'kernel "memory map" -heading:draft'
"""
_CONTRADICTIONS = (
    ("all", "limit", "one lists every document, the other so many"),
    ("count", "limit", "every document is counted"),
    ("count", "all", "every document is counted in any case"),
    ("count", "sort", "a number has no order"),
    ("count", "paths_only", "they ask for two kinds of output"),
    ("count", "explain", "they ask for two kinds of output"),
    ("paths_only", "explain", "they ask for two kinds of output"),
    ("paths_only", "json", "they ask for two kinds of output"),
)


def call(arguments: Arguments) -> int:
    _refuse_contradictions(arguments)
    request = _request(arguments)
    loaded = chosen(arguments.text("config"))
    as_json = arguments.flag("json")
    try:
        with opened(loaded) as base:
            answer = enumerate_base(base, request)
    except NotBuiltError as error:
        if not as_json:
            raise
        terminal.write_json(json_text(match_not_built_json(error)))
        return error.exit_status
    for_machine = as_json or arguments.flag("paths_only") or arguments.flag("count")
    error_status = _error_status(answer, as_json=as_json, for_machine=for_machine)
    if as_json:
        with_documents = not arguments.flag("count")
        terminal.write_json(json_text(match_json(answer, request, time.time_ns(), with_documents=with_documents)))
    elif for_machine:
        terminal.write(count_line(answer) if arguments.flag("count") else path_lines(answer))
        terminal.tell_all(index_notes(answer))
    else:
        home, explain = str(loaded.settings.home), arguments.flag("explain")
        terminal.write(match_text(answer, request, home, time.time_ns(), explain=explain))
        tell_notes(loaded)
    return error_status or (1 if arguments.flag("exit_code") and not answer.matched else 0)


def _error_status(answer: MatchAnswer, *, as_json: bool, for_machine: bool) -> int:
    """0 for an answer that stands as it is. Raises where nothing but an error is to be written."""
    error = match_error(answer)
    if error is None or (isinstance(error, CorpusEmptyError) and not for_machine):
        return 0
    if not as_json:
        raise error
    return error.exit_status


def _request(arguments: Arguments) -> MatchRequest:
    limit, min_matches = arguments.number("limit"), arguments.number("min_matches")
    counts_only, lists_all = arguments.flag("count"), arguments.flag("all")
    default = None if lists_all else 0 if counts_only else DEFAULT_LIMIT
    if limit is not None and limit < 1:
        raise UsageError(f"--limit takes a number from 1 up, not {limit}", hint="--count says how many there are")
    return MatchRequest(
        query=" ".join(arguments.words),
        limit=default if limit is None else limit,
        sort=_sort(arguments.text("sort")),
        min_matches=1 if min_matches is None else min_matches,
        root=arguments.text("root") or "",
        path_glob=arguments.text("path") or "",
    )


def _sort(written: str | None) -> MatchSort:
    known: dict[str, MatchSort] = {order: order for order in get_args(MatchSort)}
    if written is not None and written not in known:
        raise UsageError(f"--sort takes {' or '.join(known)}, not {written[:40]!r}")
    return known[written or "matches"]


def _refuse_contradictions(arguments: Arguments) -> None:
    """Options that ask for two things at once."""
    given = {key for key, value in arguments.values.items() if value is not None and value is not False}
    for one, other, why in _CONTRADICTIONS:
        if one in given and other in given:
            names = [f"--{key.replace('_', '-')}" for key in (one, other)]
            raise UsageError(f"{' and '.join(names)} contradict each other: {why}", hint="leave one of them out")


TABLE_VERBS = (
    TableVerb(
        "match", HELP, FLAGS, call, words_metavar="QUERY", words_help="What to look for.", most_words=None,
        unknown_are_words=True,
    ),
)  # fmt: skip
