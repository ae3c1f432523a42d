"""The operator's verbs (rm, reset, rebuild, compact, verify, doctor): parse and print.

The work is done in app.maintenance and app.doctor.
"""

from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from app import maintenance
from app.present import Json, json_text, not_built_message, tier_line
from app.present_maintenance import (
    checks_json,
    compact_json,
    compact_text,
    doctor_text,
    rebuild_json,
    rebuild_text,
    remove_json,
    remove_text,
    reset_json,
    reset_text,
    verify_json,
    verify_text,
)
from app.tiers import tier_now
from cli import terminal
from cli.chosen_base import chosen, naming_places, working_directory
from cli.verbs import ConfigOption, JsonOption, verb_app
from domain.errors import NotBuiltError, UsageError
from domain.settings import Settings
from domain.status import Tier

app = verb_app()
Report = TypeVar("Report")


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
        take_out = maintenance.purge_paths if purge else maintenance.remove_paths
        report = take_out(loaded.settings, working_directory(), paths or [], root or None)
    _print(report, loaded.settings, remove_text, remove_json, as_json=as_json)
    return report.exit_status


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
    _print(report, loaded.settings, reset_text, reset_json, as_json=as_json)
    return 0


@app.command("rebuild")
def rebuild_verb(as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """Make the full-text tables again from the stored text; no file is read."""
    loaded = chosen(config)
    with naming_places(loaded):
        report = maintenance.rebuild(loaded.settings)
    _print(report, loaded.settings, rebuild_text, rebuild_json, as_json=as_json)
    return 0


@app.command("compact")
def compact_verb(as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """Make the index small and quick to read; searches go on meanwhile."""
    loaded = chosen(config)
    with naming_places(loaded):
        report = maintenance.compact(loaded.settings)
    _print(report, loaded.settings, compact_text, compact_json, as_json=as_json)
    return 0


@app.command("verify")
def verify_verb(
    deep: Annotated[bool, typer.Option("--deep", help="Read every text, and compare it with its hash.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Check that the index is whole; changes nothing."""
    loaded = chosen(config)
    report = maintenance.verify(loaded.settings, deep)
    if not report.is_built:
        message, hint = not_built_message(loaded.located, loaded.settings)
        raise NotBuiltError(message, hint=hint)
    _print(report, loaded.settings, verify_text, verify_json, as_json=as_json)
    return report.exit_status


@app.command("doctor")
def doctor_verb(as_json: JsonOption = False, config: ConfigOption = None) -> int:
    """Find out what is wrong, and what to do about it; changes nothing."""
    from app.doctor import diagnose, exit_status

    loaded = chosen(config)
    results = diagnose(loaded.settings, loaded.located)
    status = exit_status(results)
    tier = tier_now(loaded.settings)
    if as_json:
        value = {"tier": tier_line(tier), "exit_status": status, "checks": checks_json(results)}
        terminal.write_json(json_text(value))
    else:
        terminal.write(doctor_text(results, tier))
    return status


def _print(
    report: Report,
    settings: Settings,
    as_text: Callable[[Report, Tier], str],
    as_value: Callable[[Report, Tier], Json],
    *,
    as_json: bool,
) -> None:
    tier = tier_now(settings)
    if as_json:
        terminal.write_json(json_text(as_value(report, tier)))
    else:
        terminal.write(as_text(report, tier))
