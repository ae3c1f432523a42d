"""What an embeddings server says of the vectors that it makes, asked before a run embeds anything."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from app.event_loop import run_interruptibly
from domain.settings import EmbeddingsSettings
from domain.vectors import CANARY_TEXTS, VectorIdentity

HEED_EVERY_S = 0.25
Answer = TypeVar("Answer")


def probed_identity(
    wanted: EmbeddingsSettings, key: str | None, heed: Callable[[], None]
) -> tuple[VectorIdentity, tuple[bytes, ...]]:
    """The identity of the server's vectors, and those of the canary's texts. `heed` is called while it is waited for,
    and may raise. Raises EmbeddingsUnavailableError."""
    return run_interruptibly(_heeding(_probe(wanted, key), heed))


async def _heeding(asking: Coroutine[Any, Any, Answer], heed: Callable[[], None]) -> Answer:
    """The server's answer; given up where `heed` raises, however long the server would have been waited for."""
    answer = asyncio.create_task(asking)
    try:
        while not (await asyncio.wait([answer], timeout=HEED_EVERY_S))[0]:
            heed()
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)
    return answer.result()


async def _probe(wanted: EmbeddingsSettings, key: str | None) -> tuple[VectorIdentity, tuple[bytes, ...]]:
    from embedding.build import make_embedder

    embedder = make_embedder(wanted, key)
    try:
        probe = await embedder.probe(CANARY_TEXTS)
    finally:
        await embedder.aclose()
    identity = VectorIdentity(
        model=wanted.model,
        served_model=probe.served_model,
        dimension=probe.dimension,
        normalised=probe.normalised,
        query_prefix=wanted.query_prefix,
        document_prefix=wanted.document_prefix,
    )
    return identity, probe.vectors
