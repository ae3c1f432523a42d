"""`knowledge config`: init, check, show, trust. Parses and prints; app.config_report does the work."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from app.config import locate, process_environ, read
from app.config_origins import shown
from cli import terminal

config_app = typer.Typer(
    name="config", help="Write, check, show and trust a configuration (knowledge.yaml).", no_args_is_help=True
)

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="PATH", help="The configuration; default: the nearest one.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@config_app.command("init")
def init_verb(
    path: Annotated[
        Path,
        typer.Argument(metavar="[PATH]", show_default=False, help="The file, or the folder that gets one."),
    ] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Write a commented knowledge.yaml; an existing file is never overwritten."""
    from app.config_report import init

    written = str(init(path))
    if as_json:
        _echo_json({"status": "written", "config_path": written})
        return
    typer.echo(f"wrote {shown(written, _WIDE)}")


@config_app.command("check")
def check_verb(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Say everything that is wrong with the configuration, with file, line and key."""
    from app.config_report import check

    cwd, environ = Path.cwd(), process_environ()
    located = locate(cwd, config=config, environ=environ)
    checked = check(located, environ, cwd=cwd)
    if as_json:
        path = located.config_path
        _echo_json(
            {
                "status": "ok",
                "config_path": None if path is None else str(path),
                "enabled": checked.loaded.settings.enabled,
                "trusted": checked.trusted,
                "notes": list(checked.notes),
            }
        )
        return
    typer.echo(f"{shown(located.words(), _WIDE)}: no errors")
    for note in checked.notes:
        typer.echo(f"note: {note}")


@config_app.command("show")
def show_verb(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show every value in effect and where it came from; secrets are masked."""
    from app.config_report import effective_values

    cwd, environ = Path.cwd(), process_environ()
    loaded = read(locate(cwd, config=config, environ=environ), environ, cwd=cwd, absent_roots="note")
    values = effective_values(loaded, environ)
    if as_json:
        rows = [{"key": row.key, "value": row.value, "origin": str(row.origin)} for row in values]
        _echo_json({"status": "ok", "base": loaded.located.words(), "values": rows, "notes": list(loaded.notes)})
        return
    typer.echo(f"# {shown(loaded.located.words(), _WIDE)}")
    for row in values:
        words = shown(json.dumps(row.value, ensure_ascii=False), _WIDE)
        typer.echo(f"{row.key} = {words}  # {row.origin}")
    for note in loaded.notes:
        typer.echo(f"# note: {note}")


@config_app.command("trust")
def trust_verb(
    path: Annotated[
        Path | None, typer.Argument(metavar="[PATH]", help="The configuration; default: the nearest one.")
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Trust a configuration as it is now; after a change it has to be trusted again."""
    from app.config_report import trusted_path
    from app.config_trust import trust

    environ = process_environ()
    located = locate(Path.cwd(), config=path or config, environ=environ)
    trusted = str(trust(trusted_path(located), environ))
    if as_json:
        _echo_json({"status": "trusted", "config_path": trusted})
        return
    typer.echo(f"trusted {shown(trusted, _WIDE)}")


_WIDE = 4000  # characters; a path is never cut in practice


def _echo_json(value: Any) -> None:
    from app.present import json_text

    terminal.write_json(json_text(value))
