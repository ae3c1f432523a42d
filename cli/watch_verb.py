"""`knowledge watch`: parses, and prints a line a pass; app.watching does the work."""

import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, tell_notes
from cli.index_verb import absolute_paths, terminated_like_interrupted
from domain.errors import InterruptedRunError, UsageError

if TYPE_CHECKING:
    from app.config import Loaded
    from app.watching import WatchNotice, WatchOptions
    from scheduler.watch import WatchPass

HELP = """Follow the folders: index what changes in them, until Ctrl-C.

Without PATHS every known root is followed. One pass at the start brings the index up to date.
"""
FLAGS = (
    Flag("--no-initial", bool, "No pass at the start: only what changes from now on."),
    Flag("--debounce", str, "How long it must be quiet before a pass; default: 2s, at least 100ms.", "DURATION"),
    Flag("--quiet", bool, "Only what is wrong."),
    JSON_FLAG,
    CONFIG_FLAG,
)


def call(arguments: Arguments) -> int:
    from app.watching import WatchOptions

    loaded = chosen(arguments.text("config"))
    options = WatchOptions(
        debounce_s=_debounce_s(arguments.text("debounce")), has_initial_pass=not arguments.flag("no_initial")
    )
    shown = _Shown(loaded, options, is_quiet=arguments.flag("quiet"), as_json=arguments.flag("json"))
    tell_notes(loaded)
    from app.watch_command import run_watch

    with terminated_like_interrupted(), noted_signals() as last_signal:
        try:
            run_watch(loaded.settings, absolute_paths(arguments.words), options, shown.run_pass, shown.tell)
        except (KeyboardInterrupt, InterruptedRunError):
            if last_signal() != signal.SIGTERM:
                raise
    return 0


def _debounce_s(written: str | None) -> float:
    from scheduler.watch import DEFAULT_DEBOUNCE_S, LEAST_DEBOUNCE_S

    if written is None:
        return DEFAULT_DEBOUNCE_S
    from domain.units import parse_duration_s

    try:
        return max(LEAST_DEBOUNCE_S, parse_duration_s(written))
    except ValueError as error:
        raise UsageError(f"--debounce {error}", hint="write --debounce 500ms, or 10s") from None


class _Shown:
    """Runs the passes of a watch and prints a line for each."""

    def __init__(self, loaded: "Loaded", options: "WatchOptions", *, is_quiet: bool, as_json: bool) -> None:
        self._loaded = loaded
        self._options = options
        self._is_quiet = is_quiet
        self._as_json = as_json

    def tell(self, notice: "WatchNotice") -> None:
        from app.present_watch import notice_json, notice_line

        is_trouble = notice.kind in ("root_missing", "limited", "retrying")
        if self._is_quiet and not is_trouble:
            return
        if self._as_json:
            self._write(notice_json(notice, time.time_ns()))
        else:
            terminal.tell(f"{notice_line(notice, debounce_s=self._options.debounce_s)}\n")

    def run_pass(self, pass_: "WatchPass") -> None:
        from app.beside_service import is_service_up
        from domain.layout import BaseLayout

        if is_service_up(BaseLayout(self._loaded.settings.home)):
            self._hand_over(pass_)
        else:
            self._run_here(pass_)

    def _hand_over(self, pass_: "WatchPass") -> None:
        """A service writes this index: it carries the pass out, as a run of its own."""
        from app.present_watch import service_pass_json, service_pass_line
        from app.run_request import RunRequest
        from app.runs import error_of_run
        from app.submitting import follow, submit

        request = RunRequest(paths=tuple(str(path) for path in pass_.paths))
        run = follow(self._loaded.settings, submit(self._loaded.settings, request, "watch").id, lambda _: None)
        if (error := error_of_run(run)) is not None:
            raise error
        if self._is_quiet and run.state == "done":
            return
        line = service_pass_json(pass_, run, time.time_ns()) if self._as_json else service_pass_line(pass_, run)
        self._write(line)

    def _run_here(self, pass_: "WatchPass") -> None:
        from app.index_request import IndexRequest
        from app.indexing import run_index
        from app.present_index import embedding_notice_text
        from app.present_watch import is_worth_a_line, pass_json, pass_line
        from app.progress import RunProgress

        report = run_index(
            self._loaded.settings,
            IndexRequest(paths=pass_.paths, trigger="watch"),
            RunProgress(),
            announce=lambda notice: terminal.tell(embedding_notice_text(notice)),
        )
        if self._is_quiet and not report.exit_status:
            return
        if self._as_json:
            self._write(pass_json(pass_, report, time.time_ns()))
        elif is_worth_a_line(pass_, report):
            self._write(pass_line(pass_, report))

    def _write(self, line: str) -> None:
        terminal.write(f"{line}\n")
        terminal.flush()


@contextmanager
def noted_signals() -> Iterator[Callable[[], int]]:
    """Inside, the function says which signal came last; 0 = none. What the signals do stays as it is."""
    reads, writes = socket.socketpair()
    with reads, writes:
        reads.setblocking(False)
        writes.setblocking(False)
        before = signal.set_wakeup_fd(writes.fileno(), warn_on_full_buffer=False)

        def last() -> int:
            try:
                return reads.recv(4096)[-1]
            except BlockingIOError:
                return 0

        try:
            yield last
        finally:
            signal.set_wakeup_fd(before)


TABLE_VERBS = (
    TableVerb(
        "watch",
        HELP,
        FLAGS,
        call,
        words_metavar="PATHS",
        words_help="Folders or files; default: every root.",
        most_words=None,
    ),
)
