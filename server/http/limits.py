"""Limits of a request: the size of head and body, the time for the body, how many at a time. And what every answer has.

Times and sizes of what comes before a head is whole are the connection's (server.http.connections).
"""

import asyncio
import logging
import traceback
from collections.abc import Sequence
from contextlib import suppress

from anyio import Event
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.refusals import RequestRefusedError, refused

MAX_HEAD_BYTES = 16 * 1024
MAX_HEADERS = 100
MAX_TARGET_BYTES = 8 * 1024
MAX_BODY_BYTES = 64 * 1024
BODY_WITHIN_S = 20.0
MOST_REQUESTS = 100  # that are worked on at a time
MOST_STREAMS = 64  # of events: each stays open
RETRY_AFTER_S = "1"
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",  # pages have their own
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
CLOSE = {"connection": "close"}


class Limits:
    """What goes on in a service now. Used from one event loop. `closing` is set when event streams are to end."""

    def __init__(self, closing: Event) -> None:
        self.closing = closing
        self.requests = 0
        self.streams = 0


def limited(app: ASGIApp, limits: Limits) -> ASGIApp:
    """The app within limits. Whatever it raises is answered in words of ours, without a trace or a path."""

    async def within(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        exchange = _Exchange(limits, scope, receive, send)
        try:
            await exchange.answer(app)
        finally:
            exchange.leave()

    return within


def head_refusal(scope: Scope) -> Response | None:
    """What is wrong with a request by its head alone; its body, if any, is not read then."""
    headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
    target = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    if target > MAX_TARGET_BYTES:
        return refused(414, "too_large", f"an address has at most {MAX_TARGET_BYTES:,} bytes", headers=CLOSE)
    if len(headers) > MAX_HEADERS or sum(len(name) + len(value) + 4 for name, value in headers) > MAX_HEAD_BYTES:
        detail = f"a request has at most {MAX_HEADERS} headers, of {MAX_HEAD_BYTES:,} bytes in all"
        return refused(431, "too_large", detail, headers=CLOSE)
    named = Headers(scope=scope)
    if "transfer-encoding" in named and "content-length" in named:
        return refused(400, "usage", "a body has one length", "Content-Length or Transfer-Encoding", headers=CLOSE)
    if int(named.get("content-length", "0")) > MAX_BODY_BYTES:
        return body_too_large()
    return None


def body_too_large() -> Response:
    return refused(413, "too_large", f"a body has at most {MAX_BODY_BYTES:,} bytes", headers=CLOSE)


class _Exchange:
    """One request and its answer."""

    def __init__(self, limits: Limits, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self._limits = limits
        self._scope, self._receive, self._send = scope, receive, send
        self._has_more = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        self._read_bytes = 0
        self._body_ends_s = asyncio.get_running_loop().time() + BODY_WITHIN_S
        self._has_place = self._is_stream = self._is_started = False
        self._refusal: Response | None = None

    async def answer(self, app: ASGIApp) -> None:
        self._refusal = head_refusal(self._scope)
        if self._refusal is None:
            self._refusal = self._take_place()
        if self._refusal is None:
            try:
                await app(self._scope, self.receive, self.send)
                return
            except RequestRefusedError as refusal:
                self._refusal = refusal.response
            except Exception as error:
                if self._refusal is None:
                    told_fault(error)
                    self._refusal = refused(500, "unexpected", "an unexpected error; the service's log says where")
                if self._is_started:
                    raise
        if not self._is_started:
            await self._refusal(self._scope, self.receive, self.send)

    def leave(self) -> None:
        self._limits.requests -= self._has_place
        self._limits.streams -= self._is_stream
        self._has_place = self._is_stream = False

    async def receive(self) -> Message:
        """Raises RequestRefusedError for a body that is too large or takes too long."""
        if not self._has_more:
            return await self._told_to_end() if self._is_stream else await self._receive()
        self.leave()  # who is waited for is not worked on
        try:
            async with asyncio.timeout_at(self._body_ends_s):
                message = await self._receive()
        except TimeoutError:
            raise self._refused(refused(408, "too_slow", "the body did not come in time", headers=CLOSE)) from None
        self._read_bytes += len(message.get("body", b""))
        if self._read_bytes > MAX_BODY_BYTES:
            raise self._refused(body_too_large())
        self._has_more = message.get("more_body", False)
        if (full := self._take_place()) is not None:
            raise self._refused(full)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            if headers.get("content-type", "").startswith("text/event-stream"):
                self._become_stream()
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            if self._has_more:
                headers["connection"] = "close"  # what else comes is not read
            message = {**message, "headers": headers.raw}
            self._is_started = True
        await self._send(message)

    def _become_stream(self) -> None:
        """It no longer counts as one that is worked on. Raises RequestRefusedError where there are too many."""
        if self._limits.streams >= MOST_STREAMS:
            raise self._refused(busy("as many event streams are open as there may be"))
        self.leave()
        self._is_stream = True
        self._limits.streams += 1

    def _take_place(self) -> Response | None:
        if self._limits.requests >= MOST_REQUESTS:
            return busy("as many requests are worked on as there may be")
        self._has_place = True
        self._limits.requests += 1
        return None

    def _refused(self, response: Response) -> RequestRefusedError:
        self._refusal = response
        return RequestRefusedError(response)

    async def _told_to_end(self) -> Message:
        """The client is gone, or the service is ending: for a stream both are the same."""
        gone = asyncio.ensure_future(self._receive())
        ending = asyncio.ensure_future(self._limits.closing.wait())
        try:
            await asyncio.wait([gone, ending], return_when=asyncio.FIRST_COMPLETED)
            return gone.result() if gone.done() else {"type": "http.disconnect"}
        finally:
            for task in (gone, ending):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task


def busy(detail: str) -> Response:
    """503, to be asked again soon."""
    return refused(503, "busy", detail, "ask again in a little", headers={"retry-after": RETRY_AFTER_S})


def told_fault(error: BaseException) -> None:
    """Where a fault of ours is, for the log; its words may be those of a document."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    logging.getLogger("server.http").error(f"a request has ended with {type(error).__name__}{place}")
