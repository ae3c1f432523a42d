"""Who may only read is not told where things lie on the server's machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from domain.settings import ServerSettings
from tests.support.bases import build_base, settings_of
from tests.support.http_service import http_client

READ, OPERATE = "r" * 24, "o" * 24
SERVER = ServerSettings(read_token_env="READ_TOKEN_OF_A_TEST", operate_token_env="OPERATE_TOKEN_OF_A_TEST")


@pytest.fixture(autouse=True)
def tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER.read_token_env, READ)
    monkeypatch.setenv(SERVER.operate_token_env, OPERATE)


@contextmanager
def asked_by(tmp_path: Path, token: str, *, is_built: bool = True) -> Iterator[TestClient]:
    settings = build_base(tmp_path, server=SERVER) if is_built else settings_of(tmp_path / "home", server=SERVER)
    with http_client(settings, authorization=f"Bearer {token}") as client:
        yield client


def test_places_are_for_operators(tmp_path: Path) -> None:
    with asked_by(tmp_path, OPERATE) as client:
        sources = client.get("/v1/sources").json()
        assert sources["home"] == client.get("/v1/stats").json()["home"] == str(tmp_path / "home")
        assert sources["roots"][0]["path"] == str(tmp_path / "docs")


def test_readers_are_told_the_rest(tmp_path: Path) -> None:
    with asked_by(tmp_path, READ) as client:
        for url in ("/v1/sources", "/v1/stats", "/v1/documents", "/v1/search?q=fox", "/v1/match?q=fox", "/v1/words"):
            answer = client.get(url)
            assert answer.status_code == 200, answer.text
            assert str(tmp_path) not in answer.text, url
        root = client.get("/v1/sources").json()["roots"][0]
        assert (root["name"], root["path"], root["documents"]) == ("docs", None, 5)


def test_where_no_index_was_found_is_for_operators(tmp_path: Path) -> None:
    for token, is_told in ((READ, False), (OPERATE, True)):
        with asked_by(tmp_path, token, is_built=False) as client:
            for url in (
                "/v1/search?q=fox",
                "/v1/match?q=fox",
                "/v1/words",
                "/v1/stats",
                "/v1/documents/a",
                "/v1/match.ndjson?q=a",
            ):
                answer = client.get(url)
                assert answer.status_code == 409
                assert "there is no index yet" in answer.text
                assert (str(tmp_path) in answer.text) == is_told, url
