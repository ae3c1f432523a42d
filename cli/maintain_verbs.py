"""The operator's verbs (rm, reset, rebuild, compact, doctor): parse and print.

The work is done in app.maintenance and app.doctor.
"""

from typing import Annotated

import typer

from app import maintenance
from app.beside_service import has_serving_writer, is_service_up, refuse_beside_service
from app.config import Loaded
from app.present import json_text
from app.present_checks import doctor_json, doctor_text
from app.present_maintenance import (
    compact_json,
    compact_text,
    rebuild_json,
    rebuild_text,
    remove_json,
    remove_text,
    reset_json,
    reset_text,
)
from app.run_request import RunRequest
from app.tiers import tier_now
from cli import terminal
from cli.chosen_base import chosen, naming_places, working_directory
from cli.index_verb import naming_absent_scheduler, no_service_to_detach_to
from cli.reports import print_report, report_of_service
from cli.verbs import ConfigOption, JsonOption, verb_app
from domain.errors import UsageError
from domain.layout import BaseLayout

app = verb_app()
DetachOption = Annotated[
    bool, typer.Option("--detach", help="With a service: hand it over, and do not wait for its end.")
]


@app.command("rm")
def rm_verb(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATHS", help="Documents or folders: keys, or paths of this machine.", show_default=False
        ),
    ] = None,
    root: Annotated[
        str, typer.Option("--root", metavar="NAME", help="A whole root, with all that is known of it.")
    ] = "",
    purge: Annotated[
        bool, typer.Option("--purge", help="Leave nothing of their text in the index's files, and search them for it.")
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Take documents or a whole root out of the index; the files themselves stay."""
    if not paths and not root:
        raise UsageError("there is nothing to remove", hint="name documents or folders, or a root with --root")
    loaded = chosen(config)
    with naming_places(loaded):
        report = _taken_out(loaded, paths or [], root, purge=purge)
    if report is None:
        return _goes_on("removal", as_json=as_json)
    print_report(report, loaded.settings, remove_text, remove_json, as_json=as_json)
    return report.exit_status


def _taken_out(loaded: Loaded, paths: list[str], root: str, *, purge: bool) -> maintenance.RemoveReport | None:
    """None: a service's writer is at it still."""
    cwd, layout = working_directory(), BaseLayout(loaded.settings.home)
    if purge:
        refuse_beside_service(layout)
        return maintenance.purge_paths(loaded.settings, cwd, paths, root or None)
    if has_serving_writer(layout):
        from app.service_commands import remove_by_service

        return remove_by_service(loaded.settings, cwd, paths, root or None)
    return maintenance.remove_paths(loaded.settings, cwd, paths, root or None)


def _goes_on(what: str, *, as_json: bool) -> int:
    """A service's writer does what was asked for when it comes to it."""
    if as_json:
        terminal.write_json(json_text({"status": "asked_for", "exit_status": 0}))
    else:
        terminal.write(
            f"{what} asked for: the service goes on with it; `knowledge runs` and `knowledge status` say more\n"
        )
    return 0


@app.command("reset")
def reset_verb(
    force: Annotated[bool, typer.Option("--force", help="Do it; without this, only say what would go.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Empty the index; files, roots and the history of runs stay."""
    loaded = chosen(config)
    with naming_places(loaded):
        report = maintenance.reset(loaded.settings, force)
    print_report(report, loaded.settings, reset_text, reset_json, as_json=as_json)
    return 0


@app.command("rebuild")
def rebuild_verb(as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """Make the full-text tables again from the stored text; no file is read."""
    loaded = chosen(config)
    with naming_places(loaded):
        if has_serving_writer(BaseLayout(loaded.settings.home)):
            from app.service_commands import rebuild_by_service

            report = rebuild_by_service(loaded.settings)
        else:
            report = maintenance.rebuild(loaded.settings)
    if report is None:
        return _goes_on("rebuild", as_json=as_json)
    print_report(report, loaded.settings, rebuild_text, rebuild_json, as_json=as_json)
    return 0


@app.command("compact")
def compact_verb(detach: DetachOption = False, as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """Make the index small and quick to read; searches go on meanwhile."""
    loaded = chosen(config)
    if is_service_up(BaseLayout(loaded.settings.home)):
        done = report_of_service(
            loaded, RunRequest(kind="compact"), maintenance.CompactReport, detaches=detach, as_json=as_json
        )
        return done if isinstance(done, int) else _compacted(loaded, done, as_json=as_json)
    if detach:
        raise no_service_to_detach_to()
    return compact_here(loaded, as_json=as_json)


def compact_here(loaded: Loaded, *, as_json: bool) -> int:
    with naming_places(loaded), naming_absent_scheduler(loaded):
        report = maintenance.compact(loaded.settings)
    return _compacted(loaded, report, as_json=as_json)


def _compacted(loaded: Loaded, report: maintenance.CompactReport, *, as_json: bool) -> int:
    print_report(report, loaded.settings, compact_text, compact_json, as_json=as_json)
    return 0


@app.command("doctor")
def doctor_verb(as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """Find out what is wrong, and what to do about it; changes nothing."""
    from app.doctor import diagnose, exit_status

    loaded = chosen(config)
    results = diagnose(loaded.settings, loaded.located)
    status = exit_status(results)
    tier = tier_now(loaded.settings)
    if as_json:
        terminal.write_json(json_text(doctor_json(results, tier, status)))
    else:
        terminal.write(doctor_text(results, tier))
    return status
