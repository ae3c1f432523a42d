"""The HTTP service asked by somebody in particular: from an address, with a token, under rules of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from starlette.testclient import TestClient

from app.config import Loaded
from app.discovery import Located
from domain.settings import ServerSettings, Settings
from server.http.service import http_app, http_parts

READ, OPERATE = "r" * 20, "o" * 20
ORIGIN = "http://127.0.0.1:8765"
EVIL = "evil.example"
JSON = {"content-type": "application/json"}
STEER = "/v1/runs/1/pause"


def with_tokens(folder: Path) -> ServerSettings:
    """Settings that name two files, which hold READ and OPERATE."""
    for name, token in (("read", READ), ("operate", OPERATE)):
        (folder / name).write_text(f"{token}\n", "utf-8")
    return ServerSettings(read_token_file=folder / "read", operate_token_file=folder / "operate")


@contextmanager
def asked(settings: Settings, server: ServerSettings, *, peer: str = "127.0.0.1") -> Iterator[TestClient]:
    settings = msgspec.structs.replace(settings, server=server)
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as parts:
        client = TestClient(
            http_app(parts), base_url=ORIGIN, client=(peer, 5000), raise_server_exceptions=False, follow_redirects=False
        )
        with client:
            yield client


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
