"""Server-sent events read from the service itself, without a socket, for as long as a test wants."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message

WITHIN_S = 30.0


class Event(NamedTuple):
    name: str  # "" = without one
    data: Any


class Stream:
    """An answer as it comes."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.text = ""
        self.leaves = asyncio.Event()
        self._grows = asyncio.Event()
        self._asked = False
        self._taken = 0

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.text += message["body"].decode()
        self._grows.set()

    async def until(self, condition: Callable[[str], bool]) -> None:
        """Wait until it holds of all that has come."""
        async with asyncio.timeout(WITHIN_S):
            while not condition(self.text):
                await self._grows.wait()
                self._grows.clear()

    async def next(self) -> Event:
        """The event behind the one that was taken last."""
        await self.until(lambda text: len(events_in(text)) > self._taken)
        self._taken += 1
        return events_in(self.text)[self._taken - 1]


def events_in(text: str) -> list[Event]:
    """The whole ones, as a browser reads them."""
    events: list[Event] = []
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            events.append(Event(fields.get("event", ""), json.loads(fields["data"])))
    return events


@asynccontextmanager
async def followed(app: ASGIApp, path: str, **headers: str) -> AsyncIterator[tuple[Stream, "asyncio.Task[None]"]]:
    """An answer and the task that makes it; the client leaves at the end."""
    stream = Stream()
    given = {"host": "127.0.0.1:8765", **headers}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8765),
    }

    async def answer() -> None:
        await app(scope, stream.receive, stream.send)

    task = asyncio.create_task(answer())
    try:
        yield stream, task
    finally:
        stream.leaves.set()
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(task, return_exceptions=True)
