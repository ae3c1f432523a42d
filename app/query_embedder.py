"""Embeds queries for searches, whichever thread they run in.

A server keeps one for as long as it runs: connections stay open, and the vectors of the latest queries are remembered.
A command makes one for its own search, and only when the query is to be embedded.
"""

import asyncio
import threading
from concurrent.futures import wait
from typing import Protocol

from msgspec.structs import replace

from domain.errors import ConfigurationError, EmbeddingsChangedError
from domain.settings import EmbeddingsSettings
from domain.vectors import CANARY_TEXTS, PinnedIdentity
from embedding.port import Embedder, Expected, QueryUnreachableError
from retrieval.query_vector import Meaning, Stopped, WantedVectors

LOOK_EVERY_S = 0.05  # whether whoever asked has stopped waiting


class MakeEmbedder(Protocol):
    """Builds the embedder of an identity. Raises QueryUnreachableError where there can be none."""

    def __call__(self, settings: EmbeddingsSettings, expected: Expected) -> Embedder: ...


class QueryEmbedder:
    """Embeds queries, for any thread; what it holds is made when the first query needs it, and let go by `close`.

    The embedder works in an event loop of its own, so that who calls need have none.
    """

    def __init__(self, settings: EmbeddingsSettings, *, make: MakeEmbedder | None = None) -> None:
        self._settings = settings
        self._make = make or _configured_embedder
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._embedders: dict[tuple[str, Expected], Embedder] = {}  # used in the loop only
        self._proven: set[tuple[str, Expected]] = set()  # models that are replaced, and that the server still has

    def meaning(self, stopped: Stopped | None = None) -> Meaning:
        """For one search; `stopped` says whether whoever asked still waits."""

        def embed(identity: PinnedIdentity, text: str) -> bytes:
            return self.embed(identity, text, stopped)

        wanted = WantedVectors.of(self._settings)
        return Meaning(wanted, embed) if stopped is None else Meaning(wanted, embed, stopped)

    def close(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._close_embedders(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def embed(self, pinned: PinnedIdentity, text: str, stopped: Stopped | None = None) -> bytes:
        """See retrieval.query_vector.Embed."""
        future = asyncio.run_coroutine_threadsafe(self._embed_in_loop(pinned, text), self._running_loop())
        try:
            while not wait([future], None if stopped is None else LOOK_EVERY_S).done:
                if stopped is not None and stopped() is not None:
                    raise QueryUnreachableError("nobody waits for the answer any more")
        except BaseException:
            future.cancel()
            raise
        return future.result()

    async def _embed_in_loop(self, pinned: PinnedIdentity, text: str) -> bytes:
        identity = pinned.identity
        key = (identity.model, Expected.of(identity))
        embedder = self._embedders.get(key)
        if embedder is None:
            settings = replace(self._settings, model=identity.model)  # of the set that answers, not of one being made
            embedder = self._embedders[key] = self._make(settings, key[1])
        if identity.model != self._settings.model and key not in self._proven:
            await _refuse_replaced(embedder, pinned)
            self._proven.add(key)
        return await embedder.embed_query(text)

    async def _close_embedders(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for embedder in self._embedders.values():
            await embedder.aclose()
        self._embedders.clear()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="query-embedder", daemon=True)
                self._thread.start()
            return self._loop


async def _refuse_replaced(embedder: Embedder, pinned: PinnedIdentity) -> None:
    """While the vectors of another model are made, the old ones answer as long as the server has the old model. Many
    servers answer with the one model they have, whatever its name in the request.

    Raises QueryUnreachableError where it is gone: words answer until the new vectors do.
    """
    from embedding.canary import canary_difference

    try:
        difference = canary_difference(pinned, await embedder.probe(CANARY_TEXTS))
    except EmbeddingsChangedError as error:
        difference = error.message
    if difference:
        raise QueryUnreachableError(f"the server does not have {pinned.identity.model} any more: {difference}")


def _configured_embedder(settings: EmbeddingsSettings, expected: Expected) -> Embedder:
    from app.config import embeddings_key
    from app.tracing import process_tracer
    from embedding.build import make_embedder

    try:
        return make_embedder(settings, embeddings_key(settings), expected=expected, tracer=process_tracer())
    except ConfigurationError as error:  # words can be searched all the same, and the tier line says why they are
        raise QueryUnreachableError(error.message) from error
