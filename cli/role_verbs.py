"""The roles of a service: parse, and start the one that is named; server.role_process runs it."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.config import Loaded
from cli import terminal
from cli.chosen_base import chosen
from cli.verbs import verb_app
from domain.errors import UsageError
from domain.settings import host_to_ask

if TYPE_CHECKING:
    from collections.abc import Callable

# by name: the server stands beside the command line, and only these verbs pay for its imports
ROLE_MODULE = "server.role_process"
SUPERVISOR_MODULE = "server.up"
CHECK_TIMEOUT_S = 4.0

app = verb_app()

Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The configuration to use.")]
Check = Annotated[bool, typer.Option("--check", help="Ask the role that runs here whether it is ready; 0 or 1.")]
HealthHost = Annotated[
    str | None, typer.Option("--health-host", metavar="ADDRESS", help="Where its health page listens.")
]
HealthPort = Annotated[
    int | None,
    typer.Option("--health-port", metavar="N", min=0, max=65535, help="The port of its health page; 0: none."),
]
Log = Annotated[
    Literal["console", "json"], typer.Option("--log-format", help="How its log on standard error is written.")
]
WithInput = Annotated[
    bool, typer.Option("--with-input", help="End when standard input does: whoever began this is gone.")
]


SUMMARIES = {
    "scheduler": "Carry out the runs that are queued or due, one at a time, until SIGTERM; a second one stands by.",
    "worker": "Read, cut and embed files for whichever run goes on, until SIGTERM; start as many as you like.",
    "writer": "Hold the index's lock and commit what workers have made, until SIGTERM; a second one stands by.",
    "serve": "Answer over HTTP, with pages for a browser, until SIGTERM; with or without a service of other roles.",
}


def _add_role(role: str, summary: str) -> None:
    """The verb of a role: all of them take the same options."""

    @app.command(role, help=summary)
    def verb(
        config: Config = None,
        check: Check = False,
        health_host: HealthHost = None,
        health_port: HealthPort = None,
        log_format: Log = "console",
        with_input: WithInput = False,
    ) -> int:
        return _role(role, config, (health_host, health_port), check=check, log=log_format, with_input=with_input)


for _name, _summary in SUMMARIES.items():
    _add_role(_name, _summary)


@app.command("up")
def up_verb(
    config: Config = None,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", min=1, max=256, help="Worker processes.")
    ] = None,
    health_port: HealthPort = None,
    log_format: Log = "console",
) -> int:
    """Run the whole service on this machine: scheduler, writer, workers, health page and, where none is configured,
    the queue; until SIGTERM or Ctrl-C."""
    loaded = chosen(str(config) if config is not None else None)
    run: Callable[..., int] = import_module(SUPERVISOR_MODULE).up
    return run(loaded, workers=workers, health_port=health_port, log_format=log_format)


def _role(
    role: str,
    config: Path | None,
    health: tuple[str | None, int | None],
    *,
    check: bool,
    log: str,
    with_input: bool,
) -> int:
    loaded = chosen(str(config) if config is not None else None, absent_roots="note")
    host, port = health_place(loaded, role, *health)
    if check:
        return _ask(role, host, port)
    serve: Callable[..., int] = import_module(ROLE_MODULE).serve
    return serve(loaded, role, health=(host, port) if port else None, log_format=log, with_input=with_input)


def health_place(loaded: Loaded, role: str, host: str | None, port: int | None) -> tuple[str, int]:
    """Where the health page of a role listens: as asked for, else as configured."""
    server = loaded.settings.server
    usual_host, usual_port = (server.host, server.port) if role == "serve" else (server.health_host, server.health_port)
    return host or usual_host, usual_port if port is None else port


def _ask(role: str, host: str, port: int) -> int:
    """Whether the role that listens here says that it is ready; for the health check of a container."""
    if not port:
        raise UsageError("without a health page nobody can be asked", hint="give --health-port")
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(host_to_ask(host), port, timeout=CHECK_TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        said = answer.read(4096).decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        terminal.tell(f"no {role} answers on port {port}: {str(error) or type(error).__name__}\n")
        return 1
    finally:
        connection.close()
    terminal.write(f"{said}\n")
    return 0 if answer.status == 200 else 1
