"""A search whose client has gone stops waiting for the model's server, and its place is free again."""

import threading
from collections.abc import Sequence
from pathlib import Path

import anyio
from anyio import CapacityLimiter
from msgspec.structs import replace
from starlette.types import Message

from app.config import Loaded
from app.discovery import Located
from app.open_bases import OpenBases
from app.query_embedder import QueryEmbedder
from domain.settings import EmbeddingsSettings, Settings
from embedding.port import EmbeddedText, Embedder, Expected, Probe
from server.http.parts import HttpParts
from server.http.service import http_app, http_parts
from tests.support import status_bases as bases
from tests.support.http_service import ORIGIN


class Endless:
    """A model that never answers."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.was_cancelled = threading.Event()

    async def embed_query(self, text: str) -> bytes:
        self.asked.set()
        try:
            await anyio.sleep(1000)
        except BaseException:
            self.was_cancelled.set()
            raise
        return b""

    async def probe(self, texts: Sequence[str]) -> Probe:
        raise NotImplementedError

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[EmbeddedText]:
        raise NotImplementedError

    async def aclose(self) -> None:
        pass

    def make(self, settings: EmbeddingsSettings, expected: Expected) -> Embedder:
        return self


async def ask(parts: HttpParts, gone: anyio.Event, sent: list[Message]) -> None:
    host = ORIGIN.removeprefix("http://").encode()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": "/v1/search", "raw_path": b"/v1/search", "query_string": b"q=fox", "root_path": "",
        "headers": [(b"host", host)], "client": ("127.0.0.1", 4), "server": ("127.0.0.1", 8765), "state": {},
    }  # fmt: skip
    began = False

    async def receive() -> Message:
        nonlocal began
        if not began:
            began = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await http_app(parts)(scope, receive, send)


async def test_the_vector_step_stops(tmp_path: Path) -> None:
    settings: Settings = bases.with_vectors(tmp_path)
    model = Endless()
    assert settings.embeddings is not None
    embedder = QueryEmbedder(settings.embeddings, make=model.make)
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as made:
        assert isinstance(made.bases, OpenBases)
        parts = replace(made, embedder=embedder, readers=CapacityLimiter(1))
        gone, sent = anyio.Event(), list[Message]()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, parts, gone, sent)
                await anyio.to_thread.run_sync(model.asked.wait)
                assert parts.readers.borrowed_tokens == 1
                gone.set()
            assert model.was_cancelled.wait(10)
            assert parts.readers.borrowed_tokens == 0
            assert sent[0]["status"] == 200  # for nobody: by words alone
        finally:
            embedder.close()
