"""The fake stands for an embedder: tests that use it prove something only if it is one."""

import numpy as np
import pytest

from domain.errors import EmbeddingsUnavailableError
from embedding.port import Embedder, QueryTimeoutError, QueryUnreachableError
from tests.support.embedding_server import is_vector_of
from tests.support.fake_embedder import GROUPS, FakeEmbedder


def nearness(one: bytes, other: bytes) -> float:
    return float(np.frombuffer(one, "<f4") @ np.frombuffer(other, "<f4"))


async def test_a_vector_is_a_function_of_its_text() -> None:
    fake = FakeEmbedder(dimension=24, refuse_marker="POISON")
    embedder: Embedder = fake
    good, bad = await embedder.embed_documents(["a text", "POISON"])
    assert is_vector_of(good.vector, "a text", 24)
    assert await embedder.embed_query("a text") == good.vector
    assert (bad.vector, bool(bad.refusal)) == (b"", True)
    assert (fake.texts_seen, fake.document_calls, fake.queries_seen) == (["a text", "POISON"], 1, ["a text"])
    await embedder.aclose()
    assert fake.is_closed


async def test_a_paraphrase_without_a_shared_word_is_near() -> None:
    """S1-11."""
    fake = FakeEmbedder(dimension=64, groups=GROUPS)
    near, far = await fake.embed_documents(["a large home", "sourdough recipes"])
    query = await fake.embed_query("huge house")
    assert nearness(query, near.vector) > 0.7 > 0.4 > nearness(query, far.vector)
    assert nearness((await fake.embed_documents(["!?"]))[0].vector, query) < 0.5


async def test_it_fails_as_a_server_does() -> None:
    fake = FakeEmbedder(unavailable="connection refused")
    with pytest.raises(EmbeddingsUnavailableError, match="connection refused"):
        await fake.embed_documents(["a"])
    with pytest.raises(EmbeddingsUnavailableError):
        await fake.probe(["a"])
    with pytest.raises(QueryUnreachableError):
        await fake.embed_query("a")
    fake.query_times_out = True
    with pytest.raises(QueryTimeoutError):
        await fake.embed_query("a")
    fake.unavailable, fake.query_times_out = "", False
    assert (await fake.probe(["a"])).vectors == (fake.vector_of("a"),)
