"""Markup made from values (server.pages.markup): what is not HTML already never becomes any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.pages.markup import Html, joined, tag
from tests.support.page_reading import read


def test_texts_are_escaped_and_markup_is_not() -> None:
    inner = tag("b", "<i>", class_="x")
    assert inner == '<b class="x">&lt;i&gt;</b>'
    assert joined(inner, "&", 1200, None, ["a", Html("<br>")]) == '<b class="x">&lt;i&gt;</b>&amp;1,200a<br>'


def test_added_to_a_text_markup_is_a_text_again() -> None:
    assert joined("<" + tag("b")) == "&lt;&lt;b&gt;&lt;/b&gt;"


def test_attributes() -> None:
    assert tag("a", data_run=3, aria_label="\"x\" & 'y'", hidden=True, open=False, id=None) == (
        '<a data-run="3" aria-label="&quot;x&quot; &amp; &#x27;y&#x27;" hidden></a>'
    )
    assert tag("input", name="q", value="") == '<input name="q" value="">'


@given(st.text(), st.text())
def test_whatever_a_text_is_it_comes_out_as_it_went_in(text: str, value: str) -> None:
    """P20, T10: and it makes no element and no attribute."""
    html = tag("p", text, title=value).replace(" title=", " data-told=")
    (paragraph,) = read(html).all()
    assert paragraph.text == text.replace("\r\n", "\n").replace("\r", "\n") or paragraph.text == text
    assert paragraph.attributes == {"data-told": value}


@pytest.mark.parametrize("name", ["br", "hr", "input", "link", "meta"])
def test_void_elements_have_no_end(name: str) -> None:
    assert tag(name) == f"<{name}>"
