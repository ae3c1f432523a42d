"""Server-sent events: one answer that goes on, and takes no thread while nothing happens."""

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from anyio import CancelScope, WouldBlock, create_task_group, move_on_after, sleep
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.present import Json
from domain.errors import KnowledgeError
from server.http.answers import HEADERS, json_line, problem
from server.http.parts import HttpParts

LOOK_EVERY_S = 1.0  # at most one event a second
BEAT_EVERY_S = 15.0  # so that a proxy or a dead client is noticed
LIVES_S = 3600.0  # then the client comes back, and is asked again who it is
RECONNECT_MS = 2000
CLOSES_WITHIN_S = 1.0  # of a client that does not read, when the service ends
HINT = "close one; or look again and again, with GET /v1/runs"


class TooManyStreamsError(KnowledgeError):
    """As many streams are open as there may be."""

    code = "too_many_streams"
    http_status = 503


class Seen(NamedTuple):
    """What there is to tell now. It is told where `lasting` is not what it was."""

    data: Json
    lasting: Json
    name: str = ""  # of the event; "" = one without a name
    end: Json | None = None  # nothing follows: the data of the last event, whose name is `end`


class EventStream(Response):
    """Asks `look` every second, until it says that nothing follows, the client leaves or the service ends."""

    media_type = "text/event-stream"

    def __init__(self, parts: HttpParts, look: Callable[[], Awaitable[Seen]]) -> None:
        super().__init__(headers={**HEADERS, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._parts = parts
        self._look = look

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b""})
            return
        borrower = object()
        try:
            self._parts.streams.acquire_on_behalf_of_nowait(borrower)
        except WouldBlock:
            most = int(self._parts.streams.total_tokens)
            refusal = problem(TooManyStreamsError(f"{most} streams of events are open, and no more may be", hint=HINT))
            refusal.headers["retry-after"] = "10"
            await refusal(scope, receive, send)
            return
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(self._until_gone, receive, tasks.cancel_scope)
                tasks.start_soon(self._until_closing, tasks.cancel_scope)
                with move_on_after(LIVES_S):
                    await self._tell(send)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                tasks.cancel_scope.cancel()
        finally:
            self._parts.streams.release_on_behalf_of(borrower)

    async def _until_gone(self, receive: Receive, others: CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        if not self._parts.closing.is_set():  # which reads as if it were gone: then the answer is brought to its end
            others.cancel()

    async def _until_closing(self, others: CancelScope) -> None:
        """The stream ends by itself then; one whose client does not read is left."""
        await self._parts.closing.wait()
        await sleep(CLOSES_WITHIN_S)
        others.cancel()

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await _send(send, f"retry: {RECONNECT_MS}\n\n")
        told: Json | None = None
        told_s = time.monotonic()
        while not self._parts.closing.is_set():
            seen = await self._look()
            if seen.lasting != told:
                await _send(send, _event(seen.name, seen.data))
                told, told_s = seen.lasting, time.monotonic()
            elif time.monotonic() - told_s >= BEAT_EVERY_S:
                await _send(send, ": goes on\n\n")
                told_s = time.monotonic()
            if seen.end is not None:
                await _send(send, _event("end", seen.end))
                return
            with move_on_after(LOOK_EVERY_S):
                await self._parts.closing.wait()


def _event(name: str, data: Json) -> str:
    """JSON has no line breaks of its own."""
    return f"{f'event: {name}' + chr(10) if name else ''}data: {json_line(data)}\n"


async def _send(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
