"""`knowledge show`: parses and prints; app.showing looks up."""

from functools import partial

from app.config import process_environ
from app.consistency import standing_of
from app.present import json_text
from app.present_documents import (
    chunk_json,
    chunk_text,
    document_json,
    document_on_terminal,
    exact_chunks,
    shown_notes,
)
from app.showing import KnownPlaces, Shown, ShownChunk, ShowRequest, show
from app.tiers import base_tier
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, opened, working_directory
from domain.status import Standing, Tier

FLAGS = (
    Flag("--before", int, "Chunks before the cited one.", "N"),
    Flag("--after", int, "Chunks after the cited one.", "N"),
    Flag("--lines", str, "Only these lines of the document.", "A-B"),
    Flag("--raw", bool, "The text alone, byte for byte, also to a terminal."),
    JSON_FLAG,
    CONFIG_FLAG,
)
HELP = """Show a citation (a chunk) or a path (the whole document) as it was indexed.

A document goes to a file or a pipe byte for byte; on a terminal control characters are taken out.
"""


def call(arguments: Arguments) -> int:
    loaded = chosen(arguments.text("config"))
    request = ShowRequest(
        arguments.words[0], arguments.amount("before"), arguments.amount("after"), arguments.text("lines") or ""
    )
    with opened(loaded) as base:
        places = KnownPlaces(
            records=base.state.roots(),
            configured=loaded.settings.roots,
            cwd=working_directory(),
            user_home=process_environ().get("HOME", ""),
        )
        with base.store.snapshot() as snapshot:
            shown = show(snapshot, request, places, partial(standing_of, base))
            tier = base_tier(loaded.settings, snapshot.vector_status(), has_documents=True)
        standing = standing_of(base)
    _print(shown, tier, standing, is_raw=arguments.flag("raw"), as_json=arguments.flag("json"))
    return 0


def _print(shown: Shown, tier: Tier, standing: Standing, *, is_raw: bool, as_json: bool) -> None:
    if as_json:
        if isinstance(shown, ShownChunk):
            value = chunk_json(shown, tier, standing)
        else:
            value = document_json(shown, tier, standing)
        terminal.write_json(json_text(value))
    elif isinstance(shown, ShownChunk) and not is_raw:
        terminal.write(chunk_text(shown, tier, standing))
    else:
        _print_text(shown, is_raw=is_raw)
        terminal.tell_all(shown_notes(standing))


def _print_text(shown: Shown, *, is_raw: bool) -> None:
    if isinstance(shown, ShownChunk):
        terminal.write_exactly(exact_chunks(shown))
    elif is_raw or not terminal.writes_to_terminal():
        terminal.write_exactly(shown.text)
    else:
        terminal.write(document_on_terminal(shown))


TABLE_VERBS = (
    TableVerb(
        "show", HELP, FLAGS, call, words_metavar="CITATION|PATH",
        words_help="As search and sources print it, or a path of this machine.", least_words=1, most_words=1,
        unknown_are_words=True,
    ),
)  # fmt: skip
