"""`knowledge index`: parses, shows the progress and prints the summary; app.indexing does the work."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from app.present import json_text
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, tell_notes, working_directory

if TYPE_CHECKING:
    from app.config import Loaded
    from app.index_request import IndexRequest

FLAGS = (
    Flag("--dry-run", bool, "Write nothing; say what a run would do."),
    Flag("--reindex", bool, "Cut every file anew, changed or not."),
    Flag("--re-embed", bool, "With --reindex: embed every text anew, also where its vector is known."),
    Flag("--rehash", bool, "Read every file, also where size and times are equal."),
    Flag("--allow-mass-delete", bool, "Let go of documents that were held back."),
    Flag("--queue", str, "A Redis or Valkey to queue over; default: the bundled one.", "URL"),
    Flag("--workers", int, "Worker processes; default: by the size of the run.", "N"),
    Flag("--quiet", bool, "No progress; the summary only where something is wrong."),
    JSON_FLAG,
    CONFIG_FLAG,
)
HELP = """Index folders or files, or bring the index up to date.

Without PATHS every known root is brought up to date. Documents are indexed in place and never written to.
"""


def call(arguments: Arguments) -> int:
    from app.index_request import IndexRequest

    workers = arguments.amount("workers") if arguments.number("workers") is not None else None
    loaded = chosen(arguments.text("config"), absent_roots="refuse")
    request = IndexRequest(
        paths=_absolute(arguments.words),
        reindex=arguments.flag("reindex"),
        re_embed=arguments.flag("re_embed"),
        rehash=arguments.flag("rehash"),
        allow_mass_delete=arguments.flag("allow_mass_delete"),
        queue_url=arguments.text("queue") or "",
        worker_processes=workers,
    )
    if arguments.flag("dry_run"):
        return _say_what_would_be(loaded, request, as_json=arguments.flag("json"))
    return _index(loaded, request, is_quiet=arguments.flag("quiet"), as_json=arguments.flag("json"))


def _absolute(paths: list[str]) -> tuple[Path, ...]:
    from app.config import process_environ
    from app.places import absolute

    user_home = process_environ().get("HOME", "")
    return tuple(absolute(path, below=working_directory(), user_home=user_home) for path in paths)


def _index(loaded: "Loaded", request: "IndexRequest", *, is_quiet: bool, as_json: bool) -> int:
    from app.indexing import run_index
    from app.present_index import embedding_notice_text, report_json, report_text
    from app.progress import RunProgress
    from cli.progress import shown

    progress = RunProgress()
    with terminated_like_interrupted(), shown(progress, is_quiet=is_quiet or as_json):
        report = run_index(
            loaded.settings,
            request,
            progress,
            announce=lambda notice: terminal.tell(embedding_notice_text(notice)),
        )
    if as_json:
        terminal.write_json(json_text(report_json(report, loaded.located, loaded.settings)))
    elif not is_quiet or report.exit_status:
        terminal.write(report_text(report, loaded.located, loaded.settings))
    if not as_json:
        tell_notes(loaded)
    return report.exit_status


def _say_what_would_be(loaded: "Loaded", request: "IndexRequest", *, as_json: bool) -> int:
    from app.dry_run import dry_run
    from app.present_dry_run import dry_run_json, dry_run_text

    with terminated_like_interrupted():
        forecast = dry_run(loaded.settings, request)
    if as_json:
        terminal.write_json(json_text(dry_run_json(forecast, loaded.located, loaded.settings)))
    else:
        terminal.write(dry_run_text(forecast, loaded.located, loaded.settings))
        tell_notes(loaded)
    return 0


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, whoever handles that at the moment (an event loop has its own way)."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


TABLE_VERBS = (
    TableVerb(
        "index", HELP, FLAGS, call, words_metavar="PATHS", words_help="Folders or files; default: every root.",
        most_words=None,
    ),
)  # fmt: skip
