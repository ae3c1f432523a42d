"""The search page, its match and its document view: every state in its own words, and what to do next."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.present import tier_line
from domain.settings import ServerSettings, Settings
from domain.status import Tier
from tests.support import status_bases
from tests.support.bases import build_base, settings_of
from tests.support.http_service import http_client
from tests.support.page_reading import Element, look


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with http_client(build_base(tmp_path)) as asked:
        yield asked


def told(page: Element) -> str:
    return " ".join(page.one("main").text.split())


def test_before_anything_is_asked(client: TestClient) -> None:
    page = look(client, "/")
    assert "5 documents in 1 folder" in told(page)
    assert page.all("input")[0].attributes["id"] == "q"
    assert "autofocus" in page.all("input")[0].attributes


def test_hits(client: TestClient) -> None:
    """(a) of the page: snippet with marks, breadcrumb, lines, tier line, why this rank."""
    page = look(client, "/", q="brown fox")
    hit = page.all("li", "hit")[0]
    assert hit.one("h2").text == "Alpha"
    assert [mark.text for mark in hit.all("mark")] == ["brown", "fox"]
    assert hit.one("p", "snippet").text == "The quick brown fox."
    assert hit.one("span", "path").text == "docs/a.md"
    assert "lines 6-6" in hit.text
    assert tier_line(Tier.LEXICAL) in told(page)
    why = hit.one("details").text
    assert re.search(r"Hit 1, matched in the text\..*By wordsplace 1.*By meaningnot found.*Fused score0\.", why)
    assert page.one("title").text == "brown fox - Search - knowledge"


def test_a_hit_leads_to_its_passage(client: TestClient) -> None:
    page = look(client, "/", q="foo_bar")
    address = page.all("li", "hit")[0].one("h2").one("a").attributes["href"]
    path, _, fragment = address.partition("#")
    document = look(client, path)
    cited = document.one("section", "cited")
    assert cited.attributes["id"] == fragment == "c1"
    assert "Jumps over foo_bar.baz." in cited.text
    assert "the cited passage" in cited.text
    assert [link.text for link in document.one("nav", "outline").all("a")] == ["Alpha", "Deeper"]
    assert document.all("section", "passage")[0].one("pre").text == "# Alpha\n\nThe quick brown fox."
    assert document.one("p", "back").one("a").attributes["href"] == "/?q=foo_bar"


def test_a_document_without_a_passage(client: TestClient) -> None:
    document = look(client, "/document", path="docs/sub/d.txt")
    assert not document.all("section", "cited")
    assert "and a second block" in told(document)


@pytest.mark.parametrize(
    ("parameters", "status", "words"),
    [
        ({"path": "docs/none.md"}, 404, "the index holds no document 'docs/none.md'"),
        ({"path": "docs/a.md", "chunk": "99"}, 404, "docs/a.md has no chunk 99: it has 2"),
        ({"path": "docs/a.md", "chunk": "-1"}, 400, "'-1' is no number of a chunk"),
        ({"path": "docs/a.md", "chunk": "9" * 30}, 400, "is no number of a chunk"),
        ({}, 400, "the address names no document"),
        ({"path": "../../etc/passwd"}, 404, "the index holds no document '../../etc/passwd'"),
        ({"path": "docs/a.md\0"}, 404, "no document"),
    ],
)
def test_what_is_no_document(client: TestClient, parameters: dict[str, str], status: int, words: str) -> None:
    assert words in told(look(client, "/document", status, **parameters))


@pytest.mark.parametrize(
    ("parameters", "status", "words"),
    [
        ({"q": "zebra"}, 200, "nothing found"),
        ({"q": "zebra", "path": "x/*"}, 200, "search all folders: take the filters away"),
        ({"q": "the brwn"}, 200, "brwn is nowhere; did you mean brown?"),
        ({"q": "."}, 200, "the query holds nothing to search for"),
        ({"q": "fox", "root": "nope"}, 400, "there is no root 'nope'"),
        ({"q": "fox", "mode": "best"}, 400, "there is no mode 'best'"),
        ({"q": "fox", "mode": "vector"}, 400, "embeddings"),
        ({"q": "fox", "path": "[" * 300}, 200, "nothing found"),
        ({"q": "fox", "hits": "1000"}, 200, "Alpha"),
        ({"q": "fox", "hits": "x", "utm_source": "y"}, 200, "Alpha"),
    ],
)
def test_states_of_a_question(client: TestClient, parameters: dict[str, str], status: int, words: str) -> None:
    """P21: each in its own words, and each says what to do next."""
    assert words in told(look(client, "/", status, **parameters))


def test_a_misspelt_word_is_a_link_to_the_other_one(client: TestClient) -> None:
    page = look(client, "/", q="brwn", root="docs")
    assert page.one("p", "suggest").one("a").attributes["href"] == "/?q=brown&root=docs"


@pytest.mark.parametrize(
    ("build", "status", "words"),
    [
        ("cut_short", 409, "was begun, and cut short before it held anything"),
        ("empty", 200, "the index holds no document"),
        ("incomplete", 200, "no run has seen all of the folders yet"),
        ("inconsistent", 200, "the index is blank, although runs on record have filled it"),
        ("outdated", 200, "the index is older than a full run on record has left it"),
    ],
)
def test_states_of_the_index(tmp_path: Path, build: str, status: int, words: str) -> None:
    """P21, S2-21: on the page of a question and on the one before it."""
    settings = _built(tmp_path, build)
    with http_client(settings) as client:
        assert words in told(look(client, "/", status, q="fox"))
        assert words in told(look(client, "/", status))
        assert words in told(look(client, "/operations"))


def _built(folder: Path, state: str) -> Settings:
    match state:
        case "empty":
            return status_bases.built(folder, {})
        case "incomplete":
            return status_bases.built(folder, complete=False)
        case "cut_short":
            status_bases.cut_short(folder)
        case "inconsistent":
            status_bases.blank(folder)
        case _:
            status_bases.outdated(folder)
    return status_bases.configure(folder)


def test_no_index(tmp_path: Path) -> None:
    """P21: absence never reads as a result."""
    with http_client(settings_of(tmp_path / "home")) as client:
        for path in ("/", "/?q=fox", "/match?q=fox", "/document?path=docs/a.md", "/operations/failures"):
            page = look(client, path, 409)
            assert "there is no index yet" in told(page)
            assert "knowledge index" in told(page)
            assert not page.all("li", "hit")


def test_a_degraded_answer_says_so(tmp_path: Path) -> None:
    with http_client(status_bases.with_vectors(tmp_path)) as client:
        page = look(client, "/", q="fox")
    assert "DEGRADED" in told(page)
    assert page.all("div", "warn")
    assert [option.attributes["value"] for option in page.all("select")[0].all("option")] == [
        "auto",
        "lexical",
        "vector",
        "hybrid",
    ]


def test_where_only_words_can_be_searched_a_link_does(tmp_path: Path) -> None:
    with http_client(status_bases.built(tmp_path, embeddings=status_bases.EMBEDDINGS)) as client:
        page = look(client, "/", 409, q="fox")
        assert "this index holds no vectors" in told(page)
        by_words = look(client, page.one("p", "suggest").one("a").attributes["href"])
        assert by_words.all("li", "hit")


def test_more_hits_and_the_complete_set(tmp_path: Path) -> None:
    texts = {f"{number:02}.md": f"# Page {number}\n\nA zebra, and number {number}.\n" for number in range(70)}
    with http_client(build_base(tmp_path, texts)) as client:
        page = look(client, "/", q="zebra")
        assert len(page.all("li", "hit")) == 10
        assert "the best 10 hits" in told(page)
        more, every = page.one("p", "more").all("a")
        assert len(look(client, more.attributes["href"]).all("li", "hit")) == 20
        complete = look(client, every.attributes["href"])
        assert "70 of 70 documents" in told(complete)
        assert len(complete.all("tr", "hit")) == 50
        onward = complete.one("nav", "more").one("a").attributes["href"]
        last = look(client, onward)
        assert len(last.all("tr", "hit")) == 20
        assert "Page 2 of 2" in told(last)
        both = {row.all("a")[0].attributes["href"] for page in (complete, last) for row in page.all("tr", "hit")}
        assert len(both) == 70


@pytest.mark.parametrize(
    ("parameters", "status", "words"),
    [
        ({"q": "fox"}, 200, "1 of 5 documents"),
        ({"q": "fox zebra"}, 200, "zebra is nowhere"),
        ({"q": "."}, 200, "the query holds nothing to look for"),
        ({"q": '"fox'}, 400, "quote"),
        ({"q": "fox", "root": "nope"}, 400, "there is no root 'nope'"),
        ({"q": "fox", "page": "99999"}, 200, "1 of 5 documents"),
        ({"q": "fox", "page": "x", "sort": "y"}, 200, "1 of 5 documents"),
        ({}, 200, "words must all be in a document"),
    ],
)
def test_states_of_a_match(client: TestClient, parameters: dict[str, str], status: int, words: str) -> None:
    assert words in told(look(client, "/match", status, **parameters))


def test_a_long_document_is_shown_around_the_cited_passage(tmp_path: Path) -> None:
    text = "".join(f"## Part {number}\n\n{'Some words of it. ' * 90}\n\n" for number in range(200))
    with http_client(build_base(tmp_path, {"long.md": f"# Long\n\n{text}"})) as client:
        page = look(client, "/document", path="docs/long.md", chunk=100)
        shown = [section.attributes["id"] for section in page.all("section", "passage")]
        assert "c100" in shown
        assert len(shown) <= 40
        headings = page.one("nav", "outline").all("a")
        assert len(headings) == 120
        assert [link.text for link in headings if "aria-current" in link.attributes] == ["Part 50"]
        earlier, later = (link.one("a").attributes["href"] for link in page.all("p", "more"))
        assert "chunk=95" in earlier
        assert len(client.get("/document", params={"path": "docs/long.md", "chunk": 100}).content) < 50_000
        assert len(look(client, later.partition("#")[0]).all("section", "cited")) == 1


def test_links_stand_below_the_base_path(tmp_path: Path) -> None:
    settings = build_base(tmp_path, server=ServerSettings(base_path="/kb"))
    with http_client(settings) as client:
        for path in ("/kb/", "/kb/?q=fox", "/kb/match?q=fox", "/kb/operations", "/kb/document?path=docs/a.md"):
            page = look(client, path)
            for element in page.all():
                for name in ("href", "src", "action"):
                    address = element.attributes.get(name, "/kb/")
                    assert address.startswith(("/kb/", "#")), address
            assert client.get(page.one("link").attributes["href"]).status_code == 200, "the icon"


def test_bytes_of_a_page_with_hits(client: TestClient) -> None:
    """The page with ten hits and all it asks for: 30 kB are the aim, 60 kB the bound."""
    page = client.get("/", params={"q": "fox river dogs"})
    total = len(page.content)
    for element in look(client, "/").all():
        address = element.attributes.get("src") or (element.name == "link" and element.attributes["href"])
        if address:
            answer = client.get(str(address))
            assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
            total += len(answer.content)
    assert total < 30_000


def test_files_of_the_pages(client: TestClient) -> None:
    assert client.get("/static/none.css").status_code == 404
    assert client.get("/static/..%2fassets.py").status_code == 404
    plain = client.get("/static/pages.css")
    assert plain.headers["cache-control"] == "no-cache"
    again = client.get("/static/pages.css", headers={"if-none-match": plain.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.skipif(os.name == "nt", reason="names as POSIX has them")
def test_names_with_signs_of_all_kinds(tmp_path: Path) -> None:
    """T2: shown, and their links lead to them."""
    names = ["quote\"'s.md", "a & b <i>.md", "hash#0.md", "per%cent?.md", "-dash.md", "new\nline.md", "\u202edm.txt"]
    texts = {name: f"# Title\n\nA zebra in {number}.\n" for number, name in enumerate(names)}
    with http_client(build_base(tmp_path, texts)) as client:
        page = look(client, "/", q="zebra")
        hits = page.all("li", "hit")
        assert len(hits) == len(names)
        for hit in hits:
            address = hit.one("h2").one("a").attributes["href"].partition("#")[0]
            assert "A zebra in" in look(client, address).one("section", "cited").text
        assert "<U+202E>dm.txt" in page.text
        assert "\u202e" not in page.text
