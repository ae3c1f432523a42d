"""Code spans and links."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.markdown.inline import code_spans, links


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("a `b` c", ["`b`"]),
        ("``a ` b`` `c`", ["``a ` b``", "`c`"]),
        ("`a ``b", []),
        ("\\`a` b`", ["` b`"]),
        ("\\\\`a`", ["`a`"]),
        ("`a\nb`", ["`a\nb`"]),
        ("```a`", []),
    ],
)
def test_code_spans(text: str, spans: list[str]) -> None:
    assert [text[start:stop] for start, stop in code_spans(text)] == spans


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a](b)", [("[a](b)", "b", False)]),
        ("x ![a](b.png 'title') y", [("![a](b.png 'title')", "b.png", True)]),
        ("[a](<b c> \"d\")", [("[a](<b c> \"d\")", "b c", False)]),
        ("[a](b(c)d)", [("[a](b(c)d)", "b(c)d", False)]),
        ("[a]( b )", [("[a]( b )", "b", False)]),
        ("[a]()", [("[a]()", "", False)]),
        ("[![a](b)](c)", [("![a](b)", "b", True), ("[![a](b)](c)", "c", False)]),
        ("[[a](b)](c)", [("[a](b)", "b", False)]),
        ("`[a](b)`", []),
        ("\\[a](b)", []),
        ("[a\\](b)", []),
        ("[a] (b)", []),
        ("[a](b c)", []),
        ("[a](b", []),
        ("[a](<b)", []),
        ("a](b)", []),
        ("[a][b]", []),
        ("[a](b (title))", [("[a](b (title))", "b", False)]),
        ("[a](b \"t\\\"u\")", [("[a](b \"t\\\"u\")", "b", False)]),
    ],
)  # fmt: skip
def test_links(text: str, found: list[tuple[str, str, bool]]) -> None:
    assert [
        (text[link.start : link.stop], text[link.target_start : link.target_stop], link.is_image)
        for link in links(text)
    ] == found


@given(st.text(st.sampled_from("`[]()<>!\\ ab\n\"'"), max_size=80))
@settings(max_examples=500, deadline=None)
def test_offsets_lie_in_the_text(text: str) -> None:
    at = 0
    for start, stop in code_spans(text):
        assert at <= start < stop <= len(text)
        assert text[start] == text[stop - 1] == "`"
        at = stop
    for link in links(text):
        assert 0 <= link.start < link.target_start <= link.target_stop < link.stop <= len(text)
        assert text[link.stop - 1] == ")"
