"""The HTTP service over a base, asked without a socket."""

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.testclient import TestClient

from app.config import Loaded
from app.discovery import Located
from domain.settings import Settings
from server.http.service import http_app, http_parts

ORIGIN = "http://127.0.0.1:8765"


@contextmanager
def http_client(settings: Settings, **headers: str) -> Iterator[TestClient]:
    """Asks as from this machine, by the usual port."""
    with loaded_client(Loaded(Located("store", None, settings.home), settings), **headers) as client:
        yield client


@contextmanager
def loaded_client(loaded: Loaded, **headers: str) -> Iterator[TestClient]:
    """The same of a configuration that was looked for."""
    with (
        http_parts(loaded) as parts,
        TestClient(http_app(parts), base_url=ORIGIN, headers=headers, raise_server_exceptions=False) as client,
    ):
        yield client
