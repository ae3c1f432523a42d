"""`knowledge runs`: what runs have done and are at, and what is asked of one. Parses and prints; app.runs does it."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from app.approving import require_approvable
from app.beside_service import is_service_up
from app.present import json_text
from app.present_pieces import json_pieces
from app.present_runs import (
    asked_text,
    change_lines,
    changes_gone_text,
    held_json,
    run_text,
    runs_json,
    runs_text,
)
from app.run_request import RunRequest
from app.runs import (
    CHANGES,
    ShownRun,
    again,
    are_changes_kept,
    ask_run,
    changes_of,
    exit_status_of,
    recorded_runs,
    require_ended,
    shown_run,
    shown_runs,
)
from cli import terminal
from cli.chosen_base import chosen, naming_places, tell_notes
from cli.following import concluded, followed, handed_over, run_answer
from cli.running_here import carried_out_here
from cli.verbs import ConfigOption, JsonOption
from domain.layout import BaseLayout
from store.state_runs import KEPT_CHANGES_OF_RUNS

if TYPE_CHECKING:
    from app.config import Loaded
    from store.run_port import Wish

CANCEL_SEEN_FOR_S = 10.0
PAUSE_SEEN_FOR_S = 3.0
MOST_RUNS = 500

runs_app = typer.Typer(
    name="runs",
    help="What runs have done and are at; pause, resume, cancel, retry, approve one. Alone: the list.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
RunId = Annotated[int, typer.Argument(metavar="ID", help="The number of the run.", show_default=False, min=1)]
DetachOption = Annotated[bool, typer.Option("--detach", help="Hand it to the service, and do not wait for its end.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress.")]


@runs_app.command("list")
def list_verb(
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=MOST_RUNS, help="How many runs.")] = 20,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """List runs, the newest first: what each is at, or how it has ended."""
    loaded = chosen(config)
    with naming_places(loaded):
        shown = shown_runs(loaded.settings, limit)
    if as_json:
        terminal.write_json(json_text({"status": "ok", **runs_json(shown, time.time_ns())}))
    else:
        terminal.write(runs_text(shown, loaded.located, loaded.settings, time.time_ns()))
        tell_notes(loaded)
    return 0


@runs_app.command("show")
def show_verb(
    run_id: RunId,
    follows: Annotated[bool, typer.Option("--follow", help="Until it has ended; Ctrl-C lets it go on.")] = False,
    changes: Annotated[bool, typer.Option("--changes", help="List the documents that it has changed.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Show one run: what it is at, what it has done, the removals that it holds."""
    loaded = chosen(config)
    status = 0
    with naming_places(loaded):
        if follows:
            status = exit_status_of(followed(loaded.settings, run_id, is_quiet=as_json))
        shown = shown_run(loaded.settings, run_id)
        if as_json:
            _write_json(loaded, shown, has_changes=changes)
        else:
            terminal.write(run_text(shown, time.time_ns()))
            if changes:
                _write_changes(loaded, run_id)
    return status


def _write_changes(loaded: "Loaded", run_id: int) -> None:
    """As they come from state.db: a first run has as many as there are files."""
    with recorded_runs(loaded.settings) as state:
        if not are_changes_kept(state, run_id):
            terminal.write(changes_gone_text(run_id, KEPT_CHANGES_OF_RUNS))
            return
        for change in CHANGES:
            for line in change_lines(change, changes_of(state, run_id, change)):
                terminal.write(line)


def _write_json(loaded: "Loaded", shown: ShownRun, *, has_changes: bool) -> None:
    """The changes as they come from state.db."""
    value = {**run_answer(shown), "removals_held": held_json(shown.held)}
    if not has_changes:
        terminal.write_json(json_text(value))
        return
    run_id = shown.run.id
    with recorded_runs(loaded.settings) as state:
        if not are_changes_kept(state, run_id):
            terminal.write_json(json_text({**value, "changes": None}))
            return
        changes: dict[str, Iterator[str]] = {change: changes_of(state, run_id, change) for change in CHANGES}
        for piece in json_pieces(value, "changes", changes):
            terminal.write_json(piece)


@runs_app.command("pause")
def pause_verb(run_id: RunId, as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """Have a run stand still once the files in work are done; what was written stays and answers."""
    return _ask(run_id, "pause", PAUSE_SEEN_FOR_S, as_json=as_json, config=config)


@runs_app.command("resume")
def resume_verb(run_id: RunId, as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """Have a run that stands still go on."""
    return _ask(run_id, "", PAUSE_SEEN_FOR_S, as_json=as_json, config=config)


@runs_app.command("cancel")
def cancel_verb(run_id: RunId, as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """End a run; what was written stays, and the next run does the rest."""
    return _ask(run_id, "cancel", CANCEL_SEEN_FOR_S, as_json=as_json, config=config)


def _ask(run_id: int, wish: "Wish", within_s: float, *, as_json: bool, config: ConfigOption) -> int:
    loaded = chosen(config)
    with naming_places(loaded):
        run = ask_run(loaded.settings, run_id, wish, within_s=within_s)
    if as_json:
        terminal.write_json(json_text({**run_answer(ShownRun(run)), "exit_status": 0}))
    else:
        terminal.write(asked_text(run, wish, time.time_ns()))
    return 0


@runs_app.command("retry")
def retry_verb(
    run_id: RunId,
    detach: DetachOption = False,
    is_quiet: QuietOption = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Do a run that has ended once more: the same kind, the same roots and files."""
    loaded = chosen(config, absent_roots="refuse")
    with naming_places(loaded), recorded_runs(loaded.settings) as state:
        require_ended(BaseLayout(loaded.settings.home), state, run_id)
        request = again(state, run_id)
    return _carry_out(loaded, request, is_quiet=is_quiet, as_json=as_json, detach=detach)


@runs_app.command("approve")
def approve_verb(
    run_id: RunId,
    digest: Annotated[
        str, typer.Option("--digest", metavar="HEX", help="Only if this is the list, as `runs show` names it.")
    ] = "",
    detach: DetachOption = False,
    is_quiet: QuietOption = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Let the documents go whose removal a run has held: exactly those, and only where the files are still gone."""
    loaded = chosen(config, absent_roots="refuse")
    with naming_places(loaded), recorded_runs(loaded.settings) as state:
        run, held = require_approvable(state, run_id, digest.lower())
    request = RunRequest(roots=run.roots, approve=run_id, digest=held.digest)
    return _carry_out(loaded, request, is_quiet=is_quiet, as_json=as_json, detach=detach)


def _carry_out(loaded: "Loaded", request: RunRequest, *, is_quiet: bool, as_json: bool, detach: bool) -> int:
    """By the service, where it is up; else here and now."""
    if not is_service_up(BaseLayout(loaded.settings.home)):
        return carried_out_here(loaded, request, is_quiet=is_quiet, as_json=as_json, detach=detach)
    run = handed_over(loaded.settings, request, is_quiet=is_quiet or as_json, detaches=detach)
    return concluded(loaded, run, is_quiet=is_quiet, as_json=as_json)
