"""The HTTP server of a health page: a few connections at a time, none of them for long."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from app.roles.runtime import Runtime
from domain.errors import UsageError
from server.health import health_app

MAX_CONNECTIONS = 32
CONNECTION_LIVES_S = 10.0  # an answer takes milliseconds: whoever sends a request byte by byte holds a place no longer


HEALTH_PORT_HINT = "choose another with --health-port; 0: no health page"


def bound_socket(host: str, port: int, *, what: str = "the health page", hint: str = HEALTH_PORT_HINT) -> socket.socket:
    """Listening. Raises UsageError where it cannot, which says what should have listened."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as undo:
            listening = undo.enter_context(socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()
            undo.pop_all()
    except (OSError, UnicodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "no such name"
        raise UsageError(
            f"{what} cannot listen on port {port} of {host}: {cause}",
            hint=hint,
        ) from None
    return listening


async def show_health(runtime: Runtime, metrics: Callable[[], bytes], listening: socket.socket) -> None:
    """Until cancelled."""
    config = uvicorn.Config(
        health_app(runtime, metrics),
        http=_BriefConnection,
        ws="none",
        access_log=False,
        log_config=None,
        log_level="critical",  # who sends nonsense writes nothing into the role's log
        lifespan="off",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    await _Server(config).serve([listening])


class _Server(uvicorn.Server):
    """The signals are the role's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _BriefConnection(H11Protocol):
    """Ends after a while, whatever was sent; an answer that is being made is let end."""

    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._end = self.loop.call_later(CONNECTION_LIVES_S, self._leave)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._end is not None:
            self._end.cancel()
        super().connection_lost(exc)

    def _leave(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request is whole
        if cycle is None or cycle.response_complete:
            self.transport.close()
        else:
            cycle.keep_alive = False
