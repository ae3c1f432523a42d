"""Behind a reverse proxy: whose word counts, and for what (issue 6, point 3)."""

from collections.abc import Sequence

import msgspec
import pytest

from domain.settings import ServerSettings, Settings
from tests.support.bases import build_base
from tests.support.http_access import EVIL, JSON, STEER, asked


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return build_base(tmp_path_factory.mktemp("base"))


PROXY = ServerSettings(
    auth="proxy", trusted_proxies=("10.0.0.0/24", "::1"), operators=("ann",), allowed_hosts=("kb.example",)
)


@pytest.mark.parametrize(
    ("peer", "users", "reads", "operates"),
    [
        ("10.0.0.7", ["ann"], 200, True),
        ("10.0.0.7", ["bob"], 200, False),
        ("::ffff:10.0.0.7", ["bob"], 200, False),
        ("10.0.1.7", ["ann"], 401, False),
        ("127.0.0.1", ["ann"], 401, False),
        ("10.0.0.7", [], 401, False),
        ("10.0.0.7", [""], 401, False),
        ("10.0.0.7", ["ann", "bob"], 401, False),
        ("10.0.0.7", ["a" * 201], 401, False),
        ("", ["ann"], 401, False),
    ],
)
def test_a_trusted_proxy_says_who_asks(
    base: Settings, peer: str, users: Sequence[str], reads: int, operates: bool
) -> None:
    named = [("x-forwarded-user", user) for user in users]
    with asked(base, PROXY, peer=peer) as client:
        assert client.get("/v1/runs", headers=named).status_code == reads
        steered = client.post(STEER, headers=[*named, *JSON.items()], content=b"{}").status_code
        assert (steered not in (401, 403)) is operates


def test_what_a_page_makes_a_browser_send_is_no_change_though_a_proxy_vouches(base: Settings) -> None:
    with asked(base, PROXY, peer="10.0.0.7") as client:
        form = {"x-forwarded-user": "ann", "content-type": "application/x-www-form-urlencoded"}
        assert client.post(STEER, headers=form, content=b"a=b").status_code == 415
        assert client.post(STEER, headers=form, content=b"form_token=x").status_code == 403


def test_a_name_that_leads_here_does_not_speak_with_the_proxys_voice(base: Settings) -> None:
    """A page whose name leads to this machine can set any header but Host."""
    server = msgspec.structs.replace(PROXY, trusted_proxies=("127.0.0.1",))
    forged = {"x-forwarded-user": "ann", "x-forwarded-host": "localhost", "x-forwarded-proto": "http"}
    with asked(base, server) as client:
        assert client.get("/v1/runs", headers={"host": EVIL, **forged}).status_code == 421
        assert client.get("/v1/runs", headers=forged).status_code == 200


def test_forwarded_names_count_from_a_trusted_proxy_alone(base: Settings) -> None:
    forwarded = {"x-forwarded-host": "kb.example", "x-forwarded-proto": "https", "origin": "https://kb.example"}
    server = ServerSettings(trusted_proxies=("10.0.0.7",), allowed_hosts=("kb.example",))
    with asked(base, server, peer="10.0.0.7") as client:
        assert client.get("/v1/runs", headers=forwarded).status_code == 200
        assert client.get("/v1/runs", headers=forwarded | {"x-forwarded-host": EVIL}).status_code == 421
        last = forwarded | {"x-forwarded-host": f"{EVIL}, kb.example"}
        assert client.get("/v1/runs", headers=last).status_code == 200, "what the nearest proxy has seen"
    with asked(base, server, peer="10.0.0.8") as client:
        assert client.get("/v1/runs", headers=forwarded).status_code == 403, "its own name is http://127.0.0.1:8765"


def test_below_a_base_path(base: Settings) -> None:
    with asked(base, ServerSettings(base_path="/kb")) as client:
        assert client.get("/kb/v1/search?q=fox").status_code == 200
        assert client.get("/v1/search?q=fox").status_code == 404
        assert client.get("/kbx/v1/search?q=fox").status_code == 404
        moved = client.get("/kb")
        assert (moved.status_code, moved.headers["location"]) == (308, "/kb/")
        assert "/kb/static/" in client.get("/kb/").text
