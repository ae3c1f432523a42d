"""The HTTP service as a process: the serve role beside the listener that answers for it."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial

import msgspec

from app.config import Loaded
from app.roles.runtime import Runtime, beside
from app.roles.serve_role import serve_role
from domain.settings import ServerSettings, Settings, host_to_ask
from server.ending_in_time import ended_in_time
from server.health import health_app
from server.health_server import bound_socket
from server.http.access import refuse_open_place
from server.http.connections import answer_at
from server.http.service import http_parts, mcp_only_app, service_app

MCP_PORT_HINT = "choose another with mcp.port; without one /mcp is on the service's own port"


def at_place(loaded: Loaded, host: str, port: int) -> Loaded:
    """The settings as they are in effect: an option of the command line stands above the configuration."""
    server = msgspec.structs.replace(loaded.settings.server, host=host, port=port)
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, server=server))


def refuse_unfit(settings: Settings) -> None:
    """Raises ConfigurationError before anything listens: a token that is none, a place that would be open to others."""
    refuse_open_place(settings)


def address_to_open(server: ServerSettings, port: int) -> str:
    host = host_to_ask(server.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{server.base_path}/"


async def serving(loaded: Loaded, runtime: Runtime, rendered: Callable[[], bytes], listening: socket.socket) -> None:
    """The role to its end. Questions that are being answered then are answered; event streams end.

    Raises KnowledgeError where the role cannot go on.
    """
    server, mcp = loaded.settings.server, loaded.settings.mcp
    with http_parts(loaded, lambda: runtime.status.queue) as parts:
        apps = [(service_app(parts, health_app(runtime, rendered)), listening)]
        if mcp.port and mcp.tools:
            apps.append((mcp_only_app(parts), bound_socket(server.host, mcp.port, what="MCP", hint=MCP_PORT_HINT)))
            runtime.log.info("listens", address=f"{address_to_open(server, mcp.port)}mcp")
        runtime.log.info("listens", address=address_to_open(server, server.port))
        answering = [asyncio.ensure_future(answer_at(place, app, closing=parts.closing)) for app, place in apps]
        role = partial(ended_in_time, runtime, partial(serve_role, runtime))
        try:
            await beside(role, {f"http{number}": partial(asyncio.shield, it) for number, it in enumerate(answering)})
        finally:
            parts.closing.set()
            await asyncio.gather(*answering, return_exceptions=True)
