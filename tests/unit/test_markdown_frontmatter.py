"""Frontmatter: where it ends, what is read from it, and that the short way reads what PyYAML reads."""

import datetime
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.markdown.frontmatter import MAX_FRONTMATTER_BYTES, frontmatter_end, metadata_of, parse_frontmatter
from domain.markdown.frontmatter_plain import plain_mapping


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return {key: _as_json(item) for key, item in value.items()} if isinstance(value, dict) else value


def _with_pyyaml(block: str) -> Any:
    return _as_json(yaml.load(block, Loader=yaml.CSafeLoader))


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("---\na: 1\n---\nb", "---\na: 1\n---\n"),
        ("---\na: 1\n...\nb\n---\n", "---\na: 1\n...\n"),
        ("---  \n---\t\nb", "---  \n---\t\n"),
        ("---\r\na: 1\r\n---\r\nb", "---\r\na: 1\r\n---\r\n"),
        ("---\na\n---", "---\na\n---"),
        ("---\na: ---\n----\n ---\n---\n", "---\na: ---\n----\n ---\n---\n"),
        ("---\na: 1\nb", ""),
        ("----\na\n---\n", ""),
        ("\n---\na\n---\n", ""),
        ("--- a\n---\n", ""),
        ("---", ""),
    ],
)
def test_a_block_reaches_to_the_next_fence(text: str, block: str) -> None:
    assert text[: frontmatter_end(text)] == block


@pytest.mark.parametrize(
    ("block", "values"),
    [
        ("", {}),
        ("# only a comment", {}),
        (
            "a: 1\nb: two\nc:\n  - x\n  - 2024-02-03\nd:",
            {"a": 1, "b": "two", "c": ["x", "2024-02-03"], "d": None},
        ),
        ("a: 2024-02-03T04:05:06Z", {"a": "2024-02-03T04:05:06+00:00"}),
        ("a: {b: [1, 2.5, {c: no}]}", {"a": {"b": [1, 2.5, {"c": False}]}}),
        ("a: >\n  folded\n  text\n", {"a": "folded text\n"}),
        ("a: .nan\nb: [.inf, 1]\nc: !!binary aGk=\nd: !!set {x}\ntrue: x\n1: y", {"b": [1]}),
        ("a: 123456789012345678901234567890", {"a": "123456789012345678901234567890"}),
        ('a: "\\ud800x"', None),
        ("a: 'ö'\nb: \"ü: x\"", {"a": "ö", "b": "ü: x"}),
    ],
)
def test_values(block: str, values: dict[str, object] | None) -> None:
    found = parse_frontmatter(f"---\n{block}\n---\n")
    assert found == values or (values is None and (found is None or "\ud800" not in str(found)))


@pytest.mark.parametrize(
    "block",
    [
        "a: [",
        "- a",
        "just text",
        "a: b: c",
        "a: &x [1]\nb: *x",
        "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "a: 2024-99-99",
        "a: " + "[" * 20 + "]" * 20,
        "[" * 5000,
        "- " * 5000 + "a",
        "a: !!python/object:os.system x",
        "a: 1\x07",
        "x" * (MAX_FRONTMATTER_BYTES + 1),
        "? [a]\n: b",
        "a: 1\n---\nb: 2",
        "a: 9" + "9" * 5000,
    ],
)
def test_what_is_no_mapping_within_the_limits_is_broken(block: str) -> None:
    assert parse_frontmatter(f"---\n{block}\n...\n") is None


_PLAIN_BLOCK = """\
title: Some words (with more)
date.key: 2024-02-03
Module Name: x/y.z
empty:
number: 17
version: 2.0.0
ratio: 1.5
quoted: "colon: inside"
single: 'it # is'
topics: ["a", "b, c","d"]
none: []
old-location: debugger\\\\x.htm
guid: 15ae9781-ec21-4333-bba8-6d2383bbf7f1
level: <=DISPATCH
flag: yes
list:
 - A::B
 - "c"
 - 3
other:
- x
"""


def test_the_short_way_reads_the_usual_block() -> None:
    found = plain_mapping(_PLAIN_BLOCK)
    assert found is not None
    assert found == _with_pyyaml(_PLAIN_BLOCK)


@pytest.mark.parametrize(
    "line",
    [
        *("a: b: c", "a: b #c", "a: b:", "a: *b", "a: &b c", "a: |", "a: !x y", "a: 010", "a: 1:30", "a: 1_000"),
        *("a: ~", "a: [x]", "a: {b: c}", "yes: a", "a:\tb", "a : b", "a: 'it''s'", 'a: "x\\n"', "a: <<", "a: ="),
        *("a:\n  b: c", "a: x\n  y", "a: x\n- y", "a:\n- x\n - y", "a:\n-", "a: \x85", "a: x\u2028y", "- a"),
        *("a: 2024-13-01", "a: 0x1F"),
    ],
)
def test_the_short_way_leaves_what_may_mean_more(line: str) -> None:
    assert plain_mapping(f"{line}\n") is None


_SCALARS = st.one_of(
    st.text(st.sampled_from("abexEX TtZz019.:-_#'\"/,[]<=~+\\ ö"), max_size=12),
    st.sampled_from(
        ["yes", "Off", "null", "0b1", "0x1f", "1e3", "1.5e+3", "12:30", "2024-02-30", "007", "0o7", "1__0"]
    ),
    st.from_regex(r"[0-9a-f]{1,4}[-.:_][0-9a-fTZ]{1,4}", fullmatch=True),
)
_LINES = st.one_of(
    st.tuples(st.sampled_from(["a", "b", "ms.date", "on", "Key name"]), _SCALARS).map(": ".join),
    _SCALARS.map("- {}".format),
    _SCALARS.map("  - {}".format),
    st.just("list:"),
    st.tuples(st.just("tags"), st.lists(_SCALARS, max_size=3)).map(
        lambda pair: f"{pair[0]}: [{', '.join(f'{chr(34)}{item}{chr(34)}' for item in pair[1])}]"
    ),
)


@given(st.lists(_LINES, max_size=6).map(lambda lines: "".join(f"{line}\n" for line in lines)))
@settings(max_examples=1500, deadline=None)
def test_the_short_way_reads_what_pyyaml_reads(block: str) -> None:
    found = plain_mapping(block)
    if found is not None:
        expected = _with_pyyaml(block) or {}
        assert found == expected
        assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=500, deadline=None)
def test_any_text_as_a_value(text: str) -> None:
    block = f"a: {text}\n"
    found = plain_mapping(block)
    if found is not None:
        assert found == _with_pyyaml(block)
    parse_frontmatter(f"---\n{block}---\n")


def test_metadata_of_a_text_that_begins_with_a_block() -> None:
    assert metadata_of("\ufeff---\r\ntitle: A\r\n---\r\n# Head\r\n") == {"title": "A"}
    assert metadata_of("---\ntitle: [broken\n---\n") == {}
    assert metadata_of("# Head\n\n---\ntitle: A\n---\n") == {}
    assert metadata_of("") == {}
