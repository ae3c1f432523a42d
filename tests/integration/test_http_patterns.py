"""Patterns over HTTP take long where they are meant to: other reads do not wait for them (T16, T28)."""

import asyncio
import threading
from pathlib import Path

import httpx
import pytest

from app.config import Loaded
from app.discovery import Located
from server.http import read_endpoints_words
from server.http.parts import PATTERNS_AT_A_TIME
from server.http.read_endpoints_words import MOST_PATTERNS_WAITING
from server.http.service import READS_AT_A_TIME, http_app, http_parts
from tests.support.bases import build_base
from tests.support.http_service import ORIGIN

MOST = PATTERNS_AT_A_TIME + MOST_PATTERNS_WAITING


async def test_reads_go_on_while_patterns_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask: the others wait, and what is more than that is refused for a moment."""
    settings = build_base(tmp_path)
    let_go, begun = threading.Event(), threading.Semaphore(0)
    look = read_endpoints_words._words

    def slow(*arguments: object) -> object:
        if arguments[2].pattern:  # type: ignore[attr-defined]
            begun.release()
            let_go.wait(60)
        return look(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(read_endpoints_words, "_words", slow)
    assert MOST > READS_AT_A_TIME
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as parts:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(http_app(parts)), base_url=ORIGIN) as client:
            asked = [asyncio.create_task(client.get("/v1/words?pattern=x")) for _ in range(MOST + 1)]
            try:
                for _ in range(PATTERNS_AT_A_TIME):
                    await asyncio.to_thread(begun.acquire)
                done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
                refused = [task.result() for task in done]
                assert [(answer.status_code, answer.headers["retry-after"]) for answer in refused] == [(503, "1")]
                assert refused[0].json()["code"] == "busy"
                for path in ("/v1/search?q=fox", "/v1/words", "/v1/stats"):
                    assert (await client.get(path)).status_code == 200
                assert not begun.acquire(blocking=False), "the others have not begun"
            finally:
                let_go.set()
            assert sorted({(await task).status_code for task in asked}) == [200, 503]
