"""The seam of the embedder: the HTTP client, the local model and the tests' fake stand behind it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from domain.vectors import VectorIdentity

Waiting = Callable[[str], None]
"""Told why the embedder waits for its server, in a few words; "" when it goes on."""


class Probe(NamedTuple):
    """What a server answered to a few fixed texts."""

    served_model: str
    dimension: int
    normalised: bool  # of the raw output
    vectors: tuple[bytes, ...]  # unit length, in the order of the texts


class EmbeddedText(NamedTuple):
    """What became of one text. `vector` is b"" where the text was refused, and `refusal` says why in a few words."""

    vector: bytes
    parts: int = 1  # more than 1: too long for the model, the mean of its parts
    refusal: str = ""


class Embedder(Protocol):
    """Makes vectors for one identity. Used from one event loop."""

    async def probe(self, texts: Sequence[str]) -> Probe:
        """One request, tried once. Raises EmbeddingsUnavailableError."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[EmbeddedText]:
        """One result a text, in order. Batches, halves what is refused, waits while the server is away (R21).

        Raises EmbeddingsUnavailableError when the server stays away for longer than the outage limit or refuses
        everything; EmbeddingsChangedError when it answers for another model.
        """
        ...

    async def embed_query(self, text: str) -> bytes:
        """One request, tried once, no halving. Raises QueryTimeoutError or QueryUnreachableError (see below),
        EmbeddingsChangedError for another dimension or model."""
        ...

    async def aclose(self) -> None: ...


class QueryEmbeddingError(Exception):
    """A query could not be embedded; the kind is that of the failing step (S0-39). The text is for people."""


class QueryUnreachableError(QueryEmbeddingError):
    """Connection, TLS, refusal, or an answer that is none."""


class QueryTimeoutError(QueryEmbeddingError):
    """The deadline passed."""


class Expected(NamedTuple):
    """What a pinned identity demands of every answer."""

    dimension: int
    served_model: str

    @staticmethod
    def of(identity: VectorIdentity) -> "Expected":
        return Expected(identity.dimension, identity.served_model)
