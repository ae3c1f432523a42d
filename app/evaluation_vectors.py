"""Vectors of queries for a measurement. A query that gets none is told, never ranked by its words in silence."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.query_embedder import QueryEmbedder
from domain.errors import EmbeddingsUnavailableError
from domain.settings import EmbeddingsSettings
from domain.vectors import PinnedIdentity, query_text
from embedding.known_models import LOCAL_MODEL
from embedding.port import QueryEmbeddingError

EmbedQuery = Callable[[str], bytes]
"""The vector of a query, as a search makes it; b"" where the local model knows no word of it. Raises
EmbeddingsUnavailableError, EmbeddingsChangedError."""


def local_embeddings() -> EmbeddingsSettings:
    """The tier of the model that needs no server."""
    return EmbeddingsSettings(provider="local", model=LOCAL_MODEL)


@contextmanager
def query_embedder(settings: EmbeddingsSettings, pinned: PinnedIdentity) -> Iterator[EmbedQuery]:
    """Embeds for stored vectors."""
    embedder = QueryEmbedder(settings)
    embed_text = embedder.meaning().embed

    def embed(query: str) -> bytes:
        try:
            return embed_text(pinned, query_text(pinned.identity.query_prefix, query))
        except QueryEmbeddingError as error:
            if settings.provider == "local":
                return b""
            raise EmbeddingsUnavailableError(f"a query could not be embedded: {error}") from error

    try:
        yield embed
    finally:
        embedder.close()
