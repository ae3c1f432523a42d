"""An embedder without a server: the vector of a text is a pure function of it, the same as that of embedding_server."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from domain.errors import EmbeddingsUnavailableError
from embedding.port import EmbeddedText, Probe, QueryTimeoutError, QueryUnreachableError
from embedding.unit_vectors import unit_vectors
from tests.support.embedding_server import vector_array_of

GROUPS = (
    ("car", "automobile", "vehicle"),
    ("bread", "loaf", "sourdough"),
    ("doctor", "physician", "medic"),
    ("begin", "start", "commence"),
    ("big", "large", "huge"),
    ("house", "home", "dwelling"),
)
"""Words that mean the same to a FakeEmbedder with `groups=GROUPS`."""


@dataclass
class FakeEmbedder:
    """An embedding.port.Embedder. Its knobs may be turned at any time; it counts what it is asked.

    Without `groups` every text has a direction of its own. With them a text is the sum of its words, and the words of
    a group are one word: a paraphrase is near to what it paraphrases though they share no word (S1-11).
    """

    dimension: int = 32
    served_model: str = "fake-model"
    normalised: bool = True
    groups: Sequence[Sequence[str]] = ()
    refuse_marker: str = ""  # a document's text that holds it is refused
    unavailable: str = ""  # why the server is away, in words; "": it is not
    query_times_out: bool = False
    delay_s: float = 0.0  # of each call
    texts_seen: list[str] = field(default_factory=list)  # of documents, refused ones too
    queries_seen: list[str] = field(default_factory=list)
    document_calls: int = 0
    probes: int = 0
    is_closed: bool = False

    def vector_of(self, text: str) -> bytes:
        """What is answered for a text, whether a document's or a query's."""
        if not self.groups:
            return _unit(vector_array_of(text, self.dimension))
        known = {word: group[0] for group in self.groups for word in group}
        words = [known.get(word, word) for word in re.findall(r"\w+", text.lower())] or [text]
        return _unit(np.sum([vector_array_of(word, self.dimension) for word in words], axis=0))

    async def probe(self, texts: Sequence[str]) -> Probe:
        self.probes += 1
        await self._answer()
        return Probe(self.served_model, self.dimension, self.normalised, tuple(map(self.vector_of, texts)))

    async def embed_documents(self, texts: Sequence[str]) -> list[EmbeddedText]:
        self.document_calls += 1
        self.texts_seen += texts
        await self._answer()
        return [self._embedded(text) for text in texts]

    def _embedded(self, text: str) -> EmbeddedText:
        if self.refuse_marker and self.refuse_marker in text:
            return EmbeddedText(b"", refusal="the model refused it: status 500")
        return EmbeddedText(self.vector_of(text))

    async def embed_query(self, text: str) -> bytes:
        self.queries_seen.append(text)
        if self.query_times_out:
            raise QueryTimeoutError("no answer within 30 s")
        if self.unavailable:
            raise QueryUnreachableError(self.unavailable)
        await self._answer()
        return self.vector_of(text)

    async def _answer(self) -> None:
        await asyncio.sleep(self.delay_s)
        if self.unavailable:
            raise EmbeddingsUnavailableError(f"the embedding server is away: {self.unavailable}")

    async def aclose(self) -> None:
        self.is_closed = True


def _unit(vector: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> bytes:
    (unit,) = unit_vectors(vector[None].astype(np.float32))
    return unit
