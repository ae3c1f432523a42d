"""What holds for every text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.markdown.frontmatter import frontmatter_end
from domain.markdown.scanner import scan
from domain.markdown.source import count_lines, with_line_feeds
from workers.chunker import MAX_BYTES, REPEATED_HEADING_CHARS, WHOLE_BYTES, cut

_LINE_STARTS = [
    "# ",
    "## ",
    "### ",
    "```",
    "~~~",
    "> ",
    "- ",
    "1. ",
    "    ",
    "\t",
    "<!--",
    "-->",
    "| a | b |",
]
_LINES = [
    "---",
    "===",
    "|---|---|",
    "",
    " ",
    "text",
    "<div>",
    "...",
    "***",
    "a: b",
    "wörter 漢字",
    "a\u0301" * 9,
]
_ENDS = ["\n", "\r\n", "\r", "\n\n", "\u2028", "\x00"]
_ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
_MARKDOWN = st.lists(
    st.one_of(st.sampled_from(_LINE_STARTS), st.sampled_from(_LINES), st.sampled_from(_ENDS), st.just("word " * 90)),
    max_size=60,
).map("".join)
_TEXTS = st.one_of(_ANY_TEXT, _MARKDOWN, st.tuples(st.just("\ufeff---\n"), _MARKDOWN).map("".join))


@given(_TEXTS, st.booleans())
@settings(max_examples=400, deadline=None)
def test_leads_and_bodies_tile_the_text(text: str, markdown: bool) -> None:
    document = cut(text, "notes/a.md", markdown=markdown)
    assert "".join(chunk.lead + chunk.body for chunk in document.chunks) + document.tail == text
    assert document.chunks


@given(_TEXTS, st.booleans())
@settings(max_examples=400, deadline=None)
def test_lines_are_those_of_the_body(text: str, markdown: bool) -> None:
    document = cut(text, "notes/a.md", markdown=markdown)
    at = 0
    for chunk in document.chunks:
        at += len(chunk.lead)
        if chunk.body:
            assert chunk.start_line == count_lines(text[:at])
            assert chunk.end_line == count_lines(text[: at + len(chunk.body)])
            assert not chunk.body.isspace() or chunk.body.strip(" \t\r\n")
            assert chunk.body[-1] not in "\r\n"
        at += len(chunk.body)


@given(_TEXTS)
@settings(max_examples=400, deadline=None)
def test_fences_and_tables_are_whole_and_the_rest_is_bounded(text: str) -> None:
    document = cut(text, "notes/a.md", markdown=True)
    source = with_line_feeds(text)
    whole = [
        (span.start, span.start + len(source[span.start : span.stop].rstrip(" \t\r\n")))
        for span in scan(source, document.content_start)
        if span.kind in ("fence", "table")
    ]
    at = 0
    for chunk in document.chunks:
        start, end = at + len(chunk.lead), at + len(chunk.lead) + len(chunk.body)
        at = end
        size = len(chunk.body.encode())
        inside = [(first, last) for first, last in whole if first < end and last > start]
        assert all(start <= first and last <= end for first, last in inside) or size > WHOLE_BYTES / 2
        assert size <= MAX_BYTES or (len(inside) == 1 and inside[0] == (start, end))


@given(_TEXTS)
@settings(max_examples=300, deadline=None)
def test_every_heading_is_in_a_breadcrumb_and_in_no_body(text: str) -> None:
    document = cut(text, "notes/a.md", markdown=True)
    headings = [s for s in scan(with_line_feeds(text), document.content_start) if s.kind == "heading"]
    breadcrumbs = [chunk.heading_path for chunk in document.chunks]
    for heading in headings:
        assert any(heading.text in breadcrumb for breadcrumb in breadcrumbs)
    at = 0
    for chunk in document.chunks:
        start, end = at + len(chunk.lead), at + len(chunk.lead) + len(chunk.body)
        if chunk.body:
            assert not any(start < heading.stop and heading.start < end for heading in headings)
        at = end


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 400)), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_long_headings_are_found_too(headings: list[tuple[int, int]]) -> None:
    words = [f"{number}-{'w' * length}" for number, (_, length) in enumerate(headings)]
    text = "".join(f"{'#' * level} {word}\n\n" for (level, _), word in zip(headings, words, strict=True))
    breadcrumbs = [chunk.heading_path for chunk in cut(text, "notes/a.md", markdown=True).chunks]
    assert max(map(len, breadcrumbs)) <= 1000
    for word in words:
        assert any(word[:300] in breadcrumb for breadcrumb in breadcrumbs)
    assert REPEATED_HEADING_CHARS < 300


@given(_TEXTS)
@settings(max_examples=300, deadline=None)
def test_the_frontmatter_ends_at_a_line(text: str) -> None:
    source = with_line_feeds(text)
    end = frontmatter_end(source)
    assert end == 0 or end == len(source) or source[end - 1] == "\n"


@given(_TEXTS)
@settings(max_examples=300, deadline=None)
def test_spans_are_whole_lines_in_order(text: str) -> None:
    source = with_line_feeds(text)
    at = 0
    for span in scan(source):
        assert at <= span.start < span.stop <= len(source)
        assert span.start == 0 or source[span.start - 1] == "\n"
        assert span.stop == len(source) or source[span.stop - 1] == "\n"
        at = span.stop


@given(_TEXTS, st.integers(1, 200))
@settings(max_examples=500, deadline=None)
def test_skimming_finds_the_same_headings_and_fences_at_the_margin(text: str, skim_chars: int) -> None:
    source = with_line_feeds(text)
    full = scan(source)
    skimmed = scan(source, skim_chars=skim_chars)
    assert [span for span in full if span.kind in ("heading", "fence")] == [
        span for span in skimmed if span.kind in ("heading", "fence")
    ]
    assert set(skimmed) <= set(full)
