"""`knowledge index`: parses, shows the progress and prints the summary; app.indexing does the work."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.beside_service import has_serving_writer, is_service_up, no_scheduler
from app.present import json_text
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, tell_notes, working_directory
from domain.errors import LockedError, UsageError
from domain.layout import BaseLayout

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
    Flag("--detach", bool, "Hand the run to the service, and do not wait for its end."),
    Flag("--quiet", bool, "No progress; the summary only where something is wrong."),
    JSON_FLAG,
    CONFIG_FLAG,
)
HELP = """Index folders or files, or bring the index up to date.

Without PATHS every known root is brought up to date. Documents are indexed in place and never written to. While a
service of this index is up, the run is handed to it and followed; Ctrl-C then lets it go on.
"""


def call(arguments: Arguments) -> int:
    from app.index_request import IndexRequest

    workers = arguments.amount("workers") if arguments.number("workers") is not None else None
    loaded = chosen(arguments.text("config"), absent_roots="refuse")
    request = IndexRequest(
        paths=absolute_paths(arguments.words),
        reindex=arguments.flag("reindex"),
        re_embed=arguments.flag("re_embed"),
        rehash=arguments.flag("rehash"),
        allow_mass_delete=arguments.flag("allow_mass_delete"),
        queue_url=arguments.text("queue") or "",
        worker_processes=workers,
    )
    if arguments.flag("dry_run"):
        return _say_what_would_be(loaded, request, as_json=arguments.flag("json"))
    is_quiet, as_json = arguments.flag("quiet"), arguments.flag("json")
    if is_service_up(BaseLayout(loaded.settings.home)):
        _refuse_own_processes(request)
        return _hand_over(loaded, request, detaches=arguments.flag("detach"), is_quiet=is_quiet, as_json=as_json)
    if arguments.flag("detach"):
        raise no_service_to_detach_to()
    return index_here(loaded, request, is_quiet=is_quiet, as_json=as_json)


def no_service_to_detach_to() -> UsageError:
    return UsageError(
        "there is no service of this index to hand the run to",
        hint="start one with `knowledge up`; or leave out --detach, and the run is done here",
    )


def _refuse_own_processes(request: "IndexRequest") -> None:
    if request.queue_url or request.worker_processes is not None:
        flag = "--queue" if request.queue_url else "--workers"
        raise UsageError(
            f"{flag} is not for a run that the service carries out: it has its own queue and workers",
            hint="leave it out; how many workers there are is decided where the service is started",
        )


def _hand_over(loaded: "Loaded", request: "IndexRequest", *, detaches: bool, is_quiet: bool, as_json: bool) -> int:
    """Have the service do it. What cannot be asked of it is refused here, in the words of a run."""
    from app.roots import scopes_of_run
    from app.run_request import RunRequest
    from app.runs import recorded_runs
    from cli.following import concluded, handed_over

    if request.re_embed and not request.reindex:
        raise UsageError("--re-embed goes with --reindex", hint="run `knowledge index --reindex --re-embed`")
    with recorded_runs(loaded.settings) as state:
        scopes_of_run(loaded.settings, state.roots(), request.paths)
    asked = RunRequest(
        paths=tuple(str(path) for path in request.paths),
        reindex=request.reindex,
        re_embed=request.re_embed,
        rehash=request.rehash,
        allow_mass_delete=request.allow_mass_delete,
    )
    run = handed_over(loaded.settings, asked, is_quiet=is_quiet or as_json, detaches=detaches)
    return concluded(loaded, run, is_quiet=is_quiet, as_json=as_json)


def absolute_paths(paths: list[str]) -> tuple[Path, ...]:
    """Paths as they were written, below the working directory."""
    from app.config import process_environ
    from app.places import absolute

    user_home = process_environ().get("HOME", "")
    return tuple(absolute(path, below=working_directory(), user_home=user_home) for path in paths)


def index_here(loaded: "Loaded", request: "IndexRequest", *, is_quiet: bool, as_json: bool) -> int:
    from app.indexing import run_index
    from app.present_index import embedding_notice_text, report_json, report_text
    from app.progress import RunProgress
    from cli.progress import shown

    progress = RunProgress()
    with naming_absent_scheduler(loaded), terminated_like_interrupted(), shown(progress, is_quiet=is_quiet or as_json):
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
def naming_absent_scheduler(loaded: "Loaded") -> Iterator[None]:
    """Where a service's writer has the lock and nobody leads it, the error says what to start."""
    layout = BaseLayout(loaded.settings.home)
    try:
        yield
    except LockedError as error:
        raise (no_scheduler(layout) if has_serving_writer(layout) else error) from None


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does (in an event loop: app.event_loop), also where SIGINT itself is ignored, as in a
    script's job in the background."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
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
