"""`knowledge status`, `stats` and `sources`: what the index is and holds."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from app.present import json_text
from app.present_base import (
    document_lines,
    not_built_status_json,
    sources_json,
    sources_text,
    stats_json,
    stats_text,
    status_json,
    status_text,
)
from app.status import base_status
from cli import terminal
from cli.chosen_base import chosen, opened, tell_notes
from cli.verbs import ConfigOption, JsonOption, verb_app
from domain.errors import NotBuiltError, UsageError
from store.port import StoredDocument, Visibility

if TYPE_CHECKING:
    from app.wiring import ReadableBase

app = verb_app()
_PAGE = 1000  # documents that are listed at a time


@app.command("status")
def status_verb(as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """One screen: which index, how complete, how old, what runs, what failed."""
    loaded = chosen(config)
    try:
        with opened(loaded) as base:
            status = base_status(base, loaded.settings)
    except NotBuiltError as error:
        if not as_json:
            raise
        terminal.write_json(json_text(not_built_status_json(error, loaded.located, loaded.settings)))
        return error.exit_status
    now_ns = time.time_ns()
    if as_json:
        terminal.write_json(json_text(status_json(status, loaded.located, loaded.settings, now_ns)))
    else:
        terminal.write(status_text(status, loaded.located, loaded.settings, now_ns))
        tell_notes(loaded)
    return 0


@app.command("stats")
def stats_verb(as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """Numbers and sizes of the index."""
    loaded = chosen(config)
    with opened(loaded) as base:
        status = base_status(base, loaded.settings)
    if as_json:
        terminal.write_json(json_text(stats_json(status)))
    else:
        terminal.write(stats_text(status, loaded.located, loaded.settings, time.time_ns()))
    return 0


@app.command("sources")
def sources_verb(
    every: Annotated[bool, typer.Option("--all", help="List every document, as `show` takes it.")] = False,
    root: Annotated[str, typer.Option("--root", metavar="NAME", help="Only documents of this root.")] = "",
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """List the indexed folders; with --all or --root, their documents."""
    loaded = chosen(config)
    with opened(loaded) as base:
        status = base_status(base, loaded.settings)
        if root and root not in (names := [known.name for known in status.roots]):
            raise UsageError(f"there is no root {root!r}", hint=f"there are: {', '.join(names) or 'none'}")
        wants_documents = every or bool(root)
        prefix = f"{root}/" if root else ""
        if as_json:
            documents = [row for page in _pages(base, prefix) for row in page] if wants_documents else None
            terminal.write_json(json_text(sources_json(status, documents)))
        elif wants_documents:
            for page in _pages(base, prefix):
                terminal.write(document_lines(page))
        else:
            terminal.write(sources_text(status, loaded.located, loaded.settings))
    return 0


def _pages(base: "ReadableBase", prefix: str) -> Iterator[Sequence[StoredDocument]]:
    after = ""
    reader = base.store.reader()
    while page := reader.documents(prefix, after=after, limit=_PAGE, visibility=Visibility.everything()):
        yield page
        after = page[-1].key
