"""`knowledge explain`: parses and prints; app.explaining and app.explaining_query find out."""

import time
from typing import TYPE_CHECKING, get_args

from app.config import Loaded, process_environ
from app.explaining import Explanation, explain
from app.file_places import AskedBy
from app.present import json_text
from app.tiers import base_tier
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, opened, tell_notes, working_directory
from domain.errors import UsageError
from retrieval.answer import LEAST_SIMILARITY, Mode, SearchRequest
from retrieval.modes import parse_mode

if TYPE_CHECKING:
    from app.explaining_query import QueryTrace
    from app.wiring import ReadableBase

FLAGS = (
    Flag("--query", str, "Say where this query finds it, in each lane, and why not higher.", "Q"),
    Flag("--mode", str, "With --query: what ranks, as in a search.", "MODE", get_args(Mode)),
    JSON_FLAG,
    CONFIG_FLAG,
)
HELP = """Say whether a file is in the index, and why; when it was checked, and what the next run would do.

PATH is a path of the index, or of this machine; the file need not be there, nor in the index. It is read as a run
would read it; nothing is written.
"""


def call(arguments: Arguments) -> int:
    query = arguments.text("query")
    if arguments.text("mode") is not None and query is None:
        raise UsageError("--mode says what ranks a query", hint="add --query Q")
    loaded = chosen(arguments.text("config"))
    asked_by = AskedBy(working_directory(), process_environ().get("HOME", ""))
    with opened(loaded) as base:
        explained = explain(base, loaded.settings, arguments.words[0], asked_by)
        trace = None if query is None else _traced(base, loaded, explained, query, arguments.text("mode"))
        reader = base.store.reader()
        tier = base_tier(loaded.settings, reader.vector_status(), has_documents=reader.has_documents())
    from app.present_explain import explain_json, explain_text

    if arguments.flag("json"):
        terminal.write_json(json_text(explain_json(explained, trace, tier, loaded.settings)))
    else:
        terminal.write(explain_text(explained, trace, tier, loaded.located, loaded.settings, time.time_ns()))
        tell_notes(loaded)
    return explained.exit_status


def _traced(base: "ReadableBase", loaded: Loaded, explained: Explanation, query: str, mode: str | None) -> "QueryTrace":
    from app.explaining_query import explain_query
    from app.searching import query_meaning

    embeddings = loaded.settings.embeddings
    request = SearchRequest(
        query=query,
        configured_top_k=loaded.settings.top_k,
        mode=parse_mode(mode) if mode is not None else "auto",
        min_similarity=embeddings.min_similarity if embeddings is not None else LEAST_SIMILARITY,
    )
    with query_meaning(embeddings) as meaning:
        return explain_query(base.store, explained.key, request, meaning)


TABLE_VERBS = (
    TableVerb(
        "explain", HELP, FLAGS, call, words_metavar="PATH",
        words_help="A path of the index, as search and sources print it, or of this machine.",
        least_words=1, most_words=1,
    ),
)  # fmt: skip
