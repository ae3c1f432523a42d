"""The HTTP client against a real server on loopback: what is sent, what is believed, what is kept secret."""

import asyncio
import logging
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import numpy as np
import pytest

from domain.errors import ConfigurationError, EmbeddingsChangedError, EmbeddingsUnavailableError
from domain.settings import EmbeddingsSettings
from embedding.client import EmbeddingClient
from embedding.failures import Rejected, Unreachable
from embedding.limits import answer_cap_bytes
from embedding.outage import Patience
from embedding.port import Expected
from tests.support.embedding_lies import LIES
from tests.support.embedding_server import EmbeddingServer, embedding_server, vector_of

DIMENSION = 16
TEXTS = ["The board met on Tuesday.", "Nobody was told of it.", "Ruritania was not mentioned."]
EXPECTED = Expected(DIMENSION, "served")
KEY = "canary-7f3a9d51c2"
QUICK = Patience(interval_s=0.02, longest_s=0.02)

MakeClient = Callable[..., EmbeddingClient]


@pytest.fixture
async def make_client() -> AsyncIterator[MakeClient]:
    """Clients of a server; settings by name, the client's own arguments too. Closed at the end."""
    async with AsyncExitStack() as stack:

        def make(server: EmbeddingServer | str, **more: Any) -> EmbeddingClient:
            url = server if isinstance(server, str) else server.url
            names = ("expected", "waiting", "share", "patience")
            own: dict[str, Any] = {name: more.pop(name) for name in names if name in more}
            key = more.pop("key", None)
            usual = {"timeout_s": 10.0, "outage_limit_s": 20.0}
            settings = EmbeddingsSettings(base_url=url, model="asked", **(usual | more))
            client = EmbeddingClient(settings, key, **({"patience": QUICK} | own))
            stack.push_async_exit(aclosing(client))
            return client

        yield make


def chain(error: BaseException | None) -> str:
    """Everything that a report of an error could show: texts, arguments and causes."""
    parts = []
    while error is not None:
        parts += [str(error), repr(error), repr(error.args), repr(getattr(error, "hint", ""))]
        error = error.__cause__ or error.__context__
    return "\n".join(parts)


async def test_the_vectors_come_in_the_order_of_the_texts(make_client: MakeClient) -> None:
    """S0-29, S1-25: the server shuffles its objects."""
    texts = [f"{n} {'x' * n}" for n in range(64)]
    with embedding_server(dimension=DIMENSION, model="served") as server:
        answer = await make_client(server, key=KEY, expected=EXPECTED).request(texts)
    wanted = np.array([vector_of(text, DIMENSION) for text in texts], np.float32)
    assert answer.vectors.tolist() == wanted.tolist()
    assert answer.served_model == "served"
    assert answer.normalised
    [request] = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["accept-encoding"] == "identity"
    assert list(request.texts) == texts


async def test_without_a_key_no_header_is_sent(make_client: MakeClient) -> None:
    with embedding_server(dimension=DIMENSION, normalised=False) as server:
        answer = await make_client(server).request_once(TEXTS)
    assert "authorization" not in server.requests[0].headers
    assert not answer.normalised


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_refused_at_once(lie: str, make_client: MakeClient) -> None:
    """S0-30, T23, T24: one request, none repeated: cutting the batch is the caller's."""
    with embedding_server(dimension=DIMENSION, model="served", lie=lie) as server:
        with pytest.raises(Rejected) as caught:
            await make_client(server, expected=EXPECTED).request(TEXTS)
        assert caught.value.status in (0, 204, 400, 500, 502)
        assert len(server.requests) == 1
        server.behaviour.lie = ""
        await make_client(server, expected=EXPECTED).request(TEXTS)


async def test_nothing_is_misplaced_by_a_server_that_lies_often(make_client: MakeClient) -> None:
    """P6: 30 % of the requests, in every way there is; what is given out is right."""
    given = refused = 0
    with embedding_server(dimension=DIMENSION, model="served", lie_rate=0.3, seed=11) as server:
        client = make_client(server, expected=EXPECTED)
        for batch in range(200):
            texts = [f"{batch}/{n}" for n in range(batch % 7 + 1)]
            try:
                answer = await client.request(texts)
            except Rejected:
                refused += 1
                continue
            given += 1
            assert answer.vectors.tolist() == np.array([vector_of(t, DIMENSION) for t in texts], np.float32).tolist()
    assert given > 100
    assert refused > 30
    assert refused == sum(request.how != "" for request in server.requests)


@pytest.mark.parametrize(("count", "dimension"), [(1, DIMENSION - 1), (3, 2 * DIMENSION)])
async def test_another_dimension_is_a_refusal_that_carries_it(
    count: int, dimension: int, make_client: MakeClient
) -> None:
    with embedding_server(dimension=dimension, model="served") as server, pytest.raises(Rejected) as caught:
        await make_client(server, expected=EXPECTED).request_once(TEXTS[:count])
    assert caught.value.dimension == dimension


@pytest.mark.parametrize("once", [True, False])
async def test_another_model_is_not_mixed_in(once: bool, make_client: MakeClient) -> None:
    """Of the same dimension; a name other than the one asked for is no fault as long as it stays."""
    with embedding_server(dimension=DIMENSION, model="served") as server:
        client = make_client(server, expected=EXPECTED)
        send = client.request_once if once else client.request
        await send(TEXTS)
        server.behaviour.model = "another"
        with pytest.raises(EmbeddingsChangedError, match=r"'another'.*'served'"):
            await send(TEXTS)


@pytest.mark.parametrize(
    ("behaviour", "status", "too_long", "refusing"),
    [
        ({"max_chars": 5}, 400, True, False),
        ({"max_body_bytes": 5}, 413, True, False),
        ({"status": 422}, 422, True, False),
        ({"key": "right"}, 401, False, True),
        ({"status": 403}, 403, False, True),
        ({"status": 404}, 404, False, True),
        ({"poison": "board"}, 500, False, False),
        ({"trick": "redirect"}, 307, False, True),
        ({"trick": "redirect_malformed"}, 307, False, True),
    ],
)
async def test_a_refusal_says_of_which_kind_it_is(
    behaviour: dict[str, Any], status: int, too_long: bool, refusing: bool, make_client: MakeClient
) -> None:
    """R21, S0-39: by the status and nothing else."""
    with embedding_server(dimension=DIMENSION, error_words="please wait, a timeout, 503", **behaviour) as server:
        client = make_client(server, key="wrong")
        with pytest.raises(Rejected) as single:
            await client.request_once(TEXTS[:1])
        with pytest.raises(Rejected) as several:
            await client.request_once(TEXTS)
    assert (single.value.status, single.value.is_too_long, single.value.is_refusing) == (status, too_long, refusing)
    assert not several.value.is_too_long or behaviour.get("max_inputs")
    assert f"status {status}" in single.value.words


async def test_a_redirect_is_not_followed(make_client: MakeClient) -> None:
    """T21: it leads to where the credentials of a machine are given out."""
    with embedding_server(trick="redirect") as server, pytest.raises(Rejected, match="redirects are not followed"):
        await make_client(server, key=KEY).request(TEXTS)
    assert len(server.requests) == 1


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch, make_client: MakeClient) -> None:
    """T21: nor a password file."""
    with embedding_server(dimension=DIMENSION) as proxy, embedding_server(dimension=DIMENSION) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://{proxy.host}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        await make_client(server).request(TEXTS)
    assert len(server.requests) == 1
    assert proxy.connected_at_s == []


@pytest.mark.parametrize("trick", ["gzip_bomb", "endless"])
@pytest.mark.parametrize("expected", [EXPECTED, None])
async def test_an_answer_without_end_takes_no_memory(
    trick: str, expected: Expected | None, make_client: MakeClient
) -> None:
    """T22: 200 MB in 200 KB, or for ever."""
    with embedding_server(trick=trick) as server:
        client = make_client(server, expected=expected)
        words = "is compressed" if trick == "gzip_bomb" else "is longer than"
        with pytest.raises(Rejected, match=words):
            await client.request_once(TEXTS)  # what is imported and made once
        tracemalloc.start()
        try:
            with pytest.raises(Rejected):
                await client.request_once(TEXTS)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak_bytes < 3 * answer_cap_bytes(3, DIMENSION if expected else None) + 2_000_000


@pytest.mark.parametrize("trick", ["hang", "drip"])
async def test_a_deadline_is_of_the_whole_request(trick: str, make_client: MakeClient) -> None:
    """T22, P16: each byte that drips is in time, the answer never is."""
    with embedding_server(trick=trick) as server, pytest.raises(Unreachable) as caught:
        await make_client(server, timeout_s=0.4).request_once(TEXTS)
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ({"trick": "half_body"}, "connection"),
        ({"trick": "not_http"}, "connection"),
        ({"lie": "disconnect"}, "connection"),
        ({"status": 503}, "busy"),
        ({"status": 429}, "busy"),
    ],
)
async def test_what_counts_as_away(behaviour: dict[str, Any], kind: str, make_client: MakeClient) -> None:
    """R21; Retry-After is read."""
    with embedding_server(retry_after="7", **behaviour) as server, pytest.raises(Unreachable) as caught:
        await make_client(server).request_once(TEXTS)
    assert caught.value.kind == kind
    assert caught.value.retry_after_s == (7.0 if kind == "busy" else None)


async def test_a_name_that_nobody_knows_is_away(make_client: MakeClient) -> None:
    with pytest.raises(Unreachable) as caught:
        await make_client("https://no-such-host.invalid/v1").request_once(TEXTS)
    assert caught.value.kind == "connection"


async def test_no_tls_where_there_should_be_is_away(make_client: MakeClient) -> None:
    with embedding_server() as server, pytest.raises(Unreachable) as caught:
        await make_client(server.url.replace("http:", "https:")).request_once(TEXTS)
    assert caught.value.kind == "connection"
    assert caught.value.words == "no TLS connection"


@pytest.mark.parametrize("url", ["http://10.0.0.7/v1", "http://user:secret@127.0.0.1/v1", "http://127.1", ""])
def test_a_forbidden_address_gets_no_client(url: str) -> None:
    """R17, S1-57."""
    with pytest.raises(ConfigurationError) as caught:
        EmbeddingClient(EmbeddingsSettings(base_url=url, model="m"), None)
    assert "secret" not in chain(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\r\nX-Other: 1", f"{KEY}\x00", f"{KEY}é"])
def test_a_key_that_is_none_is_refused_without_its_value(key: str) -> None:
    """S1-26: a library would put it into its own error."""
    settings = EmbeddingsSettings(base_url="http://127.0.0.1:1/v1", model="m", api_key_env="MY_KEY")
    with pytest.raises(ConfigurationError, match="MY_KEY") as caught:
        EmbeddingClient(settings, key)
    assert KEY not in chain(caught.value)


@pytest.mark.parametrize(
    "behaviour",
    [
        {"key": "right"},
        {"key": "right", "error_words": f"bad key {KEY}"},
        {"status": 422, "error_words": f"invalid input {TEXTS[0]}"},
        {"status": 503, "error_words": f"{KEY} {TEXTS[1]}"},
        {"lie": "html"},
        {"lie": "string_numbers"},
        {"trick": "redirect"},
        {"trick": "redirect_malformed"},
        {"trick": "drip"},
        {"trick": "not_http"},
        {"lie": "disconnect"},
        {},
    ],
)
async def test_neither_key_nor_text_is_in_a_log_or_an_error(
    behaviour: dict[str, Any], caplog: pytest.LogCaptureFixture, make_client: MakeClient
) -> None:
    """S1-26, P19: at the most talkative level, of all libraries."""
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    with embedding_server(dimension=DIMENSION, **behaviour) as server:
        client = make_client(server, key=f" {KEY}\n", timeout_s=0.4, outage_limit_s=0.1, waiting=told.append)
        shown = repr(client)
        for send in (client.request_once, client.request):
            try:
                await send(TEXTS)
            except (Rejected, Unreachable, EmbeddingsUnavailableError) as error:
                shown += chain(error)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    everything = shown + caplog.text + repr([record.args for record in caplog.records]) + repr(told)
    assert KEY not in everything
    assert not [text for text in TEXTS if text in everything]


async def test_text_that_is_no_unicode_is_refused_unsent(make_client: MakeClient) -> None:
    with embedding_server() as server, pytest.raises(Rejected) as caught:
        await make_client(server).request(["secret \ud800"])
    assert server.requests == []
    assert "secret" not in chain(caught.value)


async def test_not_more_at_a_time_than_configured(make_client: MakeClient) -> None:
    with embedding_server(dimension=DIMENSION, delay_s=0.1) as server:
        client = make_client(server, concurrency=3)
        await asyncio.gather(*(client.request([f"{n}"]) for n in range(12)))
        assert 1 < server.max_in_flight <= 3
        server.max_in_flight = 0
        shared = make_client(server, concurrency=3, share=0.25)
        await asyncio.gather(*(shared.request([f"{n}"]) for n in range(4)))
        assert server.max_in_flight == 1


async def test_not_more_a_minute_than_configured(make_client: MakeClient) -> None:
    with embedding_server(dimension=DIMENSION) as server:
        client = make_client(server, requests_per_minute=1200, share=0.5)
        began_s = time.monotonic()
        await asyncio.gather(*(client.request([f"{n}"]) for n in range(5)))
    at_s = [request.at_s - began_s for request in server.requests]
    assert all(found >= least for found, least in zip(at_s, [0.0, 0.1, 0.2, 0.3, 0.4], strict=True))


async def test_a_server_that_refuses_everything_is_told_from_bad_texts(make_client: MakeClient) -> None:
    """A wrong key would else be cut down to single texts and fail every document."""
    with embedding_server(dimension=DIMENSION, key="right") as server:
        client = make_client(server, key="wrong-key")
        for _ in range(15):
            with pytest.raises(Rejected):
                await client.request(TEXTS)
        with pytest.raises(EmbeddingsUnavailableError, match="refuses every request: status 401") as caught:
            await client.request(TEXTS)
        assert "api_key_env" in caught.value.hint
        server.behaviour.key = ""
        await client.request(TEXTS)
        server.behaviour.key = "right"
        with pytest.raises(Rejected):
            await client.request(TEXTS)


async def test_cancelled_requests_leave_nothing_behind(make_client: MakeClient) -> None:
    """No slot, no connection that answers the next request with this one's vectors."""
    with embedding_server(dimension=DIMENSION, model="served", delay_s=0.2) as server:
        client = make_client(server, concurrency=2, expected=EXPECTED)
        for pause_s in (0.0, 0.01, 0.1):
            tasks = [asyncio.create_task(client.request([f"{pause_s} {n}"])) for n in range(5)]
            await asyncio.sleep(pause_s)
            for task in tasks:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in done)
        server.behaviour.delay_s = 0.0
        answers = await asyncio.gather(*(client.request([f"after {n}"]) for n in range(6)))
    for n, answer in enumerate(answers):
        assert answer.vectors.tolist() == [np.array(vector_of(f"after {n}", DIMENSION), np.float32).tolist()]
