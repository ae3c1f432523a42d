import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.citations import MAX_ORDINAL, Citation
from domain.errors import CitationMalformedError

keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(keys, st.integers(0, MAX_ORDINAL))
def test_what_is_printed_is_read_back(key: str, ordinal: int) -> None:
    citation = Citation(key, ordinal)
    assert Citation.parse(citation.format()) == citation
    assert str(citation) == citation.format()


def test_split_at_the_last_mark() -> None:
    assert Citation.parse("docs/c#/a.md#7") == Citation("docs/c#/a.md", 7)
    assert Citation.parse("docs/a.md#0") == Citation("docs/a.md", 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#",
        "#0",
        "docs/a.md",
        "docs/a.md#",
        "docs/a.md#-1",
        "docs/a.md#1.0",
        "docs/a.md# 1",
        "docs/a.md#1 ",
        "docs/a.md#x",
        "docs/a.md#\u0663",
        "docs/a.md#\u00b2",
        "docs/a.md#99999999999999999999",
        f"docs/a.md#{MAX_ORDINAL + 1}",
        "docs/a.md#" + "9" * 5000,
        "a" * 100_000 + "#1",
    ],
)
def test_malformed(text: str) -> None:
    with pytest.raises(CitationMalformedError) as caught:
        Citation.parse(text)
    assert caught.value.hint
    assert caught.value.exit_status == 4
    assert len(caught.value.message) < 250


@given(st.text(max_size=40))
def test_any_text_is_a_citation_or_malformed(text: str) -> None:
    try:
        citation = Citation.parse(text)
    except CitationMalformedError:
        return
    assert citation.key
    assert 0 <= citation.ordinal <= MAX_ORDINAL
