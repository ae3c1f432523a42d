"""Addresses of documents and passages, as agents write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.mcp_resources import ResourceAddress, parse_address
from domain.errors import CitationMalformedError

NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(root=NAME.filter(lambda name: "/" not in name), path=NAME, ordinal=st.none() | st.integers(0, 2**31 - 1))
def test_an_address_comes_back(root: str, path: str, ordinal: int | None) -> None:
    address = ResourceAddress(f"{root}/{path}", ordinal)
    assert parse_address(address.format()) == address


@pytest.mark.parametrize(
    ("uri", "key", "ordinal"),
    [
        ("knowledge://docs/bread.md", "docs/bread.md", None),
        ("KNOWLEDGE://docs/a/b.md#3", "docs/a/b.md", 3),
        ("knowledge://docs/a%2Fb%20c.md#0", "docs/a/b c.md", 0),
        ("knowledge://docs/br%C3%B6t.md", "docs/bröt.md", None),
        ("knowledge://docs/bröt.md#12", "docs/bröt.md", 12),
        ("knowledge://docs/c#.md", "docs/c#.md", None),
        ("knowledge://docs/c%23.md#1", "docs/c#.md", 1),
        ("knowledge://docs/what?.md", "docs/what?.md", None),
        ("knowledge://docs/../../etc/passwd", "docs/../../etc/passwd", None),  # a key like any other, and none there
    ],
)
def test_what_an_address_means(uri: str, key: str, ordinal: int | None) -> None:
    assert parse_address(uri) == ResourceAddress(key, ordinal)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "file:///etc/passwd",
        "knowledge:docs/bread.md",
        "knowledge://",
        "knowledge://docs",
        "knowledge://docs/",
        "knowledge:///etc/passwd",
        "knowledge://docs/%zz",
        "knowledge://docs/%",
        "knowledge://docs/%ff",
        "knowledge://docs/\ud800",
        "knowledge://docs/a.md#99999999999999999999",
        "knowledge://docs/" + "a" * 30_000,
    ],
)
def test_what_is_no_address(uri: str) -> None:
    """T19."""
    with pytest.raises(CitationMalformedError) as caught:
        parse_address(uri)
    assert caught.value.hint
