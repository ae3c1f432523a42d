"""Parameters that are none are refused in words, and never end in a 500 (T15, T16, T18)."""

import string
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.testclient import TestClient

from domain.errors import UsageError
from domain.settings import Settings
from server.http.parameters import query_of
from server.http.read_endpoints import ENDPOINTS, SearchParameters
from tests.support.http_service import http_client


@pytest.fixture(scope="module")
def client(template: Settings) -> Iterator[TestClient]:
    with http_client(template) as asked:
        yield asked


def refused(client: TestClient, url: str) -> str:
    answer = client.get(url)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json"), answer.text
    assert answer.json()["code"] == "usage"
    detail: str = answer.json()["detail"]
    return detail


@pytest.mark.parametrize("top_k", ["0", "-1", "1000000000", "5.0", "1e1", "true", "NaN", "null", "", "21", "+5", "05",
                                   "%EF%BC%95", "9" * 400, "5%205", "0x5"])  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/search?q=fox&top_k=", "/v1/match?q=fox&limit=", "/v1/words?limit="])
def test_counts_that_are_none(client: TestClient, path: str, top_k: str) -> None:
    """T18: by one rule."""
    if top_k != "21" or "top_k" in path:
        refused(client, path + top_k)


def test_a_text_of_digits_is_a_number_in_a_query_string(client: TestClient) -> None:
    """T18: "5" is what every number is there."""
    assert client.get("/v1/search?q=fox&top_k=5").status_code == 200


@pytest.mark.parametrize("half", ["%ED%A0%80", "%ED%B0%80", "%FF", "%C3", "a%80"])
@pytest.mark.parametrize(
    "path",
    ["/v1/search?q=", "/v1/match?q=", "/v1/words?pattern=", "/v1/match.ndjson?q=", "/v1/documents?prefix=",
     "/v1/documents/docs/", "/v1/chunks/a%230", "/v1/search?q=x&root=", "/v1/stats?"],
)  # fmt: skip
def test_what_is_no_unicode(client: TestClient, path: str, half: str) -> None:
    """T15: halves of a surrogate pair, and bytes that are no UTF-8."""
    assert "UTF-8" in refused(client, path + half)


@pytest.mark.parametrize(
    "path", ["/v1/search?q=", "/v1/match?q=", "/v1/words?pattern=", "/v1/documents/a", "/v1/chunks/a"]
)
def test_nul(client: TestClient, path: str) -> None:
    """T16."""
    assert "NUL" in refused(client, f"{path}a%00b")


def test_a_query_that_is_too_long(client: TestClient) -> None:
    """T16: told, not cut: by the line of the request, or else by its parameter."""
    for path in ("/v1/search?q=", "/v1/match?q=", "/v1/match.ndjson?q=", "/v1/words?pattern=", "/v1/documents/"):
        answer = client.get(f"{path}{'a' * 10_001}")
        assert (answer.status_code, answer.headers["content-type"]) == (414, "application/problem+json")
        assert client.get(f"{path}{'a' * 900}").status_code in (200, 404)


def test_a_text_that_is_too_long_is_refused_whatever_the_line_may_hold() -> None:
    for name, most in (("q", 10_000), ("path", 8_192)):
        for length in (most, most + 1):
            query = f"q=a&{name}={'a' * length}" if name != "q" else f"q={'a' * length}"
            request = Request({"type": "http", "query_string": query.encode(), "headers": []})
            if length == most:
                assert len(getattr(query_of(request, SearchParameters), name)) == most
                continue
            with pytest.raises(UsageError, match=f"{most:,} are taken"):
                query_of(request, SearchParameters)


@pytest.mark.parametrize(
    "q",
    ["(" * 2500, "[" * 2500, "-" * 5000, "a " * 3500, '"' * 2499, "* OR NEAR(", "%", "\\", "x" * 7_999, "é" * 1_300],
)
def test_a_query_of_signs(client: TestClient, q: str) -> None:
    """T16: the language of complete sets is closed, a search takes anything."""
    assert client.get("/v1/search", params={"q": q}).status_code == 200
    assert client.get("/v1/match", params={"q": q}).status_code in (200, 400)
    assert client.get("/v1/words", params={"pattern": q}).status_code in (200, 400)


def test_unknown_and_repeated_parameters(client: TestClient) -> None:
    assert "no parameter 'topk'" in refused(client, "/v1/search?q=a&topk=3")
    assert "q comes twice" in refused(client, "/v1/search?q=a&q=b")
    assert "q" in refused(client, "/v1/search")
    assert "no parameter" in refused(client, "/v1/stats?a=1")
    assert "no parameter" in refused(client, "/v1/openapi.json?a=1")
    refused(client, "/v1/search?q=a&" + "&".join(f"p{number}=1" for number in range(200)))
    refused(client, "/v1/match?q=a&sort=best")
    refused(client, "/v1/words?field=tags")
    refused(client, "/v1/words?min_docs=3&max_docs=2")
    refused(client, "/v1/words?pattern=(a")
    assert "full: true or false" in refused(client, "/v1/search?q=a&full=yes")
    assert "top_k: a whole number" in refused(client, "/v1/search?q=a&top_k=five")
    for similarity in ("2", "-1.5", "nan", "inf", "1e400", "x", ""):
        refused(client, f"/v1/search?q=a&min_similarity={similarity}")


NAMES = sorted({name for endpoint in ENDPOINTS if endpoint.query for name in endpoint.query.__struct_fields__})
PATHS = ["/v1/search", "/v1/match", "/v1/match.ndjson", "/v1/words", "/v1/documents", "/v1/documents/docs/a.md",
         "/v1/chunks/docs/a.md%230", "/v1/sources", "/v1/stats", "/v1/openapi.json"]  # fmt: skip
VALUES = st.one_of(
    st.text(max_size=20),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["true", "fox", "^a", "docs", "1-2", "lexical", "path", "word", "body"]),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(PATHS),
    pairs=st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=4),
    tail=st.text(alphabet=string.printable, max_size=8),
)
def test_whatever_is_asked_there_is_an_answer(
    client: TestClient, path: str, pairs: list[tuple[str, str]], tail: str
) -> None:
    query = "&".join(f"{name}={quote(value, errors='surrogatepass')}" for name, value in pairs)
    answer = client.get(f"{path}?{query}{quote(tail, safe='&=%')}")
    assert answer.status_code in (200, 400, 404), answer.text
    if answer.status_code != 200 and "problem" in answer.headers["content-type"]:
        assert answer.json()["status"] == answer.status_code
