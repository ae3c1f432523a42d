"""A complete set as lines: whole, in one state of the index, and recognisable where it is cut off."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message

from app import enumerating
from app.config import Loaded
from app.discovery import Located
from app.wiring import writable_base
from domain.errors import IntegrityError
from domain.settings import Settings
from retrieval.enumeration import describe_documents
from server.http import read_endpoints_export
from server.http.answer_shapes import MatchLine
from server.http.parts import HttpParts
from server.http.service import http_app, http_parts
from tests.support.bases import build_base, index_into, layout_of, write_files
from tests.support.http_service import ORIGIN, http_client

NUMBER = 23
TEXTS = {f"d{number:02}.md": f"# Note {number}\n\n{'fox ' * (number % 3 + 1)}\n" for number in range(NUMBER)}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return build_base(tmp_path_factory.mktemp("export"), TEXTS)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with http_client(settings) as asked:
        yield asked


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumerating, "DOCUMENTS_A_PAGE", 5)


def lines_of(text: str) -> list[dict[str, Any]]:
    """As a client reads them."""
    assert text.endswith("\n")
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        msgspec.convert(line, MatchLine)
    return lines


@pytest.mark.parametrize("sort", ["path", "matches"])
def test_the_first_line_has_the_total_the_last_says_that_it_is_whole(client: TestClient, sort: str) -> None:
    answer = client.get("/v1/match.ndjson", params={"q": "fox", "sort": sort})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    head, *documents, end = lines_of(answer.text)
    assert (head["status"], head["matched"]) == ("ok", NUMBER)
    assert end == {"whole": True, "returned": NUMBER}
    assert documents == client.get("/v1/match", params={"q": "fox", "sort": sort, "limit": 1000}).json()["documents"]


def test_a_set_without_a_document_is_whole(client: TestClient) -> None:
    head, end = lines_of(client.get("/v1/match.ndjson", params={"q": "zebra"}).text)
    assert (head["matched"], head["no_match_cause"], end) == (0, "nowhere", {"whole": True, "returned": 0})


def test_a_head_is_all_that_is_asked_for(client: TestClient) -> None:
    answer = client.head("/v1/match.ndjson", params={"q": "fox"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert client.get("/v1/match", params={"q": "fox"}).status_code == 200


def test_queries_that_are_none(client: TestClient) -> None:
    for q, code in (("fox OR dog", "usage"), ("-fox", "usage")):
        answer = client.get("/v1/match.ndjson", params={"q": q})
        assert (answer.status_code, answer.json()["code"]) == (400, code)
    answer = client.get("/v1/match.ndjson", params={"q": "?!"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "query_empty")


def test_what_fails_on_the_way_is_told_in_the_last_line(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status is sent by then."""
    calls: list[int] = []

    def failing(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise IntegrityError("page 7 is damaged", hint="see `knowledge verify`")
        return describe_documents(*arguments)

    monkeypatch.setattr(enumerating, "describe_documents", failing)
    *_, end = lines_of(client.get("/v1/match.ndjson", params={"q": "fox"}).text)
    assert (end["whole"], end["returned"], end["error"]["code"]) == (False, 10, "integrity")
    assert client.get("/v1/search", params={"q": "fox"}).status_code == 200


class Slow:
    """A client that takes what it is sent when it likes."""

    def __init__(self, parts: HttpParts) -> None:
        self.app: ASGIApp = http_app(parts)
        self.sent: list[Message] = []
        self.gone = anyio.Event()
        self.took_head = anyio.Event()
        self.goes_on = anyio.Event()

    async def ask(self, path: str, query: str) -> None:
        host = ORIGIN.removeprefix("http://").encode()
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(b"host", host)], "client": ("127.0.0.1", 4), "server": ("127.0.0.1", 8765), "state": {},
        }  # fmt: skip
        await self.app(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if not self.gone.is_set():
            await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)
        if len(self.sent) == 2:
            self.took_head.set()
            await self.goes_on.wait()

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    @property
    def is_ended(self) -> bool:
        return not self.sent[-1].get("more_body", True)


@pytest.fixture
def parts(settings: Settings) -> Iterator[HttpParts]:
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as made:
        yield made


async def test_all_of_it_is_of_one_state(tmp_path: Path) -> None:
    """A run that ends meanwhile changes nothing of it."""
    settings = build_base(tmp_path, TEXTS)
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as parts:
        client = Slow(parts)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.ask, "/v1/match.ndjson", "q=fox")
            await client.took_head.wait()
            write_files(tmp_path / "docs", {"d99.md": "# New\n\nfox\n"})
            with writable_base(settings, "test") as base:
                index_into(base, settings, tmp_path / "docs", "docs", ["d99.md"])
            client.goes_on.set()
        head, *documents, end = lines_of(client.text)
        assert (head["matched"], len(documents), end["returned"]) == (NUMBER, NUMBER, NUMBER)
        again = Slow(parts)
        again.goes_on.set()
        await again.ask("/v1/match.ndjson", "q=fox")
        assert lines_of(again.text)[0]["matched"] == NUMBER + 1


async def test_a_client_that_has_gone_is_read_for_no_longer(parts: HttpParts) -> None:
    client = Slow(parts)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.ask, "/v1/match.ndjson", "q=fox")
        await client.took_head.wait()
        client.gone.set()
        client.goes_on.set()
    assert "whole" not in client.text
    assert_nothing_is_held(parts)


async def test_a_client_that_takes_too_long_is_cut_off(parts: HttpParts, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read transaction keeps the index from shrinking its log."""
    monkeypatch.setattr(read_endpoints_export, "LONGEST_S", 0.2)
    client = Slow(parts)
    await client.ask("/v1/match.ndjson", "q=fox")
    assert not client.is_ended
    assert "whole" not in client.text
    assert_nothing_is_held(parts)


async def test_an_export_that_is_cancelled_leaves_nothing_open(parts: HttpParts) -> None:
    client = Slow(parts)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.ask, "/v1/match.ndjson", "q=fox")
        await client.took_head.wait()
        tasks.cancel_scope.cancel()
    assert not client.is_ended
    assert_nothing_is_held(parts)


def assert_nothing_is_held(parts: HttpParts) -> None:
    """The one base that was opened is back, and no transaction is open in it."""
    assert parts.readers.borrowed_tokens == 0
    with parts.bases.borrowed() as base, base.store.snapshot() as snapshot:
        assert snapshot.identity().commit_seq
    assert layout_of(parts.settings).database.exists()
