"""Blocks that the scanner tells from ordinary text, rule by rule (CommonMark 0.31, GitHub's tables)."""

import pytest

from domain.markdown.scanner import scan
from domain.markdown.source import with_line_feeds
from domain.markdown.spans import ScanTooSlowError, deadline_after


def _blocks(text: str) -> list[tuple[str, str]]:
    source = with_line_feeds(text)
    return [(span.kind, source[span.start : span.stop].rstrip("\r\n")) for span in scan(source)]


def _headings(text: str) -> list[tuple[int, str]]:
    return [(span.level, span.text) for span in scan(with_line_feeds(text)) if span.kind == "heading"]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("# A", [(1, "A")]),
        ("   ###### F", [(6, "F")]),
        ("####### seven", []),
        ("#no", []),
        ("#\tA ## ", [(1, "A")]),
        ("# A #b", [(1, "A #b")]),
        ("# A \\#", [(1, "A #")]),
        ("text\n# A\ntext", [(1, "A")]),
        ("    # code", []),
        ("A\n===", [(1, "A")]),
        ("A\nB\n  ---  ", [(2, "A B")]),
        ("A\n\n---", []),
        ("A\n=== =", []),
        ("- A\n---", []),
        ("- A\n===", []),
        ("> A\n===", []),
        ("> A\n---", []),
        ("- A\n\nB\n---", [(2, "B")]),
        ("- A\n\n  B\n  ---", []),
        ("- A\n\n# B", [(1, "B")]),
        ("- A\n # B", [(1, "B")]),
        ("- A\n  # B", []),
        ("[a]: b\n===", []),
        ("[a]: b\n---", []),
        ("[a]: b\nC\n===", [(1, "C")]),
        ("a | b\n---", [(2, "a | b")]),
        ("| a |\n---", []),
        ("```\n# A\n```\n# B", [(1, "B")]),
        ("<!--\n# A\n-->\n# B", [(1, "B")]),
        ("<div>\n# A\n\n# B", [(1, "B")]),
        ("# A\r\n\r\nB\r\n===\r\n", [(1, "A"), (1, "B")]),
        ("# A\r\rB\r===\r", [(1, "A"), (1, "B")]),
    ],
)
def test_headings(text: str, headings: list[tuple[int, str]]) -> None:
    assert _headings(text) == headings


@pytest.mark.parametrize(
    ("text", "text_of_heading"),
    [
        ('# <a name="x"></a>A', "A"),
        ("# A<a id='x'></a>", "A"),
        ('# <a href="x">A</a>', '<a href="x">A</a>'),
        ("# `code` and *stars*", "`code` and *stars*"),
        (r"# a\_b \\ c\d", r"a_b \ c\d"),
        ("# a   b\tc", "a b c"),
        ("# " + "x" * 1000, "x" * 300),
        ("# <" + "<a name=" * 1000, ("<" + "<a name=" * 1000)[:300].strip()),
    ],
)
def test_a_headings_words(text: str, text_of_heading: str) -> None:
    assert _headings(text)[0][1] == text_of_heading


@pytest.mark.parametrize(
    ("text", "fence"),
    [
        ("```\na\n```\nb", "```\na\n```"),
        ("~~~~ x\na\n~~~\n~~~~~  \nb", "~~~~ x\na\n~~~\n~~~~~"),
        ("```\na\n ```\nb", "```\na\n ```"),
        ("```\na\n    ```\nb\n```\n", "```\na\n    ```\nb\n```"),
        ("```\na\n\nb", "```\na\n\nb"),
        ("```\na ```\n``` x\n```\nb", "```\na ```\n``` x\n```"),
        ("text\n```\na\n```\nb", "```\na\n```"),
        ("- a\n\n  ```\n  b\n\n  c\n  ```\n  d", "  ```\n  b\n\n  c\n  ```"),
        ("- ```\n  a\nb", "- ```\n  a"),
        ("1. ```\n   a\n   ```\n", "1. ```\n   a\n   ```"),
        ("> ```\n> a\nb", "> ```\n> a"),
        ("> - ```\n>   a\n>   ```\nb", "> - ```\n>   a\n>   ```"),
    ],
)
def test_fences(text: str, fence: str) -> None:
    assert ("fence", fence.rstrip()) in [(kind, body.rstrip()) for kind, body in _blocks(text)]


@pytest.mark.parametrize("text", ["``` a`b\nc", "``\na\n``", "    ```\n    a", "a\n    ```\n"])
def test_no_fences(text: str) -> None:
    assert "fence" not in [kind for kind, _ in _blocks(text)]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<div>\na\n\nb", "<div>\na"),
        ("</TABLE>\na\n\nb", "</TABLE>\na"),
        ("<!-- a\n\nb --> c\nd", "<!-- a\n\nb --> c"),
        ("<pre>\n\n</PRE>\nb", "<pre>\n\n</PRE>"),
        ("<?php\n\n?>\nb", "<?php\n\n?>"),
        ("<!DOCTYPE\nhtml>\nb", "<!DOCTYPE\nhtml>"),
        ("<![CDATA[\n\n]]>\nb", "<![CDATA[\n\n]]>"),
        ("<a href=\"x\" b='c' d=e f/>\nb\n\nc", "<a href=\"x\" b='c' d=e f/>\nb"),
        ("</x-y >\n\nb", "</x-y >"),
        ("text\n<div>\nb\n\nc", "<div>\nb"),
        ("- <div>\n  a\n\nb", "- <div>\n  a"),
        ("- <!--\n  a\nb -->", "- <!--\n  a"),
        ("<div>\r\na\r\n\r\nb", "<div>\r\na"),
    ],
)
def test_html_blocks(text: str, html: str) -> None:
    assert ("html", html) in _blocks(text)


@pytest.mark.parametrize("text", ["text\n<a>\n", "<a> b", "<a b=>\n", "<1>", "<!1>", "    <div>", "<divx y"])
def test_no_html_blocks(text: str) -> None:
    assert "html" not in [kind for kind, _ in _blocks(text)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("    a\n\n    b\n\nc", "    a\n\n    b"),
        ("\ta\nb", "\ta"),
        ("- a\n\n      b\n", "      b"),
        ("-     a\n", "-     a"),
        (">     a\nb", ">     a"),
        (">\t\ta", ">\t\ta"),
    ],
)
def test_indented_code(text: str, code: str) -> None:
    assert ("code", code) in _blocks(text)


@pytest.mark.parametrize("text", ["a\n    b", "- a\n    b", "- a\n\n    b", "1234. a\n\n      b"])
def test_no_indented_code(text: str) -> None:
    assert _blocks(text) == []


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("| a | b |\n|---|:-:|\n| c |\n\nd", "| a | b |\n|---|:-:|\n| c |"),
        ("a|b\n-|-\nc\n# d", "a|b\n-|-\nc"),
        ("text\na \\| b | c\n---|---\n", "a \\| b | c\n---|---"),
        ("| a |\n---\n", "| a |\n---"),
        ("- | a |\n  |---|\n  | b |\n", "- | a |\n  |---|\n  | b |"),
        ("- x\n  | a |\n  |---|\n", "  | a |\n  |---|"),
        ("> | a |\n> |---|\n> | b |\n| c |", "> | a |\n> |---|\n> | b |"),
        ("| a |\n|---|\n- b", "| a |\n|---|"),
        ("| a |\n|---|\n```\n", "| a |\n|---|"),
        ("| a |\n|---|\n<div>\n", "| a |\n|---|"),
        ("| a |\n|---|\n***\n", "| a |\n|---|"),
        ("| a |\n|---|\n> b\n", "| a |\n|---|"),
        ("| a |\n|---|\n    b\n", "| a |\n|---|"),
    ],
)
def test_tables(text: str, table: str) -> None:
    assert ("table", table) in _blocks(text)


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n|---|",
        "a\n|---|",
        "| a |\n\n|---|",
        "| a |\n- |",
        "| a || b\n|-||-|",
        "|\n|-|",
        "> | a |\n|---|",
    ],
)
def test_no_tables(text: str) -> None:
    assert "table" not in [kind for kind, _ in _blocks(text)]


@pytest.mark.parametrize(
    "text",
    [
        "a\n2. b\n   # c",  # an ordered list that interrupts a paragraph begins with 1
        "a\n-\n  # c",  # and an item that does has content
        "-\n\n  # c",  # an item without content ends at a blank line
        "1234567890. a\n            # c",
        "* * *\n# c",
        "_ _ _\n# c",
        "-a\n  # c",
        "> a\n\n# c",
        "> a\n>\nb\n# c",
        "-\n# c",
        "- a\n  - b\n\n# c",
        "- a\n> b\n# c",
        "+ a\n\n b\n# c",
        "> \n# c",
    ],
)
def test_headings_outside_of_lists_and_quotes(text: str) -> None:
    assert ("heading", "c") in [(span.kind, span.text) for span in scan(text)] or text.startswith("1234567890")


@pytest.mark.parametrize("text", ["- a\n\n  # c", "1. a\n\n   # c", "a\n1. b\n   # c", "> - a\n>   # c", "-\n  # c"])
def test_headings_inside_of_lists_and_quotes(text: str) -> None:
    assert scan(text) == []


def test_deeper_containers_than_the_limit_are_text() -> None:
    assert scan("> " * 101 + "```\n" + "> " * 101 + "a\n") == []
    assert [span.level for span in scan("> " * 100 + "```\n")] == [100]


def test_scans_from_an_offset() -> None:
    text = "---\n# A\n---\n# B\n"
    assert [span.text for span in scan(text, 12)] == ["B"]


def test_the_deadline_is_looked_at_every_thousand_lines() -> None:
    looks: list[None] = []
    scan("# a\n" * 3500, deadline=lambda: looks.append(None))
    assert len(looks) == 3
    scan("- a\n" * 3500, deadline=lambda: looks.append(None))
    assert len(looks) == 6
    clock = iter([0.0, 1.0, 3.0])
    look = deadline_after(2, lambda: next(clock))
    look()
    with pytest.raises(ScanTooSlowError):
        look()
