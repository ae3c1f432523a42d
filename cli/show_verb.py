"""`knowledge show`: parses and prints; app.showing looks up."""

from typing import Annotated

import typer

from app.config import process_environ
from app.present import json_text
from app.present_documents import chunk_json, chunk_text, document_json, document_on_terminal, exact_chunks
from app.showing import KnownPlaces, Shown, ShownChunk, ShowRequest, show
from cli import terminal
from cli.chosen_base import chosen, opened, working_directory
from cli.verbs import ConfigOption, JsonOption, verb_app

app = verb_app()


@app.command("show", context_settings={"ignore_unknown_options": True})
def show_verb(
    target: Annotated[
        str, typer.Argument(metavar="CITATION|PATH", help="As search and sources print it, or a path of this machine.")
    ],
    before: Annotated[int, typer.Option("--before", metavar="N", min=0, help="Chunks before the cited one.")] = 0,
    after: Annotated[int, typer.Option("--after", metavar="N", min=0, help="Chunks after the cited one.")] = 0,
    lines: Annotated[str, typer.Option("--lines", metavar="A-B", help="Only these lines of the document.")] = "",
    raw: Annotated[bool, typer.Option("--raw", help="The text alone, byte for byte, also to a terminal.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Show a citation (a chunk) or a path (the whole document) as it was indexed.

    A document goes to a file or a pipe byte for byte; on a terminal control characters are taken out.
    """
    loaded = chosen(config)
    request = ShowRequest(target, before, after, lines)
    with opened(loaded) as base:
        places = KnownPlaces(
            records=base.state.roots(),
            configured=loaded.settings.roots,
            cwd=working_directory(),
            user_home=process_environ().get("HOME", ""),
        )
        with base.store.snapshot() as snapshot:
            shown = show(snapshot, request, places)
    _print(shown, is_raw=raw, as_json=as_json)
    return 0


def _print(shown: Shown, *, is_raw: bool, as_json: bool) -> None:
    if as_json:
        value = chunk_json(shown) if isinstance(shown, ShownChunk) else document_json(shown)
        terminal.write_json(json_text(value))
    elif isinstance(shown, ShownChunk):
        if is_raw:
            terminal.write_exactly(exact_chunks(shown))
        else:
            terminal.write(chunk_text(shown))
    elif is_raw or not terminal.writes_to_terminal():
        terminal.write_exactly(shown.text)
    else:
        terminal.write(document_on_terminal(shown))
