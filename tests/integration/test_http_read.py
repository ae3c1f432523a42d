"""What is read over HTTP: the answers of the command line, in pages, with ETags (issue 6, S0-38, S0-49, S0-53)."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from app.wiring import writable_base
from domain.settings import Settings
from server.http.read_endpoints import ENDPOINTS
from tests.support import status_bases as bases
from tests.support.bases import build_base
from tests.support.http_service import http_client
from tests.support.told import _called

TEXTS = {
    "a.md": "---\ntitle: Alpha\n---\n# Alpha\n\nThe quick brown fox.\n\n## Deeper\n\nJumps over the fox.\n",
    "b.md": "# Beta\n\nLazy dogs sleep near a fox.\n",
    "odd #1 ü.md": "# Odd\n\nA fox with a mark.\n",
    "odd": "not indexed",
    "sub/c.md": "# Gamma\n\nA river.\n\n## Fox\n\nand a fox\n",
    "sub/d.txt": "only text\r\nwith two lines\r\n\r\nand a fox\r\n",
}
ALL = ["docs/a.md", "docs/b.md", "docs/odd #1 ü.md", "docs/sub/c.md", "docs/sub/d.txt"]
SHAPES = {endpoint.path.partition("{")[0]: endpoint.returns for endpoint in ENDPOINTS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("read")
    bases.built(folder, {name: text for name, text in TEXTS.items() if "." in name})
    return folder


@pytest.fixture(scope="module")
def settings(folder: Path) -> Settings:
    return bases.configure(folder)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with http_client(settings) as asked:
        yield asked


def command(folder: Path, *arguments: str) -> Any:
    """What the command line says with --json."""
    with contextlib.chdir(folder):
        _, out, _ = _called([*arguments, "--json"])
    return json.loads(out)


def asked(client: TestClient, path: str, /, **parameters: object) -> Any:
    """An answer, whose top-level fields are those that the OpenAPI document tells."""
    answer = client.get(path, params={key: str(value) for key, value in parameters.items()})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    shape = SHAPES.get(path) or next(SHAPES[start] for start in ("/v1/documents/", "/v1/chunks/") if start in path)
    assert shape is not None
    msgspec.convert(answer.json(), shape)
    return answer.json()


def without_ages(value: Any) -> Any:
    value.get("index", {}).pop("age_seconds", None)
    return value


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({}, ()),
        ({"top_k": 2, "full": "true"}, ("--top-k", "2", "--full")),
        ({"mode": "bm25", "root": "docs", "path": "sub/*"}, ("--mode", "bm25", "--root", "docs", "--path", "sub/*")),
        ({"all_chunks": "true", "min_similarity": "0.5"}, ("--all-chunks", "--min-similarity", "0.5")),
    ],
)
def test_a_search_is_the_command_s(
    client: TestClient, folder: Path, parameters: dict[str, object], options: tuple[str, ...]
) -> None:
    found = asked(client, "/v1/search", q="fox", **parameters)
    assert found["results"]
    assert without_ages(found) == without_ages(command(folder, "search", "fox", *options))


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({}, ()),
        ({"sort": "path", "min_matches": 2}, ("--sort", "path", "--min-matches", "2")),
        ({"root": "docs", "path": "sub/*", "limit": 1}, ("--root", "docs", "--path", "sub/*", "--limit", "1")),
        ({"documents": "false"}, ("--count",)),
    ],
)
def test_a_complete_set_is_the_command_s(
    client: TestClient, folder: Path, parameters: dict[str, object], options: tuple[str, ...]
) -> None:
    found = asked(client, "/v1/match", q="fox", **parameters)
    cursor = found.pop("next_cursor", None)
    assert (cursor is not None) == found.get("truncated", False)
    assert without_ages(found) == without_ages(command(folder, "match", "fox", *options))


@pytest.mark.parametrize("sort", ["path", "matches"])
def test_the_pages_of_a_set_are_the_set(client: TestClient, sort: str) -> None:
    """S0-49: the total is taken before the limit, and stands on every page."""
    whole = asked(client, "/v1/match", q="fox", sort=sort)["documents"]
    assert len(whole) == 5
    pages, cursor = [], ""
    while cursor is not None:
        page = asked(client, "/v1/match", q="fox", sort=sort, limit=2, cursor=cursor)
        assert (page["matched"], page["returned"]) == (5, len(page["documents"]))
        assert page["truncated"] == (page["next_cursor"] is not None)
        pages.append(page["documents"])
        cursor = page["next_cursor"]
    assert list(map(len, pages)) == [2, 2, 1]
    assert [row for page in pages for row in page] == whole


def test_a_cursor_belongs_to_its_question(client: TestClient) -> None:
    cursor = asked(client, "/v1/match", q="fox", limit=2)["next_cursor"]
    for question in ("q=river&limit=2", "q=fox&limit=3", "q=fox&limit=2&sort=path"):
        answer = client.get(f"/v1/match?{question}&cursor={cursor}")
        assert (answer.status_code, answer.json()["code"]) == (400, "usage")
    assert client.get("/v1/match", params={"q": "fox", "cursor": "?"}).status_code == 400


def test_a_page_behind_the_end_is_empty(client: TestClient) -> None:
    about, _, state = asked(client, "/v1/match", q="fox", limit=2)["next_cursor"].split(".")
    page = asked(client, "/v1/match", q="fox", limit=2, cursor=f"{about}.999999999.{state}")
    assert (page["documents"], page["matched"], page["truncated"], page["next_cursor"]) == ([], 5, False, None)


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({}, ()),
        ({"pattern": "^fo", "sort": "word"}, ("^fo", "--sort", "word")),
        ({"field": "heading", "limit": 2}, ("--field", "heading", "--limit", "2")),
        ({"min_docs": 2, "max_docs": 3}, ("--min-docs", "2", "--max-docs", "3")),
        ({"words": "false"}, ("--count",)),
    ],
)
def test_the_words_are_the_command_s(
    client: TestClient, folder: Path, parameters: dict[str, object], arguments: tuple[str, ...]
) -> None:
    assert asked(client, "/v1/words", **parameters) == command(folder, "words", *arguments)


def test_documents_by_path_and_page(client: TestClient, folder: Path) -> None:
    whole = asked(client, "/v1/documents")
    assert [row["path"] for row in whole["documents"]] == ALL
    assert whole["documents"] == command(folder, "sources", "--all")["sources"]
    assert (whole["status"], whole["next_cursor"]) == ("complete", None)
    found, cursor = [], ""
    while cursor is not None:
        page = asked(client, "/v1/documents", limit=2, cursor=cursor)
        found += [row["path"] for row in page["documents"]]
        cursor = page["next_cursor"]
    assert found == ALL
    for prefix, expected in (
        ("docs/sub", ALL[3:]),
        ("docs/sub/", ALL[3:]),
        ("docs", ALL),
        ("doc", []),
        ("docs/a.md", []),
    ):
        assert [row["path"] for row in asked(client, "/v1/documents", prefix=prefix)["documents"]] == expected


@pytest.mark.parametrize("path", ALL)
def test_a_document_is_the_command_s(client: TestClient, folder: Path, path: str) -> None:
    """Also one whose name holds the sign of a citation."""
    url = f"/v1/documents/{path.replace('#', '%23')}"
    assert asked(client, url) == command(folder, "show", path)
    assert asked(client, url, lines="1-2") == command(folder, "show", path, "--lines", "1-2")


def test_lines_that_are_none_and_paths_that_are_none(client: TestClient) -> None:
    for lines in ("0", "5-2", "x", "1-2-3", "-1"):
        assert client.get("/v1/documents/docs/a.md", params={"lines": lines}).status_code == 400, lines
    for path in ("docs/none.md", "docs/a.md%231", "docs", "", "..%2F..%2Fetc/passwd", "docs//a.md"):
        answer = client.get(f"/v1/documents/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
    assert client.get("/v1/documents/docs/a.md", params={"lines": "99"}).status_code == 404


@pytest.mark.parametrize("citation", ["docs/a.md#1", "docs/odd #1 ü.md#0", "docs/sub/d.txt#0"])
def test_a_chunk_is_the_command_s(client: TestClient, folder: Path, citation: str) -> None:
    """S0-38: split at the last #."""
    url = f"/v1/chunks/{citation.replace('#', '%23')}"
    assert asked(client, url) == command(folder, "show", citation)
    around = asked(client, url, before=1, after=5)
    assert around == command(folder, "show", citation, "--before", "1", "--after", "5")


def test_citations_that_are_none(client: TestClient) -> None:
    for citation, code in (
        ("docs/a.md", "citation_malformed"),
        ("docs/a.md%23x", "citation_malformed"),
        ("docs/a.md%2399999999999", "citation_malformed"),
        ("docs/a.md%239", "not_found"),
        ("docs/none.md%230", "not_found"),
    ):
        answer = client.get(f"/v1/chunks/{citation}")
        assert (answer.status_code, answer.json()["code"]) == (404, code)
        assert answer.headers["content-type"] == "application/problem+json"


def test_roots_and_numbers_are_the_command_s(client: TestClient, folder: Path) -> None:
    assert asked(client, "/v1/sources") == command(folder, "sources")
    assert asked(client, "/v1/stats") == command(folder, "stats")


TAGGED = ("/v1/search?q=fox", "/v1/match?q=fox", "/v1/words", "/v1/documents", "/v1/documents/docs/a.md",
          "/v1/chunks/docs/a.md%230")  # fmt: skip


@pytest.mark.parametrize("url", TAGGED)
def test_an_answer_that_still_holds_is_not_sent_again(tmp_path: Path, url: str) -> None:
    """ETag of (store_uuid, commit_seq) and the answer."""
    settings = bases.built(tmp_path)
    with http_client(settings) as client:
        first = client.get(url)
        tag = first.headers["etag"]
        again = client.get(url, headers={"if-none-match": f'"other", {tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert client.head(url).headers["etag"] == tag
        with writable_base(settings, "test") as base:
            bases.run_over(base, settings, {"d.md": "# Delta\n\nAnother fox.\n"})
        changed = client.get(url, headers={"if-none-match": tag})
        assert changed.status_code == 200
        assert changed.headers["etag"] != tag


def test_an_answer_by_words_alone_is_not_taken_for_one_by_meaning(tmp_path: Path) -> None:
    """The server of the model is no part of the index: what it changes changes the ETag."""
    settings = bases.with_vectors(tmp_path)
    with http_client(settings) as client:
        degraded = client.get("/v1/search", params={"q": "fox"})
        words = client.get("/v1/search", params={"q": "fox", "mode": "lexical"})
        assert "DEGRADED" in degraded.json()["tier"]
        assert degraded.headers["etag"] != words.headers["etag"]
        refused = client.get("/v1/search", params={"q": "fox", "mode": "vector"})
        assert (refused.status_code, refused.json()["code"]) == (503, "embeddings_unavailable")


def test_meaning_that_is_not_configured_and_roots_that_are_not_there(client: TestClient) -> None:
    for parameters, code in (
        ({"mode": "vector"}, "semantic_not_configured"),
        ({"root": "x"}, "usage"),
        ({"mode": "x"}, "usage"),
    ):
        answer = client.get("/v1/search", params={"q": "fox", **parameters})
        assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_what_is_not_there_is_told_as_a_problem(client: TestClient) -> None:
    for path in ("/v1/nothing", "/v2/search", "/v1/search/", "/v1"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json"), path
        assert answer.json()["status"] == 404
    answer = client.delete("/v1/search")
    assert (answer.status_code, answer.headers["content-type"]) == (405, "application/problem+json")
    assert "GET" in answer.headers["allow"]


def test_a_hostile_document_stays_text(tmp_path: Path) -> None:
    """S1-56: the JSON holds no raw character that acts on a terminal, and the same value."""
    text = "# Title \x1b[31m\u202e\n\nfox \x1b]0;x\x07 <script>alert(1)</script> \u2066\n"
    with http_client(build_base(tmp_path, {"h.md": text})) as client:
        answer = client.get("/v1/documents/docs/h.md")
        assert answer.json()["content"] == text
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not set("\x1b\x07\u202e\u2066") & set(answer.text)
