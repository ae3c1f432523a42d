"""Signing in: a token becomes a cookie, never an address; changes prove that they are meant (issue 6, point 3)."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from app.config import Loaded
from app.discovery import Located
from domain.settings import ServerSettings, Settings
from server.http.service import http_app, http_parts
from server.http.sessions import ATTEMPTS_AT_ONCE, SESSION_LIVES_S
from server.http.sign_in_endpoints import local_path
from tests.support.bases import build_base

READ, OPERATE = "r" * 20, "o" * 20
ORIGIN = "http://127.0.0.1:8765"
OWN = {"origin": ORIGIN}
STEER = "/v1/runs/1/pause"
EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("base")
    for name, token in (("read", READ), ("operate", OPERATE)):
        (folder / name).write_text(token, "utf-8")
    tokens = ServerSettings(read_token_file=folder / "read", operate_token_file=folder / "operate")
    return build_base(folder, server=tokens)


@contextmanager
def browser(settings: Settings, origin: str = ORIGIN, **changes: object) -> Iterator[TestClient]:
    server = msgspec.structs.replace(settings.server, **changes)
    settings = msgspec.structs.replace(settings, server=server)
    with (
        http_parts(Loaded(Located("store", None, settings.home), settings)) as parts,
        TestClient(http_app(parts), base_url=origin, follow_redirects=False, raise_server_exceptions=False) as client,
    ):
        yield client


@pytest.fixture
def client(base: Settings) -> Iterator[TestClient]:
    with browser(base) as it:
        yield it


def hidden(page: Any, name: str) -> str:
    """What a form of the page sends along."""
    for field in re.findall(r"<input[^>]*>", page.text):
        if f'name="{name}"' in field:
            found = re.search(r'value="([^"]*)"', field)
            return found[1].replace("&amp;", "&") if found else ""
    raise AssertionError(f"no field {name}")


def signed_in(client: TestClient, token: str, path: str = "/", **headers: str) -> Any:
    page = client.get(path)
    form = {"token": token, "form_token": hidden(page, "form_token"), "next": hidden(page, "next")}
    own = {"origin": str(client.base_url).rstrip("/")}
    base_path = re.search(r'action="([^"]*)/sign-in"', page.text)
    assert base_path is not None
    return client.post(f"{base_path[1]}/sign-in", data=form, headers=own | headers)


def cookie_of(client: TestClient) -> str:
    ((name, value),) = dict(client.cookies).items()
    return f"{name}={value}"


def form_token(client: TestClient, path: str = "/operations") -> str:
    found = re.search(r'<meta name="form-token" content="([^"]+)"', client.get(path).text)
    assert found is not None
    return found[1]


def test_from_the_form_to_the_page_that_was_asked_for(client: TestClient) -> None:
    page = client.get("/?q=a%26b")
    assert page.status_code == 401
    assert page.headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    answer = signed_in(client, READ, "/?q=a%26b")
    assert (answer.status_code, answer.headers["location"]) == (303, "/?q=a%26b")
    assert READ not in answer.headers["location"] + answer.headers["set-cookie"]
    assert client.get(answer.headers["location"]).status_code == 200
    assert client.get("/v1/runs").status_code == 200


def test_what_the_cookie_may(client: TestClient) -> None:
    cookie = signed_in(client, READ).headers["set-cookie"]
    assert {part.strip().lower() for part in cookie.split(";")[1:]} == {
        "httponly",
        "samesite=strict",
        "path=/",
        f"max-age={SESSION_LIVES_S}",
    }


@pytest.mark.parametrize(
    ("origin", "is_secure"),
    [
        ("http://localhost:8765", False),
        ("http://[::1]:8765", False),
        ("https://localhost", True),
        ("http://kb.example", True),
    ],
)
def test_the_cookie_is_secure_but_for_this_machine(base: Settings, origin: str, is_secure: bool) -> None:
    with browser(base, origin, allowed_hosts=("kb.example",)) as client:
        assert ("secure" in signed_in(client, READ).headers["set-cookie"].lower()) is is_secure


def test_below_a_base_path_the_cookie_is_that_paths(base: Settings) -> None:
    with browser(base, base_path="/kb") as client:
        answer = signed_in(client, READ, "/kb/operations")
        assert answer.headers["location"] == "/kb/operations"
        assert "path=/kb" in answer.headers["set-cookie"].lower()
        assert client.get("/kb/operations").status_code == 200


def test_what_is_not_a_page_is_answered_with_a_problem(client: TestClient) -> None:
    answer = client.get("/v1/runs", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    assert client.get("/static/pages.css").status_code == 200, "the form is shown with it"


@pytest.mark.parametrize("token", ["", "x", READ[:-1], READ + OPERATE, "é"])
def test_a_wrong_token_is_told_and_nothing_more(client: TestClient, token: str) -> None:
    answer = signed_in(client, token)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "not a token of this service" in answer.text
    assert len(token) < 2 or token not in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"origin": EVIL}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, 303),
    ],
)
def test_signing_in_is_done_on_our_own_page(client: TestClient, headers: dict[str, str], status: int) -> None:
    """Else another site could sign a browser in as somebody else."""
    form = {"token": READ, "form_token": hidden(client.get("/"), "form_token"), "next": "/"}
    assert client.post("/sign-in", data=form, headers=headers).status_code == status


@pytest.mark.parametrize("token", ["", "1.2", "x", "9999999999.00", ".", "é.é", "9" * 5000 + ".x"])
def test_a_form_that_is_not_ours_is_shown_again(client: TestClient, token: str) -> None:
    answer = client.post("/sign-in", data={"token": READ, "form_token": token, "next": "/"}, headers=OWN)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "\\evil",
        "javascript:alert(1)",
        "evil",
        "",
        "/a\nb",
        "/" + "a" * 3000,
    ],
)
def test_nobody_is_led_to_another_site(client: TestClient, path: str) -> None:
    assert local_path(path) == "/"
    form = {"token": READ, "form_token": hidden(client.get("/"), "form_token"), "next": path}
    assert client.post("/sign-in", data=form, headers=OWN).headers["location"] == "/"


def test_many_tries_are_told_to_wait(client: TestClient) -> None:
    form = {"token": "wrong", "form_token": hidden(client.get("/"), "form_token"), "next": "/"}
    answers = [client.post("/sign-in", data=form, headers=OWN) for _ in range(ATTEMPTS_AT_ONCE + 3)]
    assert [answer.status_code for answer in answers[:ATTEMPTS_AT_ONCE]] == [401] * ATTEMPTS_AT_ONCE
    assert answers[-1].status_code == 429
    assert answers[-1].headers["retry-after"] == "5"
    late = client.post("/sign-in", data={**form, "token": READ}, headers=OWN)
    assert (late.status_code, "set-cookie" in late.headers) == (429, False), "a right one waits, too"


def test_a_change_by_a_session_proves_that_it_was_meant(client: TestClient) -> None:
    signed_in(client, OPERATE)
    token = form_token(client)
    passes = [
        {"headers": OWN | {"x-form-token": token, "content-type": "application/json"}, "content": b"{}"},
        {"headers": OWN | {"x-form-token": token}},
        {"headers": {"sec-fetch-site": "same-origin", "x-form-token": token}},
        {"headers": OWN, "data": {"form_token": token}},
    ]
    fails = [
        {"headers": OWN},
        {"headers": OWN | {"content-type": "application/json"}, "content": b"{}"},
        {"headers": OWN | {"x-form-token": token[:-1]}},
        {"headers": {"x-form-token": token}},
        {"headers": {"x-form-token": token, "origin": EVIL}},
        {"headers": {"x-form-token": token, "origin": "null"}},
        {"headers": OWN, "data": {"form_token": "x"}},
    ]
    for sent in passes:
        assert client.post(STEER, **sent).status_code not in (401, 403, 415, 500), sent  # type: ignore[arg-type]
    for sent in fails:
        assert client.post(STEER, **sent).status_code == 403, sent  # type: ignore[arg-type]


def test_the_form_token_of_another_session_is_none(client: TestClient, base: Settings) -> None:
    signed_in(client, OPERATE)
    of_first = form_token(client)
    client.cookies.clear()
    signed_in(client, OPERATE)
    assert form_token(client) != of_first
    assert client.post(STEER, headers=OWN | {"x-form-token": of_first}).status_code == 403


def test_a_readers_session_may_not_operate_and_is_asked_for_the_other_token(client: TestClient) -> None:
    signed_in(client, READ)
    assert client.post(STEER, headers=OWN | {"x-form-token": form_token(client)}).status_code == 403
    page = client.get("/operations/checks")
    assert page.status_code == 403
    assert "operator" in page.text
    assert signed_in(client, OPERATE, "/operations/checks").headers["location"] == "/operations/checks"


def test_signing_out_ends_the_session_not_only_the_cookie(client: TestClient) -> None:
    signed_in(client, READ)
    kept = cookie_of(client)
    for headers in ({}, {"origin": EVIL}, OWN):
        assert client.post("/sign-out", headers=headers).status_code == 403
    answer = client.post("/sign-out", data={"form_token": form_token(client)}, headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    client.cookies.clear()
    assert client.get("/v1/runs", headers={"cookie": kept}).status_code == 401
    assert client.post("/sign-out", headers=OWN).status_code == 303, "nobody is signed in: nothing to do"


def test_a_new_sign_in_ends_the_session_before(client: TestClient) -> None:
    """What somebody has put into the browser before is worth nothing afterwards."""
    signed_in(client, READ)
    before = cookie_of(client)
    form = {"token": OPERATE, "form_token": hidden(client.get("/sign-in"), "form_token"), "next": "/"}
    client.post("/sign-in", data=form, headers=OWN)
    assert cookie_of(client) != before
    client.cookies.clear()
    assert client.get("/v1/runs", headers={"cookie": before}).status_code == 401


def test_where_nobody_signs_in_there_is_no_form(tmp_path: Path, base: Settings) -> None:
    open_to_all = msgspec.structs.replace(base, server=ServerSettings())
    with browser(open_to_all) as client:
        assert client.get("/sign-in").status_code == 404
        assert client.get("/").status_code == 200
        assert client.post(STEER, headers=OWN | {"x-form-token": form_token(client)}).status_code not in (403, 415)
    by_proxy = msgspec.structs.replace(base, server=ServerSettings(auth="proxy", trusted_proxies=("10.0.0.7",)))
    with browser(by_proxy) as client:
        assert client.get("/").headers["content-type"] == "application/problem+json"
