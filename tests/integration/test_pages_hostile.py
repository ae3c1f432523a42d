"""P20, T2, T10 to T12: whatever documents, names, queries and errors hold, a page shows it and nothing of it acts."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from store.failure_port import FailureRecord
from store.run_port import RunRecord
from store.state import SqliteStateStore
from tests.support.bases import build_base, layout_of, settings_of
from tests.support.frame_checks import assert_harmless
from tests.support.hostile_texts import HERD, MARK, HostileText, hostile_texts
from tests.support.http_service import http_client
from tests.support.page_reading import Element, look

TEXTS = list(hostile_texts())


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("hostile")
    texts = {text.path.removeprefix("docs/"): text.document for text in TEXTS}
    with http_client(build_base(folder, texts)) as asked:
        yield asked


def assert_shown(page: Element) -> None:
    """Nothing that a terminal, a reader's eye or a model would not see; attributes are read by people and programs."""
    assert_harmless(page.text)


@pytest.mark.parametrize("first", range(0, len(TEXTS), HERD))
def test_hostile_documents_are_shown_inert(client: TestClient, first: int) -> None:
    page = look(client, "/", q=TEXTS[first].herd, hits=20)
    hits = page.all("li", "hit")
    assert len(hits) == len(TEXTS[first : first + HERD])
    assert_shown(page)
    for hit in hits:
        address = hit.one("h2").one("a").attributes["href"].partition("#")[0]
        document = look(client, address)
        assert MARK in document.text
        assert_shown(document)
    assert_shown(look(client, "/match", q=TEXTS[first].herd))


@pytest.mark.parametrize("text", TEXTS[::16], ids=lambda text: text.kind)
def test_hostile_questions(client: TestClient, text: HostileText) -> None:
    given = text.text[:6000]
    for path in ("/", "/match"):
        for name in ("q", "root", "path", "mode", "page", "hits", "sort"):
            parameters = {"q": "quagga", name: given}
            status = client.get(path, params=parameters).status_code
            assert status in (200, 400)
            assert_shown(look(client, path, status, **parameters))
    assert_shown(look(client, "/document", 404, path=given))


def test_raw_bytes_in_an_address(client: TestClient) -> None:
    """T15: what is no text in UTF-8 is no fault of the server."""
    for query in ("q=%ff%fe", "q=%00", "q=%ed%a0%80", "q=%F0%9F%92", "q=a&q=b", "%3Cscript%3E=1", "q", "&&&", "q=%"):
        for path in ("/", "/match", "/document", "/operations/failures"):
            answer = client.get(f"{path}?{query}")
            assert answer.status_code in (200, 400, 404), (path, query, answer.status_code)


def test_hostile_failures_and_causes(tmp_path: Path) -> None:
    settings = build_base(tmp_path)
    with closing(SqliteStateStore(layout_of(settings).state)) as state:
        _record(state, time.time_ns())
    with http_client(settings) as asked:
        for path in ("/operations", "/operations/failures", "/operations/runs/1", "/operations/runs/2"):
            assert_shown(look(asked, path))


def _record(state: SqliteStateStore, now_ns: int) -> None:
    state.record_failures(
        [
            FailureRecord(f"docs/{text.text[:900]}", "unreadable", text.text[:900], 1, now_ns, now_ns)
            for text in TEXTS[::16]
        ]
    )
    run = state.begin_run(
        RunRecord(
            0, 0, "index", "schedule", ("docs", "<b>\x1b[31m"), "walking", now_ns, None, {}, schedule="<i>\u202e"
        ),
        floor_generation=0,
    )
    state.end_run(run.id, "failed", {}, "boom: <script>alert(1)</script>\x1b]0;x\x07")


def test_a_home_with_a_hostile_name(tmp_path: Path) -> None:
    with http_client(settings_of(tmp_path / "<script>alert(1)</script>\u202e'\"")) as asked:
        page = look(asked, "/", 409)
        assert "<script>alert(1)</script>" in page.text
        assert_shown(page)
