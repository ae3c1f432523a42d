"""`knowledge search`: parses and prints; retrieval.search answers."""

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from app.config import Loaded, process_environ
from app.consistency import told_consistently
from app.present import json_text
from app.present_search import Link, not_built_json, search_json, search_text
from app.search_context import index_state, refuse_unknown_root, urls_of
from app.tracing import traced_search
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, opened, tell_notes
from domain.errors import NotBuiltError, UsageError
from domain.keys import path_below_root
from domain.settings import EmbeddingsSettings
from domain.status import Tier
from retrieval.answer import LEAST_SIMILARITY, Mode, SearchAnswer, SearchHit, SearchRequest
from retrieval.modes import parse_mode, parse_similarity
from retrieval.search import search

if TYPE_CHECKING:
    from app.wiring import ReadableBase

FLAGS = (
    Flag("--top-k", int, "How many hits, 1 to 20; default: the configured number, 5.", "N"),
    Flag("--full", bool, "Show the whole text of each hit."),
    Flag("--root", str, "Only documents of this root (see `knowledge sources`).", "NAME"),
    Flag("--path", str, "Only documents whose path matches, such as 'guide/*.md'.", "GLOB"),
    Flag(
        "--mode", str, "auto (words, and meaning where embeddings are configured), lexical, vector, hybrid.", "MODE",
        get_args(Mode),
    ),
    Flag("--min-similarity", str, "Leave out what is less near in meaning than X, from -1 to 1.", "X"),
    Flag("--all-chunks", bool, "Show copies of a text as hits of their own."),
    Flag("--open", int, "Open the file of hit N at its line, with $VISUAL or $EDITOR.", "N"),
    Flag("--exit-code", bool, "End with status 1 when nothing was found."),
    JSON_FLAG,
    CONFIG_FLAG,
)  # fmt: skip
HELP = """Search the index; the best hits come first, each with its citation.

Every argument that is no option of this command belongs to the query, also where it begins with a dash;
behind -- everything does. Quotes inside the query ask for exactly that text: knowledge search '"exit 11"'
"""


def call(arguments: Arguments) -> int:
    loaded = chosen(arguments.text("config"))
    as_json = arguments.flag("json")
    try:
        with opened(loaded) as base:
            return _answer(arguments, loaded, base)
    except NotBuiltError as error:
        if not as_json:
            raise
        terminal.write_json(json_text(not_built_json(error, _tier_without_index(loaded))))
        return error.exit_status


def _answer(arguments: Arguments, loaded: Loaded, base: "ReadableBase") -> int:
    settings = loaded.settings
    configured_similarity = settings.embeddings.min_similarity if settings.embeddings is not None else LEAST_SIMILARITY
    mode, min_similarity = arguments.text("mode"), arguments.text("min_similarity")
    request = SearchRequest(
        query=" ".join(arguments.words),
        top_k=arguments.number("top_k"),
        configured_top_k=settings.top_k,
        root=arguments.text("root") or "",
        path_glob=arguments.text("path") or "",
        all_chunks=arguments.flag("all_chunks"),
        full=arguments.flag("full"),
        mode=parse_mode(mode) if mode is not None else "auto",
        min_similarity=parse_similarity(min_similarity) if min_similarity is not None else configured_similarity,
    )
    refuse_unknown_root(base, request.root)
    found = told_consistently(_search(base, request, settings.embeddings), base)
    opened_number = arguments.number("open")
    if opened_number is not None:
        return _open(base, found, opened_number)
    urls = urls_of(settings, base, found)
    if arguments.flag("json"):
        terminal.write_json(json_text(search_json(found, index_state(base), urls, time.time_ns())))
    else:
        environ = process_environ()
        mark = terminal.bold if terminal.may_style(environ) else terminal.unstyled
        link = _link_to_files(base) if terminal.may_link(environ) else None
        terminal.write(search_text(found, str(settings.home), urls, time.time_ns(), mark, link))
        tell_notes(loaded)
    return 1 if arguments.flag("exit_code") and not found.results else 0


def _link_to_files(base: "ReadableBase") -> Link:
    """Each citation as a link to its file on this machine."""
    folders = {record.name: Path(record.path) for record in base.state.roots()}

    def linked(hit: SearchHit, citation: str) -> str:
        folder = folders.get(hit.root)
        return citation if folder is None else terminal.linked(citation, folder / path_below_root(hit.path))

    return linked


def _search(base: "ReadableBase", request: SearchRequest, embeddings: EmbeddingsSettings | None) -> SearchAnswer:
    """By words alone nothing of the vector tier is imported: a search in a fresh process must be quick."""
    if embeddings is None and request.mode in ("auto", "lexical"):
        with base.store.snapshot() as snapshot:
            return traced_search(partial(search, snapshot, request), request.mode, with_meaning=False)
    from app.searching import answer, query_meaning

    with query_meaning(embeddings) as meaning:
        return answer(base.store, request, meaning)


def _tier_without_index(loaded: Loaded) -> Tier:
    if loaded.settings.embeddings is None:
        return Tier.LEXICAL
    from retrieval.query_vector import WantedVectors, standing_tier
    from store.vector_port import NO_VECTORS

    return standing_tier(WantedVectors.of(loaded.settings.embeddings), NO_VECTORS, has_documents=False)


def _open(base: "ReadableBase", found: SearchAnswer, number: int) -> int:
    from cli.editor import open_in_editor

    hit = next((hit for hit in found.results if hit.rank == number), None)
    if hit is None:
        raise UsageError(
            f"there is no hit {number}: the answer has {len(found.results)}",
            hint="see the list first: the same command without --open; more hits with --top-k",
        )
    paths = {record.name: record.path for record in base.state.roots()}
    return open_in_editor(paths.get(hit.root, ""), hit.path, hit.start_line)


TABLE_VERBS = (
    TableVerb(
        "search", HELP, FLAGS, call, words_metavar="WORDS", words_help="What to search for.", most_words=None,
        unknown_are_words=True,
    ),
)  # fmt: skip
