"""Who may ask over HTTP: names, origins, tokens, proxies; decided before a body is read (issue 6, point 2; T27)."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from app.config import Loaded
from app.discovery import Located
from domain.errors import ConfigurationError
from domain.settings import McpSettings, ServerSettings, Settings
from server.http.access import refuse_open_place
from server.http.service import http_parts, service_app
from tests.support.bases import build_base
from tests.support.http_access import EVIL, JSON, OPERATE, ORIGIN, READ, STEER, asked, bearer, with_tokens


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return build_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> ServerSettings:
    return with_tokens(tmp_path_factory.mktemp("tokens"))


@pytest.fixture(scope="module")
def plain(base: Settings) -> Iterator[TestClient]:
    """Without a token: open to this machine."""
    with asked(base, ServerSettings(allowed_hosts=("kb.example", "other.example:81"))) as client:
        yield client


@pytest.fixture(scope="module")
def guarded(base: Settings, tokens: ServerSettings) -> Iterator[TestClient]:
    with asked(base, tokens) as client:
        yield client


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8765",
        "localhost:1",
        "LOCALHOST",
        "[::1]:8765",
        "kb.example",
        "KB.example:99",
        "other.example:81",
    ],
)
def test_names_that_are_answered(plain: TestClient, host: str) -> None:
    """T27: the names of this machine with any port, IPv6 too, and those that are configured."""
    assert plain.get("/v1/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [EVIL, "", "127.0.0.1.evil.example", "localhost.evil.example", "localhost.", "other.example", "other.example:82",
     "kb.example:x", "127.0.0.1:8765:1", "user@127.0.0.1", "127.0.0.1/", "[::1", "[::2]", "0.0.0.0", "127.1",
     "2130706433", "localhost,evil.example", "k" * 400],
)  # fmt: skip
def test_other_names_are_not(plain: TestClient, host: str) -> None:
    """T27: a name of another site that leads here (DNS rebinding) is refused, and the key to add it to is named."""
    answer = plain.get("/v1/runs", headers={"host": host})
    assert answer.status_code == 421
    assert answer.json()["code"] == "host_not_allowed"
    assert "server.allowed_hosts" in answer.json()["hint"]
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("origin", [f"http://{EVIL}", "null", "https://127.0.0.1:8765", "http://127.0.0.1:1", "x", ""])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_a_page_of_another_site_is_refused(plain: TestClient, origin: str, method: str) -> None:
    """T27: also to read, and before its token is looked at."""
    answer = plain.request(method, "/v1/runs", headers={"origin": origin, **JSON})
    assert answer.status_code == 403
    assert answer.json()["code"] == "origin_not_allowed"
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_our_own_pages_are_answered(plain: TestClient) -> None:
    for origin, host in (
        (ORIGIN, "127.0.0.1:8765"),
        ("http://kb.example", "kb.example"),
        ("http://kb.example", "kb.example:80"),
    ):
        assert plain.get("/v1/runs", headers={"origin": origin, "host": host}).status_code == 200
    hidden = {"origin": "null", "sec-fetch-site": "same-origin"}  # a form of a page that sends no referrer
    assert plain.get("/v1/runs", headers=hidden).status_code == 200


def test_an_allowed_origin_may_read_the_answer_and_asks_in_advance(base: Settings) -> None:
    portal = "https://portal.example"
    with asked(base, ServerSettings(allowed_origins=(portal,))) as client:
        answer = client.get("/v1/runs", headers={"origin": portal})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, portal)
        assert "access-control-allow-credentials" not in answer.headers
        before = client.options("/v1/runs", headers={"origin": portal, "access-control-request-method": "POST"})
        assert (before.status_code, before.headers["access-control-allow-origin"]) == (204, portal)
        assert client.get("/v1/runs", headers={"origin": "https://portal.example.evil"}).status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data; boundary=x"}, 415),
        ({"x-form-token": "wrong"}, 403),
        ({**JSON, "origin": f"http://{EVIL}"}, 403),
        ({**JSON, "host": EVIL}, 421),
    ],
)
def test_a_web_page_cannot_steer_an_open_service(plain: TestClient, headers: dict[str, str], status: int) -> None:
    """What a form of another page can send is refused even where its origin is not told."""
    assert plain.post(STEER, headers=headers, content=b"{}").status_code == status


def test_programs_on_this_machine_steer_an_open_service(plain: TestClient) -> None:
    answer = plain.post(STEER, headers=JSON, content=b"{}")
    assert answer.status_code not in (401, 403, 415, 421, 500), answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        (bearer(READ), 200),
        (bearer(OPERATE), 200),
        ({"authorization": f"bearer  {READ}"}, 200),
        (bearer(READ[:-1]), 401),
        (bearer(""), 401),
        (bearer(READ + "é"), 401),
        ({"authorization": READ}, 401),
        ({"authorization": f"Basic {READ}"}, 401),
        ({"authorization": f"Bearer {READ} {OPERATE}"}, 401),
        ({"cookie": f"knowledge={READ}"}, 401),
        ({"x-forwarded-user": "root"}, 401),
    ],
)
def test_who_may_read(guarded: TestClient, headers: dict[str, str], status: int) -> None:
    """T27: a wrong or absent token; a challenge says what is wanted."""
    sent = {name: value.encode("utf-8") for name, value in headers.items()}
    answer = guarded.get("/v1/runs", headers=sent)  # type: ignore[arg-type]
    assert answer.status_code == status
    if status == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["code"] == "unauthenticated"
        assert READ not in answer.text


def test_two_tokens_are_none(guarded: TestClient) -> None:
    twice = [("authorization", f"Bearer {READ}"), ("authorization", f"Bearer {OPERATE}")]
    assert guarded.get("/v1/runs", headers=twice).status_code == 401


@pytest.mark.parametrize("name", ["token", "access_token", "Access_Token", "api_key"])
def test_a_token_in_an_address_is_refused(guarded: TestClient, plain: TestClient, name: str) -> None:
    """T27: it would be kept in logs and histories; a good one in the header does not make it better."""
    answer = guarded.get(f"/v1/search?q=x&{name}={READ}", headers=bearer(READ))
    assert answer.status_code == 401
    assert "Authorization: Bearer" in answer.json()["hint"]
    assert READ not in answer.text
    assert plain.get(f"/v1/search?q=x&{name}=").status_code == 401


def test_a_reader_may_not_operate(guarded: TestClient) -> None:
    answer = guarded.post(STEER, headers=bearer(READ))
    assert answer.status_code == 403
    assert 'error="insufficient_scope", scope="operate"' in answer.headers["www-authenticate"]
    assert guarded.post(STEER, headers=bearer(OPERATE) | JSON, content=b"{}").status_code not in (401, 403, 415, 500)


def test_who_asks_is_found_out_before_a_body_is_read(base: Settings, tokens: ServerSettings) -> None:
    read: list[str] = []

    def body() -> Iterator[bytes]:
        read.append("begun")
        yield b"{"

    with asked(base, tokens) as client:
        for headers, status in (
            ({}, 401),
            ({"host": EVIL}, 421),
            ({"origin": f"http://{EVIL}"}, 403),
            (bearer(READ), 403),
        ):
            answer = client.post(STEER, headers={**headers, **JSON, "transfer-encoding": "chunked"}, content=body())
            assert answer.status_code == status
            assert answer.headers["connection"] == "close", "what else comes is not read"


def test_only_one_token_leaves_the_other_scope_to_nobody(base: Settings, tokens: ServerSettings) -> None:
    with asked(base, msgspec.structs.replace(tokens, operate_token_file=None)) as client:
        assert client.get("/v1/runs", headers=bearer(READ)).status_code == 200
        assert client.post(STEER, headers=bearer(OPERATE)).status_code == 401
    with asked(base, msgspec.structs.replace(tokens, read_token_file=None)) as client:
        assert client.get("/v1/runs").status_code == 401
        assert client.get("/v1/runs", headers=bearer(OPERATE)).status_code == 200


def test_every_answer_has_what_keeps_it_inert(plain: TestClient, guarded: TestClient) -> None:
    for client, path in (
        (plain, "/v1/runs"),
        (plain, "/"),
        (plain, "/nothing"),
        (plain, "/static/pages.css"),
        (guarded, "/"),
        (guarded, "/v1/runs"),
    ):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] in ("no-referrer", "same-origin")  # neither tells another site
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "kb.example"])
def test_a_place_that_others_reach_needs_somebody_to_ask(base: Settings, tokens: ServerSettings, host: str) -> None:
    """T27: a bind beyond this machine without a token refuses to start (2), and names the keys."""
    with pytest.raises(ConfigurationError) as caught:
        refuse_open_place(msgspec.structs.replace(base, server=ServerSettings(host=host)))
    assert caught.value.exit_status == 2
    assert "server.host" in caught.value.message
    assert "server.read_token_env" in caught.value.hint
    refuse_open_place(msgspec.structs.replace(base, server=msgspec.structs.replace(tokens, host=host)))
    by_proxy = ServerSettings(host=host, auth="proxy", trusted_proxies=("10.0.0.7",))
    refuse_open_place(msgspec.structs.replace(base, server=by_proxy))
    refuse_open_place(msgspec.structs.replace(base, server=ServerSettings(host="localhost")))


def test_health_is_for_everybody_and_numbers_for_those_who_know_a_name(base: Settings, tokens: ServerSettings) -> None:
    from starlette.responses import PlainTextResponse

    settings = msgspec.structs.replace(base, server=msgspec.structs.replace(tokens, allowed_hosts=("serve",)))
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as parts:
        client = TestClient(service_app(parts, PlainTextResponse("health")), base_url=ORIGIN)
        for path in ("/healthz", "/readyz"):
            assert client.get(path, headers={"host": EVIL}).text == "health"
        assert client.get("/metrics", headers={"host": EVIL}).status_code == 421
        assert client.get("/metrics", headers={"host": "serve:8765"}).text == "health"
        assert client.get("/v1/runs").status_code == 401


def test_a_fault_of_ours_is_told_without_its_words(
    base: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """T28: no stack trace and no path in an answer; the log says where."""
    from server.http import service
    from server.http.parts import Endpoint

    async def broken(*_: object) -> None:
        raise RuntimeError("secret words in /srv/texts/a.md")

    monkeypatch.setattr(service, "ENDPOINTS", (Endpoint("GET", "/v1/broken", broken, "broken", ""),))  # type: ignore[arg-type]
    with asked(base, ServerSettings()) as client:
        answer = client.get("/v1/broken")
    assert answer.status_code == 500
    assert answer.json()["code"] == "unexpected"
    assert "secret" not in answer.text and "/srv" not in answer.text and "secret" not in caplog.text
    assert "RuntimeError" in caplog.text


def test_the_base_is_not_touched_by_any_of_it(base: Settings, plain: TestClient) -> None:
    database = Path(base.home) / "knowledge.db"
    before = database.read_bytes()
    plain.get("/v1/search?q=fox")
    plain.post(STEER, headers=JSON, content=b"{}")
    assert database.read_bytes() == before


def test_agents_ask_by_the_same_rules(base: Settings, tokens: ServerSettings) -> None:
    """P28, T27: /mcp is there where a tool is listed, behind the same gate; with a port of its own, only there."""
    from server.http.service import mcp_only_app

    tools = msgspec.structs.replace(base, mcp=McpSettings(("knowledge_search",)))
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accepts = {"accept": "application/json, text/event-stream"}
    with asked(base, ServerSettings()) as client:
        assert client.post("/mcp", json=message, headers=accepts).status_code == 404
    with asked(tools, tokens) as client:
        assert client.post("/mcp", json=message, headers=accepts).status_code == 401
        assert client.post("/mcp", json=message, headers=accepts | {"host": EVIL}).status_code == 421
        assert client.post("/mcp", json=message, headers=accepts | {"origin": f"http://{EVIL}"}).status_code == 403
        assert client.post("/mcp", json=message, headers=accepts | bearer(READ)).json()["result"] == {}
    apart = msgspec.structs.replace(tools, mcp=McpSettings(("knowledge_search",), port=9), server=tokens)
    with asked(apart, tokens) as client:
        assert client.post("/mcp", json=message, headers=accepts | bearer(READ)).status_code == 404
    with http_parts(Loaded(Located("store", None, base.home), apart)) as parts:
        client = TestClient(mcp_only_app(parts), base_url=ORIGIN)
        assert client.post("/mcp", json=message, headers=accepts | bearer(READ)).json()["result"] == {}
        assert client.post("/mcp", json=message, headers=accepts).status_code == 401
        assert client.get("/v1/runs", headers=bearer(READ)).status_code == 404
