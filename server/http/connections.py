"""Connections of the HTTP service: each has a while for the head of a request and for taking in an answer, and where
there are too many, the one that has said nothing for longest is let go."""

import asyncio
import contextlib
import socket
import sys
import time
from collections.abc import Iterator
from http import HTTPStatus

import h11
import msgspec
import uvicorn
from anyio import Event
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from server.http.limits import MAX_HEAD_BYTES, SECURITY_HEADERS

HEAD_WITHIN_S = 10.0
IDLE_S = 15.0  # between two requests
STALLED_S = 30.0  # in which a client takes in nothing of an answer
LINGER_S = 2.0  # for a client that still sends when its answer is sent: it would else not get to see it
MAX_LINGER_BYTES = 1024 * 1024
MOST_CONNECTIONS = 512
DRAIN_S = 6.0  # a role has ten seconds in all
_DETAILS = {431: "the head of this request is too large"}


def most_connections() -> int:
    """A quarter of the files that the process may open: the index and the queue need some."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft < 0 else max(32, min(MOST_CONNECTIONS, soft // 4))


async def answer_at(listening: socket.socket, app: ASGIApp, *, closing: Event) -> None:
    """Serve until `closing` is set; then no connection is taken any more, and what is being answered is let end, for
    DRAIN_S at most. Event streams are to end by the same event."""
    config = uvicorn.Config(
        app,
        http=PatientConnection,
        ws="none",
        access_log=False,
        log_config=None,
        log_level="critical",  # who sends nonsense writes nothing into the role's log
        lifespan="on",
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_keep_alive=int(IDLE_S),
        timeout_graceful_shutdown=int(DRAIN_S),
        server_header=False,
        proxy_headers=False,  # server.http.access_hosts believes those that are configured
    )
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve([listening]))
    ending = asyncio.ensure_future(closing.wait())
    try:
        await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        for task in (serving, ending):
            task.cancel()
        await asyncio.gather(serving, ending, return_exceptions=True)


class _Server(uvicorn.Server):
    """The signals are the role's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class PatientConnection(H11Protocol):
    """Within the times above."""

    since_s = 0.0  # of its last request, or its beginning
    _head: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.since_s = time.monotonic()
        super().connection_made(_Lingering(transport, self))  # type: ignore[arg-type]
        self._head = self.loop.call_later(HEAD_WITHIN_S, self._leave)
        if len(self.connections) > most_connections():
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head, self._stalled):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        lingering: _Lingering = self.transport  # type: ignore[assignment]
        if lingering.is_closing():
            lingering.dropped(len(data))
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self.since_s = time.monotonic()
            self._heard_head()
        elif self._head is None and self.conn.trailing_data[0]:
            self._head = self.loop.call_later(HEAD_WITHIN_S, self._leave)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()

    def send_400_response(self, msg: str) -> None:
        """h11 says what was wrong with the bytes in the error that is being handled."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # what it would still say could not be told from this
            cycle.message_event.set()
        with contextlib.suppress(h11.LocalProtocolError):  # an answer has begun
            self.transport.write(self._refusal(HTTPStatus(status)))
        self.transport.close()

    def is_waiting(self) -> bool:
        """Whether nothing of ours is lost with it: it has asked for nothing, or not to the end."""
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is None or cycle.response_complete or (cycle.more_body and not cycle.response_started)

    def _refusal(self, status: HTTPStatus) -> bytes:
        detail = _DETAILS.get(status, "this is not understood as a request in HTTP")
        code = "too_large" if status == 431 else "usage"
        body = msgspec.json.encode(
            {"type": "about:blank", "title": code, "status": status, "detail": detail, "code": code, "hint": None}
        )
        headers = {
            **SECURITY_HEADERS,
            "content-type": "application/problem+json",
            "content-length": str(len(body)),
            "cache-control": "no-store",
            "connection": "close",
        }
        head = h11.Response(status_code=status, headers=list(headers.items()), reason=status.phrase.encode())
        parts = (self.conn.send(event) for event in (head, h11.Data(data=body), h11.EndOfMessage()))
        return b"".join(part or b"" for part in parts)

    def _heard_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _leave(self) -> None:
        """Too slow with the head of a request; whatever was answered before is answered."""
        self._head = None
        if self.is_waiting():
            self.transport.close()
            self.loop.call_later(LINGER_S, self.transport.abort)

    def _make_room(self) -> None:
        others = [it for it in self.connections if isinstance(it, PatientConnection) and it.is_waiting()]
        oldest = min(others, key=lambda it: it.since_s)
        oldest.transport.abort()
        self.connections.discard(oldest)


class _Lingering:
    """A transport that, closed while the client still sends, ends its own half first and lets the client see why."""

    def __init__(self, transport: asyncio.Transport, connection: PatientConnection) -> None:
        self._transport, self._connection = transport, connection
        self._is_closing = False
        self._dropped_bytes = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._is_closing or self._transport.is_closing()

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        if self._connection.conn.their_state not in (h11.SEND_BODY, h11.ERROR) or self._transport.is_closing():
            self._transport.close()
            return
        self._transport.write_eof()
        self._transport.resume_reading()
        self._connection.loop.call_later(LINGER_S, self._transport.abort)

    def dropped(self, count: int) -> None:
        self._dropped_bytes += count
        if self._dropped_bytes > MAX_LINGER_BYTES:
            self._transport.abort()
