"""Document keys (R20)."""

import os

from hypothesis import given
from hypothesis import strategies as st

from domain.keys import is_plain_text, path_below_root, prefix_of, printable, root_of, unique_name

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\x00"), min_size=1)


@given(NAMES, st.lists(NAMES, min_size=1))
def test_a_key_is_root_and_path(root: str, parts: list[str]) -> None:
    path = "/".join(parts)
    key = prefix_of(root) + path
    assert root_of(key) == root
    assert path_below_root(key) == path


def test_prefixes_end_in_a_slash() -> None:
    assert prefix_of("docs") == "docs/"
    assert prefix_of("docs", "sub/deep/") == prefix_of("docs", "sub/deep") == "docs/sub/deep/"


def test_plain_text_by_its_ending() -> None:
    """R36: `.txt` and `.text` have no Markdown."""
    assert [is_plain_text(f"docs/a{ending}") for ending in (".txt", ".TEXT", ".md", ".txt.md", "")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert not is_plain_text("docs.txt/a")


@given(st.lists(st.sampled_from(["docs", "docs_2", "notes", "a/b", ""]), max_size=8))
def test_names_are_made_unique(wanted: list[str]) -> None:
    """R20: `_N` behind a name that is taken; never a slash, never empty."""
    taken: set[str] = set()
    for name in wanted:
        given_name = unique_name(name, taken)
        assert given_name
        assert given_name not in taken
        assert "/" not in given_name
        taken.add(given_name)
    assert unique_name("docs", frozenset({"docs", "docs_2"})) == "docs_3"


@given(st.binary(min_size=1).filter(lambda raw: b"\x00" not in raw))
def test_every_name_of_bytes_has_a_printable_form(raw: bytes) -> None:
    """T1: a name that is no UTF-8 can be shown and stored."""
    shown = printable(os.fsdecode(raw))
    assert shown.encode()
    if raw.decode("utf-8", "ignore").encode() == raw:
        assert shown == raw.decode()


def test_bytes_that_are_no_utf8_stand_as_escapes() -> None:
    assert printable(os.fsdecode(b"bad\xff.md")) == "bad\\xff.md"
