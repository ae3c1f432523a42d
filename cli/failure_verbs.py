"""`knowledge failures`, `retry` and `ignore`: parse and print; app.failures does the work."""

import time
from typing import TYPE_CHECKING

from app.beside_service import is_service_up
from app.config import process_environ
from app.failures import ToRetry, ignore, listed, named, of_reason, retry, to_retry
from app.file_places import AskedBy
from app.present import index_line, json_text
from app.present_failures import (
    counts_line,
    failure_lines,
    failures_json,
    ignore_json,
    ignore_text,
    retry_json,
    retry_lines,
)
from cli import terminal
from cli.arguments import CONFIG_FLAG, JSON_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, opened, tell_notes, working_directory
from domain.errors import UsageError
from domain.layout import BaseLayout

if TYPE_CHECKING:
    from pathlib import Path

    from app.config import Loaded
    from app.outcomes import IndexReport
    from store.failure_port import FailureRecord
    from store.run_port import RunRecord

_REASON_FLAG = Flag("--reason", str, "Only files that failed for this reason.", "REASON")


def _asked_by() -> AskedBy:
    return AskedBy(working_directory(), process_environ().get("HOME", ""))


def call_failures(arguments: Arguments) -> int:
    reason = of_reason(arguments.text("reason"))
    loaded = chosen(arguments.text("config"))
    with opened(loaded) as base:
        counts = [one for one in base.state.failure_counts() if reason in (None, one.reason)]
        if arguments.flag("json"):
            terminal.write_json(json_text(failures_json(listed(base, reason), counts)))
            return 0
        terminal.write(f"{index_line(loaded.located, loaded.settings)}\n{counts_line(counts)}\n")
        for line in failure_lines(listed(base, reason), time.time_ns()):
            terminal.write(line)
    tell_notes(loaded)
    return 0


def call_retry(arguments: Arguments) -> int:
    reason = of_reason(arguments.text("reason"))
    _refuse_other_than_one(arguments)
    loaded = chosen(arguments.text("config"), absent_roots="refuse")
    with opened(loaded) as base:
        if arguments.words:
            rows = named(base, loaded.settings, arguments.words, _asked_by())
        else:
            rows = [row for row in listed(base, reason) if row.standing != "ignored"]
        asked = to_retry(base, loaded.settings, rows)
    return _retry(loaded, asked, as_json=arguments.flag("json"))


def _refuse_other_than_one(arguments: Arguments) -> None:
    """Which files are to be tried again is said in one way."""
    ways = {"PATHS": bool(arguments.words), "--all": arguments.flag("all"), "--reason": bool(arguments.text("reason"))}
    given = [way for way, is_given in ways.items() if is_given]
    if not given:
        raise UsageError(
            "say which files are to be tried again: PATHS, --all, or --reason REASON",
            hint="`knowledge failures` lists them",
        )
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} contradict each other: each says by itself which files are to be tried again",
            hint="leave all but one of them out",
        )


def _retry(loaded: "Loaded", asked: ToRetry, *, as_json: bool) -> int:
    if asked.paths and is_service_up(BaseLayout(loaded.settings.home)):
        return _retry_by_service(loaded, asked, as_json=as_json)
    from app.present_index import report_json, report_text

    if not as_json:
        terminal.write("".join(retry_lines(asked)))
    report = retry(loaded.settings, asked, lambda paths: _index(loaded, paths, is_quiet=as_json)).ran
    if as_json:
        run = None if report is None else report_json(report, loaded.located, loaded.settings)
        terminal.write_json(json_text(retry_json(asked, run)))
    elif report is not None:
        terminal.write(report_text(report, loaded.located, loaded.settings))
        tell_notes(loaded)
    return 0 if report is None else report.exit_status


def _retry_by_service(loaded: "Loaded", asked: ToRetry, *, as_json: bool) -> int:
    """A run of the service looks at the files, and is followed."""
    from app.run_request import RunRequest
    from app.runs import exit_status_of, shown_run
    from cli.following import concluded, handed_over, run_answer

    def run_paths(paths: "tuple[Path, ...]") -> "RunRecord":
        request = RunRequest(paths=tuple(str(path) for path in paths))
        return handed_over(loaded.settings, request, is_quiet=as_json)

    if not as_json:
        terminal.write("".join(retry_lines(asked)))
    run = retry(loaded.settings, asked, run_paths).ran
    if run is None:
        return 0
    if not as_json:
        return concluded(loaded, run, is_quiet=False, as_json=False)
    value = run_answer(shown_run(loaded.settings, run.id))
    terminal.write_json(json_text(retry_json(asked, value)))
    return exit_status_of(run)


def _index(loaded: "Loaded", paths: "tuple[Path, ...]", *, is_quiet: bool) -> "IndexReport":
    from app.index_request import IndexRequest
    from app.indexing import run_index
    from app.present_index import embedding_notice_text
    from app.progress import RunProgress
    from cli.index_verb import terminated_like_interrupted
    from cli.progress import shown

    progress = RunProgress()
    with terminated_like_interrupted(), shown(progress, is_quiet=is_quiet):
        return run_index(
            loaded.settings,
            IndexRequest(paths=paths),
            progress,
            announce=lambda notice: terminal.tell(embedding_notice_text(notice)),
        )


def call_ignore(arguments: Arguments) -> int:
    loaded = chosen(arguments.text("config"))
    undo = arguments.flag("undo")
    with opened(loaded) as base:
        rows: list[FailureRecord] = named(base, loaded.settings, arguments.words, _asked_by())
    changed = ignore(loaded.settings, rows, undo=undo)
    if arguments.flag("json"):
        terminal.write_json(json_text(ignore_json(changed, undo=undo)))
    else:
        terminal.write(ignore_text(changed, rows, undo=undo))
        tell_notes(loaded)
    return 0


_PATHS_HELP = "Paths of the index or of this machine; a folder stands for the files below it that failed."

TABLE_VERBS = (
    TableVerb(
        "failures",
        "List the files that failed: why, how often, since when, and when each is tried again.",
        (_REASON_FLAG, JSON_FLAG, CONFIG_FLAG),
        call_failures,
    ),
    TableVerb(
        "retry",
        "Try files that failed again, now; also those that are quarantined.",
        (
            Flag("--all", bool, "All of them, but for those that are ignored."),
            _REASON_FLAG,
            JSON_FLAG,
            CONFIG_FLAG,
        ),
        call_retry, words_metavar="PATHS", words_help=_PATHS_HELP, most_words=None,
    ),
    TableVerb(
        "ignore",
        "Leave files that failed alone: no run tries them again, nor counts them as failed.",
        (Flag("--undo", bool, "Ignore them no longer."), JSON_FLAG, CONFIG_FLAG),
        call_ignore, words_metavar="PATHS", words_help=_PATHS_HELP, least_words=1, most_words=None,
    ),
)  # fmt: skip
