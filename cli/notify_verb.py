"""`knowledge notify test`: parses and prints; app.notice_delivery does the work."""

import time
from pathlib import Path
from typing import Annotated

import typer

from cli import terminal
from cli.chosen_base import chosen
from domain.errors import ConfigurationError, RefusedError

notify_app = typer.Typer(
    name="notify", help="Who is told when a run fails or recovers (notify in the configuration).", no_args_is_help=True
)


@notify_app.callback()
def _group() -> None:
    """A group, although it has one verb."""


@notify_app.command("test")
def test_verb(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="PATH", help="The configuration; default: the nearest one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Send a test message, and say what came back."""
    from app.notice_delivery import deliver
    from app.present import json_text
    from app.present_notify import delivery_json, delivery_line, trial_message

    settings = chosen(config).settings
    if settings.notify is None:
        raise ConfigurationError(
            "nobody is told anything: the configuration has no notify block",
            hint="write notify: with url_env: or command: below knowledge:",
        )
    delivery = deliver(settings.notify, trial_message(settings, time.time_ns()))
    if as_json:
        terminal.write_json(json_text(delivery_json(delivery)))
        return 0 if delivery.is_delivered else RefusedError.exit_status
    if not delivery.is_delivered:
        raise RefusedError(delivery_line(delivery), hint="mend it, then run `knowledge notify test` again")
    terminal.write(f"{delivery_line(delivery)}\n")
    return 0
