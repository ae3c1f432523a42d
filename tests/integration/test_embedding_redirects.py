"""A server of embeddings that redirects: refused, wherever it points to, and told of as that."""

from contextlib import aclosing

import httpx
import pytest

from domain.errors import EmbeddingsUnavailableError
from domain.settings import EmbeddingsSettings
from embedding.client import MAX_REFUSALS_IN_A_ROW, EmbeddingClient
from embedding.failures import Rejected
from tests.support.embedding_server import embedding_server

TEXTS = ["The board met on Tuesday.", "Nobody was told of it."]
KEY = "canary-7f3a9d51c2"

LOCATIONS: list[tuple[str | None, str]] = [
    ("http://127.0.0.1:9/v1/embeddings/", "to http://127.0.0.1:9/v1/embeddings/"),
    ("https://other.example/v1?signature=secret#part", "to https://other.example/v1"),
    ("https://user:secret@other.example/", "to https://other.example/"),
    ("//other.example/v1", "to //other.example/v1"),
    ("/v1/embeddings/", "to /v1/embeddings/"),
    ("ftp://other.example/x", "to ftp://other.example/x"),
    (f"/login/{KEY}", "to what is no address"),
    ("http://[::1/v1", "to what is no address"),
    ("http://other.example:99999999/", "to what is no address"),
    ("http://other.example:port/", "to what is no address"),
    ("https:///v1", "to what is no address"),
    ("mailto:root", "to what is no address"),
    ("http://other.example/\xe9\x1b]0;x\x07\u202e", "to http://other.example/\xe9 ]0;x"),
    ("http://\x1b[31m/", "to what is no address"),
    ("http://" + "a" * 9_000, "to http://aaa"),
    ("", "it does not say where to"),
    (None, "it does not say where to"),
]


@pytest.mark.parametrize(("location", "told"), LOCATIONS)
@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
async def test_a_redirect_is_a_refusal_wherever_it_points_to(status: int, location: str | None, told: str) -> None:
    """R21: no outage to be waited out, also where it names no address at all."""
    headers = [(b"Location", location.encode())] if location is not None else []
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(b"moved"))

    settings = EmbeddingsSettings(base_url="http://127.0.0.1:9/v1", model="asked")
    async with aclosing(EmbeddingClient(settings, KEY, transport=httpx.MockTransport(answer))) as client:
        with pytest.raises(Rejected, match="redirects are not followed") as caught:
            await client.request(TEXTS)
    words = caught.value.words
    assert words.startswith(f"status {status} ({told}") and words.isprintable() and len(words) < 300
    assert "secret" not in words and KEY not in words
    assert (caught.value.status, caught.value.is_refusing, len(asked)) == (status, True, 1)


async def test_a_server_that_redirects_everything_ends_the_run() -> None:
    """As one does that knows no key: no text is at fault, and the address is what to look at."""
    with embedding_server(trick="redirect_malformed") as server:
        settings = EmbeddingsSettings(base_url=server.url, model="asked")
        async with aclosing(EmbeddingClient(settings, None)) as client:
            for _ in range(MAX_REFUSALS_IN_A_ROW - 1):
                with pytest.raises(Rejected):
                    await client.request(TEXTS)
            with pytest.raises(EmbeddingsUnavailableError, match=r"refuses every request: status 307") as caught:
                await client.request(TEXTS)
    assert "embeddings.base_url" in caught.value.hint
