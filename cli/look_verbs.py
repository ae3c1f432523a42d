"""`knowledge status`, `stats` and `sources`: what the index is and holds."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from app.present import json_text, no_documents_error, note_lines
from app.present_base import not_built_status_json, stats_json, stats_text, status_json, status_text
from app.present_sources import document_lines, sources_json, sources_text
from app.status import base_status
from app.tiers import base_tier
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, opened, tell_notes
from domain.errors import NotBuiltError, UsageError
from store.port import StoredDocument, Visibility

if TYPE_CHECKING:
    from app.config import Loaded
    from app.wiring import ReadableBase

_PAGE = 1000  # documents that are listed at a time


def call_status(arguments: Arguments) -> int:
    if arguments.flag("exit_code"):
        from cli.status_check import call_check

        return call_check(arguments)
    loaded = chosen(arguments.text("config"))
    try:
        with opened(loaded) as base:
            status = base_status(base, loaded.settings)
    except NotBuiltError as error:
        if not arguments.flag("json"):
            raise
        terminal.write_json(json_text(not_built_status_json(error, loaded.located, loaded.settings)))
        return error.exit_status
    now_ns = time.time_ns()
    if arguments.flag("json"):
        terminal.write_json(json_text(status_json(status, loaded.located, loaded.settings, now_ns)))
    else:
        terminal.write(status_text(status, loaded.located, loaded.settings, now_ns))
        tell_notes(loaded)
    return 0


def call_stats(arguments: Arguments) -> int:
    loaded = chosen(arguments.text("config"))
    with opened(loaded) as base:
        status = base_status(base, loaded.settings, count_vectors=True)
    if arguments.flag("json"):
        terminal.write_json(json_text(stats_json(status, loaded.settings)))
    else:
        terminal.write(stats_text(status, loaded.located, loaded.settings, time.time_ns()))
    return 0


def call_sources(arguments: Arguments) -> int:
    loaded = chosen(arguments.text("config"))
    root = arguments.text("root") or ""
    if arguments.flag("coverage"):
        return _call_coverage(arguments, loaded)
    with opened(loaded) as base:
        status = base_status(base, loaded.settings)
        if root and root not in (names := [known.name for known in status.roots]):
            raise UsageError(f"there is no root {root!r}", hint=f"there are: {', '.join(names) or 'none'}")
        wants_documents = arguments.flag("all") or bool(root)
        prefix = f"{root}/" if root else ""
        if arguments.flag("json"):
            documents = [row for page in _pages(base, prefix) for row in page] if wants_documents else None
            terminal.write_json(json_text(sources_json(status, loaded.settings, documents)))
        elif wants_documents:
            if not status.documents:
                raise no_documents_error(status.standing)
            for page in _pages(base, prefix):
                terminal.write(document_lines(page))
            terminal.tell_all(note_lines(status.standing))
        else:
            terminal.write(sources_text(status, loaded.located, loaded.settings))
    return 0


def _call_coverage(arguments: Arguments, loaded: "Loaded") -> int:
    for other in ("all", "root"):
        if arguments.values[other]:
            raise UsageError(f"--coverage is of every root: --{other} lists documents", hint="leave one of them out")
    from app.coverage import coverage
    from app.present_coverage import coverage_json, coverage_text

    with opened(loaded) as base:
        status = base_status(base, loaded.settings)
        covered = coverage(base, loaded.settings)
    if arguments.flag("json"):
        terminal.write_json(json_text(coverage_json(status, covered, loaded.settings)))
    else:
        tier = base_tier(loaded.settings, status.vectors, has_documents=status.documents > 0)
        terminal.write(coverage_text(status, covered, tier, loaded.located, loaded.settings))
    return 0


def _pages(base: "ReadableBase", prefix: str) -> Iterator[Sequence[StoredDocument]]:
    after = ""
    reader = base.store.reader()
    while page := reader.documents(prefix, after=after, limit=_PAGE, visibility=Visibility.everything()):
        yield page
        after = page[-1].key


TABLE_VERBS = (
    TableVerb(
        "status",
        "One screen: which index, how complete, how old, what runs, what failed.",
        (
            Flag("--exit-code", bool, "A verdict first; end with 0 (fine), 1 (warning) or 2 (critical)."),
            JSON_FLAG,
            CONFIG_FLAG,
        ),
        call_status,
    ),
    TableVerb("stats", "Numbers and sizes of the index.", (JSON_FLAG, CONFIG_FLAG), call_stats),
    TableVerb(
        "sources",
        "List the indexed folders; with --all or --root, their documents; with --coverage, how much is indexed.",
        (
            Flag("--all", bool, "List every document, as `show` takes it."),
            Flag("--root", str, "Only documents of this root.", "NAME"),
            Flag("--coverage", bool, "Look at the folders: how many files are indexed, and why others are not."),
            JSON_FLAG,
            CONFIG_FLAG,
        ),
        call_sources,
    ),
)
