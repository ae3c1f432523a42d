"""`show`: what a target may mean, ranges of lines, and what is printed of it."""

from pathlib import Path

import pytest

from app.links import heading_anchor, link_templates, url_of
from app.present_documents import chunk_text, document_on_terminal, exact_chunks
from app.showing import KnownPlaces, ShownChunk, ShownDocument, keys_of, line_range
from domain.errors import UsageError
from domain.settings import RootSettings
from domain.status import Standing, Tier
from store.port import StoredChunk, StoredDocument
from store.state_port import RootRecord

DOCUMENT = StoredDocument(
    id=1, key="docs/a.md", root="docs", title="A\x1b[31m", size_bytes=9, mtime_ns=0, checked_ns=0, indexed_ns=0,
    generation=1, chunk_count=2, file_hash=b"\x00" * 32, warnings="[]",
)  # fmt: skip
CHUNKS = (
    StoredChunk("docs/a.md", 0, "A", "A", "# A\n\n", "one\n", 3, 3),
    StoredChunk("docs/a.md", 1, "A", "A > B", "\n## B\n\n", "two\x1b[2J\n", 7, 7),
)


def places(cwd: str = "/home/me", configured: tuple[RootSettings, ...] = ()) -> KnownPlaces:
    return KnownPlaces((RootRecord("docs", "/home/me/docs"),), configured, Path(cwd), "/home/me")


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("docs/a.md", "docs/a.md"),
        ("a.md", "docs/a.md"),
        ("/home/me/docs/sub/a.md", "docs/sub/a.md"),
        ("~/docs/a.md", "docs/a.md"),
        ("a<U+202E>b.md", "a\u202eb.md"),
    ],
)
def test_what_a_target_may_mean(target: str, key: str) -> None:
    assert key in keys_of(target, places("/home/me/docs"))


def test_a_configured_root_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    known = KnownPlaces((RootRecord("docs", str(tmp_path / "real")),), (RootSettings(tmp_path / "link"),), tmp_path, "")
    assert "docs/a.md" in keys_of("link/a.md", known)


@pytest.mark.parametrize("target", ["../../etc/passwd", "/etc/passwd", "%2e%2e/x", "nul\x00.md"])
def test_what_lies_elsewhere_means_itself_only(target: str) -> None:
    assert keys_of(target, places()) == (target,)


@pytest.mark.parametrize(
    ("written", "expected"), [("3-5", (3, 5)), ("3-", (3, None)), ("3", (3, 3)), (" 7-7 ", (7, 7))]
)
def test_ranges_of_lines(written: str, expected: tuple[int, int | None]) -> None:
    assert line_range(written) == expected


@pytest.mark.parametrize("written", ["", "0-3", "5-3", "a-b", "-3", "1-2-3", "9" * 50])
def test_what_is_no_range(written: str) -> None:
    with pytest.raises(UsageError):
        line_range(written)


def test_a_chunk_among_its_neighbours() -> None:
    text = chunk_text(ShownChunk(DOCUMENT, 1, CHUNKS), Tier.LEXICAL, Standing.COMPLETE)
    assert "\ndocs/a.md#0  A\nA · lines 3-3\n\none\n" in text
    assert "\n> docs/a.md#1  A\nA > B · lines 7-7\n\ntwo\n" in text
    assert "\x1b" not in text


def test_exact_chunks_hold_what_stands_between() -> None:
    assert exact_chunks(ShownChunk(DOCUMENT, 1, CHUNKS)) == "one\n\n## B\n\ntwo\x1b[2J\n"


def test_a_document_on_a_terminal_ends_its_line() -> None:
    assert document_on_terminal(ShownDocument(DOCUMENT, "a\x1b[2Jb")) == "ab\n"
    assert document_on_terminal(ShownDocument(DOCUMENT, "")) == ""


def test_links(tmp_path: Path) -> None:
    template = "https://example.org/{path}?l={start_line}#{heading_anchor}"
    templates = link_templates([RootSettings(tmp_path, link=template)], [RootRecord("docs", str(tmp_path))])
    assert url_of(*templates["docs"], "docs/a b/ü.md", "A > How-To: Set_up C++!", 7) == (
        "https://example.org/a%20b/%C3%BC.md?l=7#how-to-set_up-c"
    )
    assert url_of("file://{absolute_path}", "/r", "docs/a.md", "", 1) == "file:///r/a.md"
    assert heading_anchor("") == ""
