"""`knowledge backup` and `knowledge restore`: parse and print. The work is done in app.backing_up."""

import time
from pathlib import Path
from typing import Annotated

import typer

from app.backing_up import back_up, restore
from app.present import json_text
from app.present_backup import backup_json, backup_text, restore_json, restore_text
from app.tiers import tier_now
from cli import terminal
from cli.chosen_base import chosen, naming_places, working_directory
from cli.verbs import ConfigOption, JsonOption, verb_app

app = verb_app()


@app.command("backup")
def backup_verb(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE where it is there already.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Write the whole index into one file; runs and searches go on meanwhile."""
    loaded = chosen(config)
    with naming_places(loaded):
        report = back_up(loaded.settings, working_directory() / file, force)
    tier = tier_now(loaded.settings)
    if as_json:
        terminal.write_json(json_text(backup_json(report, tier)))
    else:
        terminal.write(backup_text(report, tier))
    return 0


@app.command("restore")
def restore_verb(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `backup` has written.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Do it where there is an index, which is then gone.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> int:
    """Put the index from a backup in place; your own files are not touched."""
    loaded = chosen(config)
    report = restore(loaded.settings, working_directory() / file, force)
    tier = tier_now(loaded.settings)
    if as_json:
        terminal.write_json(json_text(restore_json(report, tier)))
    else:
        terminal.write(restore_text(report, tier, time.time_ns()))
    return 0
