"""The embedder over a real server: what becomes of documents and queries (R21, S0-28..30, S0-39, faults 28, 29)."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
import pytest

from domain.errors import ConfigurationError, EmbeddingsChangedError, EmbeddingsUnavailableError
from domain.settings import EmbeddingsSettings
from domain.vectors import CANARY_TEXTS, MAX_INPUT_BYTES
from embedding.build import host_shown, make_embedder
from embedding.openai_embedder import QUERIES_KEPT
from embedding.port import Embedder, Expected, QueryTimeoutError, QueryUnreachableError
from tests.support.embedding_server import EmbeddingServer, embedding_server, is_vector_of, vector_array_of

DIMENSION = 16
SENTENCE = "The keeper of the lighthouse wrote down the weather of the day. "
Make = Callable[..., Embedder]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes embedders over a server; closes them."""
    async with AsyncExitStack() as closing:

        def made(server: EmbeddingServer, expected: Expected | None = None, **settings: Any) -> Embedder:
            configured = EmbeddingsSettings(base_url=server.url, model="any", **settings)
            embedder = make_embedder(configured, None, expected=expected)
            closing.push_async_callback(embedder.aclose)
            return embedder

        yield made


async def test_each_text_has_its_own_vector_and_the_same_text_is_sent_once(make: Make) -> None:
    """S0-28, S0-29, S2-27; the answers are shuffled and not of unit length."""
    texts = [f"text {number % 90}" for number in range(200)]
    with embedding_server(dimension=DIMENSION, normalised=False) as server:
        embedded = await make(server).embed_documents(texts)
        assert all(is_vector_of(each.vector, text, DIMENSION) for each, text in zip(embedded, texts, strict=True))
        assert sorted(server.texts_seen) == sorted(set(texts))
        assert sorted(len(request.texts) for request in server.requests) == [26, 64]
        assert all((each.parts, each.refusal) == (1, "") for each in embedded)


async def test_a_text_that_says_nothing_is_refused_without_a_request(make: Make) -> None:
    """S0-28: and no other fails with it."""
    with embedding_server(dimension=DIMENSION) as server:
        blank, odd, good = await make(server).embed_documents([" \n", "a \udc80", "good"])
        assert server.texts_seen == ["good"]
    assert (blank.vector, blank.refusal) == (b"", "there is no text in it")
    assert (odd.vector, odd.refusal) == (b"", "it is not valid Unicode")
    assert is_vector_of(good.vector, "good", DIMENSION)


async def test_a_bad_text_fails_alone_with_the_reason(make: Make) -> None:
    """R21."""
    texts = [f"text {number}" for number in range(80)]
    texts[41] = "POISON here"
    with embedding_server(dimension=DIMENSION, poison="POISON", error_words="cannot read this") as server:
        embedded = await make(server).embed_documents(texts)
    for number, each in enumerate(embedded):
        assert (each.vector == b"") == (number == 41)
    assert (
        embedded[41].refusal
        == 'the model refused it: status 500: "{"error":{"message":"cannot read this","type":"server_error"}}"'
    )


async def test_lies_now_and_then_misplace_nothing_and_lose_next_to_nothing(make: Make) -> None:
    """S0-30, R21: 30% of the answers are wrong in one of many ways."""
    texts = [f"text {number}" for number in range(640)]
    with embedding_server(dimension=DIMENSION, lie_rate=0.3, seed=3) as server:
        embedded = await make(server).embed_documents(texts)
    for each, text in zip(embedded, texts, strict=True):
        assert is_vector_of(each.vector, text, DIMENSION) or (each.vector == b"" and each.refusal)
    assert sum(not each.vector for each in embedded) <= 7


async def test_a_server_that_takes_fewer_texts_loses_none_and_is_soon_asked_for_fewer(make: Make) -> None:
    """Fault 29: limits of count and of bytes."""
    texts = [f"text {number} " + "x" * 300 for number in range(500)]
    with embedding_server(dimension=DIMENSION, max_inputs=20, max_body_bytes=5_000) as server:
        embedder = make(server)
        for some in (texts[:250], texts[250:]):
            embedded = await embedder.embed_documents(some)
            assert all(is_vector_of(each.vector, text, DIMENSION) for each, text in zip(embedded, some, strict=True))
        refused = [request for request in server.requests if request.how]
        late = [request for request in server.requests[-10:] if request.how]
    assert len(refused) <= 16
    assert late == []


async def test_a_text_too_long_for_the_model_is_the_mean_of_its_parts(make: Make) -> None:
    """Fault 28: parts embedded, nothing lost, no blind retry, the count of parts told."""
    long = SENTENCE * 40
    texts = ["short one", long, "short two"]
    with embedding_server(dimension=DIMENSION, max_chars=1_000) as server:
        one, whole, two = await make(server).embed_documents(texts)
        sent = server.texts_seen
        parts = server.requests[-1].texts
    assert is_vector_of(one.vector, "short one", DIMENSION)
    assert is_vector_of(two.vector, "short two", DIMENSION)
    assert whole.parts == len(parts) > 2
    assert sum(map(len, parts)) + len(parts) - 1 == len(long.strip())
    mean = sum(len(part) * vector_array_of(part, DIMENSION) for part in parts)
    assert np.allclose(np.frombuffer(whole.vector, "<f4"), mean / np.linalg.norm(mean), atol=1e-6)
    assert sent.count(long) == 3, "in the batch, in its half, alone"


@pytest.mark.parametrize("status", [413, 422, 500])
async def test_a_text_may_be_too_long_in_other_words(make: Make, status: int) -> None:
    """Fault 28: servers differ in how they say it, llama.cpp with a 500; the reason itself is never read."""
    with embedding_server(dimension=DIMENSION, max_chars=1_000, too_long_status=status) as server:
        one, whole, two = await make(server).embed_documents(["short one", SENTENCE * 40, "short two"])
    assert whole.parts > 2 and len(whole.vector) == 4 * DIMENSION
    assert is_vector_of(one.vector, "short one", DIMENSION) and is_vector_of(two.vector, "short two", DIMENSION)


async def test_the_second_long_text_costs_two_requests(make: Make) -> None:
    """Fault 28: what the first one taught is used: it goes alone, then in parts of a size that is taken."""
    first, second = SENTENCE * 40, "Every evening " + SENTENCE * 50
    with embedding_server(dimension=DIMENSION, max_chars=1_000) as server:
        embedder = make(server)
        await embedder.embed_documents([first])
        before = len(server.requests)
        short = [f"short {number}" for number in range(30)]
        embedded = await embedder.embed_documents([*short[:9], second, *short[9:]])
        assert [len(request.texts) for request in server.requests[before : before + 2]] == [30, 1]
        assert len(server.requests) == before + 3
        assert embedded[9].parts == len(server.requests[-1].texts)


async def test_a_text_over_128_kib_is_cut_without_asking_and_keeps_its_prefix(make: Make) -> None:
    """R21."""
    text = "passage: " + SENTENCE * 4_200
    assert len(text) > 2 * MAX_INPUT_BYTES
    with embedding_server(dimension=DIMENSION) as server:
        (whole,) = await make(server, document_prefix="passage: ").embed_documents([text])
        assert whole.parts == len(server.texts_seen) == 3
        assert all(len(seen) <= MAX_INPUT_BYTES and seen.startswith("passage: ") for seen in server.texts_seen)


async def test_what_is_refused_at_any_length_ends_refused(make: Make) -> None:
    """Fault 28: down to a floor, within a few requests."""
    with embedding_server(dimension=DIMENSION, poison="weather", poison_status=400) as server:
        good, bad = await make(server).embed_documents(["good", SENTENCE * 40])
        assert len(server.requests) < 12
    assert good.vector
    assert bad.vector == b""
    assert bad.refusal.startswith("the model refused it: status 400")


async def test_a_short_text_with_another_fault_teaches_no_size(make: Make) -> None:
    """A 400 for a word in a short text: it fails, and long texts are cut no smaller for it."""
    long = SENTENCE * 40
    with embedding_server(dimension=DIMENSION, max_chars=1_000, poison="POISON", poison_status=400) as server:
        embedder = make(server)
        bad, whole = await embedder.embed_documents([SENTENCE * 10 + "POISON", long])
        assert bad.vector == b""
        (again,) = await embedder.embed_documents([long + "Again."])
        assert max(len(text) for text in server.requests[-1].texts) > 500
    assert whole.vector
    assert again.parts <= 6


async def test_a_server_that_refuses_everything_ends_the_run(make: Make) -> None:
    """R21: whatever the texts are; a key that is wrong is told as soon as the rest."""
    texts = [f"text {number}" for number in range(300)]
    for status, said in ((500, "refuses whatever it is sent"), (401, "refuses every request")):
        with embedding_server(dimension=DIMENSION, status=status) as server:
            with pytest.raises(EmbeddingsUnavailableError, match=said) as raised:
                await make(server).embed_documents(texts)
            assert server.host in raised.value.message
            assert raised.value.hint
            assert len(server.requests) < 40


async def test_a_probe_tells_what_the_server_is(make: Make) -> None:
    with embedding_server(dimension=DIMENSION, normalised=False, model="served") as server:
        probe = await make(server).probe(CANARY_TEXTS)
    assert probe[:3] == ("served", DIMENSION, False)
    assert all(is_vector_of(vector, text, DIMENSION) for vector, text in zip(probe.vectors, CANARY_TEXTS, strict=True))


@pytest.mark.parametrize("behaviour", [{"status": 401}, {"status": 503}, {"lie": "zero_vector"}, {"trick": "hang"}])
async def test_a_probe_that_fails_names_the_server_and_the_cause_after_one_request(
    make: Make, behaviour: dict[str, Any]
) -> None:
    with embedding_server(dimension=DIMENSION, **behaviour) as server:
        with pytest.raises(EmbeddingsUnavailableError) as raised:
            await make(server, timeout_s=0.3).probe(CANARY_TEXTS)
        assert len(server.requests) == 1
        assert server.host in raised.value.message
        assert raised.value.message.count(": ") >= 1
        assert ("api_key_env" if behaviour.get("status") == 401 else "base_url") in raised.value.hint


async def test_a_query_asks_once_and_the_same_query_never_again(make: Make) -> None:
    with embedding_server(dimension=DIMENSION) as server:
        embedder = make(server)
        for _ in range(3):
            assert is_vector_of(await embedder.embed_query("where is the light"), "where is the light", DIMENSION)
        assert len(server.requests) == 1
        for number in range(QUERIES_KEPT):
            await embedder.embed_query(f"query {number}")
        await embedder.embed_query("where is the light")
        assert len(server.requests) == QUERIES_KEPT + 2


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ({"trick": "hang"}, QueryTimeoutError),
        ({"trick": "drip"}, QueryTimeoutError),
        ({"status": 503}, QueryUnreachableError),
        ({"status": 401}, QueryUnreachableError),
        ({"lie": "html"}, QueryUnreachableError),
        ({"lie": "disconnect"}, QueryUnreachableError),
    ],
)
async def test_a_query_that_fails_is_told_by_its_kind_after_one_request(
    make: Make, behaviour: dict[str, Any], kind: type[Exception]
) -> None:
    """S0-39: nothing is halved, repeated or waited for; the next query asks anew."""
    with embedding_server(dimension=DIMENSION, **behaviour) as server:
        embedder = make(server, timeout_s=0.3)
        with pytest.raises(kind):
            await embedder.embed_query("where is the light")
        assert len(server.requests) == 1
        server.behaviour.trick, server.behaviour.lie, server.behaviour.status = "", "", 0
        assert is_vector_of(await embedder.embed_query("where is the light"), "where is the light", DIMENSION)


async def test_a_query_with_another_dimension_or_model_is_no_outage(make: Make) -> None:
    """S1-15, fault 31: both dimensions are named, and the command."""
    with embedding_server(dimension=DIMENSION, model="new") as server:
        with pytest.raises(EmbeddingsChangedError) as raised:
            await make(server, Expected(24, "new")).embed_query("a")
        assert "16 dimensions" in raised.value.message
        assert "24" in raised.value.message
        assert "--reindex" in raised.value.hint
        with pytest.raises(EmbeddingsChangedError, match="old"):
            await make(server, Expected(DIMENSION, "old")).embed_query("a")


def test_where_texts_go_is_told_without_a_secret() -> None:
    assert host_shown(EmbeddingsSettings(base_url="https://models.example/v1")) == "models.example"
    assert host_shown(EmbeddingsSettings(base_url="http://127.0.0.1:1234/v1")) == "127.0.0.1:1234"
    assert host_shown(EmbeddingsSettings(base_url="https://user:secret@models.example/v1")) == "the configured server"
    assert host_shown(EmbeddingsSettings(provider="local")) == "this machine (local model)"


def test_settings_that_cannot_be_obeyed_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"base_url must be https"):
        make_embedder(EmbeddingsSettings(base_url="http://models.example/v1"), None)
    with pytest.raises(ConfigurationError, match=r"the local model is wordllama"):
        make_embedder(EmbeddingsSettings(provider="local", model="another"), None)
