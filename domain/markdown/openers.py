"""What a line may begin, looked at by itself: pure tests, linear in the line's length.

Positions are character indexes in the line; `pos` is its first character after the quotes and list items
that it lies in, and after blanks. The rules are CommonMark 0.31's, with GitHub's tables.
"""

import re

from domain.markdown.source import BLANKS

FENCE_MIN = 3
MAX_ORDERED_DIGITS = 9
_SPECIAL_TAGS = ("script", "pre", "style", "textarea")
_BLOCK_TAGS = frozenset(
    (
        *(
            "address",
            "article",
            "aside",
            "base",
            "basefont",
            "blockquote",
            "body",
            "caption",
            "center",
            "col",
        ),
        *(
            "colgroup",
            "dd",
            "details",
            "dialog",
            "dir",
            "div",
            "dl",
            "dt",
            "fieldset",
            "figcaption",
            "figure",
        ),
        *("footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr"),
        *("html", "iframe", "legend", "li", "link", "main", "menu", "menuitem", "nav", "noframes", "ol"),
        *(
            "optgroup",
            "option",
            "p",
            "param",
            "search",
            "section",
            "summary",
            "table",
            "tbody",
            "td",
            "tfoot",
        ),
        *("th", "thead", "title", "tr", "track", "ul"),
    )
)
# Possessive throughout, so that none of these can backtrack: linear in the line.
_TAG_NAME = re.compile(r"</?+([A-Za-z][A-Za-z0-9-]*+)")
_WHOLE_TAG = re.compile(
    r"(?:<[A-Za-z][A-Za-z0-9-]*+"
    r"(?:\s++[A-Za-z_:][A-Za-z0-9:._-]*+(?:\s*+=\s*+(?:[^\"'=<>`\x00-\x20]++|'[^']*+'|\"[^\"]*+\"))?+)*+"
    r"\s*+/?+>|</[A-Za-z][A-Za-z0-9-]*+\s*+>)\s*+\Z"
)
_DEFINITION = re.compile(
    r"\[(?:[^\[\]\\]++|\\.)++\]:[ \t]*+(?:<[^<>]*+>|[^\s<]\S*+)"
    r"(?:[ \t]++(?:\"(?:[^\"\\]++|\\.)*+\"|'(?:[^'\\]++|\\.)*+'|\((?:[^()\\]++|\\.)*+\)))?+[ \t]*+\Z"
)
UNTIL_BLANK = ("",)
"""The end marks of an HTML block that ends at a blank line."""


def skip_blanks(line: str, pos: int, col: int) -> tuple[int, int]:
    """The position and the column (tabs to multiples of 4) of the next character that is no blank."""
    rest = line[pos:]
    stop = pos + len(rest) - len(rest.lstrip(BLANKS))
    if "\t" not in line[pos:stop]:
        return stop, col + stop - pos
    for char in line[pos:stop]:
        col += 4 - col % 4 if char == "\t" else 1
    return stop, col


def atx_heading(line: str, pos: int) -> tuple[int, str] | None:
    """The level of a line of the form `## words`, and what stands behind the hashes."""
    rest = line[pos:]
    words = rest.lstrip("#")
    level = len(rest) - len(words)
    if not 1 <= level <= 6 or (words and words[0] not in BLANKS):
        return None
    return level, words


def fence_opener(line: str, pos: int) -> str:
    """The run of ``` or ~~~ that opens a fence here, or ""."""
    marker = line[pos]
    rest = line[pos:]
    info = rest.lstrip(marker)
    length = len(rest) - len(info)
    if length < FENCE_MIN or (marker == "`" and "`" in info):
        return ""
    return marker * length


def closes_fence(line: str, pos: int, opener: str) -> bool:
    """Whether the line is a closing fence, at least as long as its opener and with nothing behind it."""
    return line.startswith(opener, pos) and not line[pos:].lstrip(opener[0]).strip(BLANKS)


def is_rule(line: str, pos: int) -> bool:
    """Whether the line is a thematic break: three or more of one of `-`, `*`, `_`, blanks between allowed."""
    marker = line[pos]
    rest = line[pos:]
    return marker in "-*_" and not rest.strip(f"{marker} \t") and rest.count(marker) >= 3


def is_underline(line: str, pos: int) -> bool:
    """Whether the line underlines a setext heading: only `=` or only `-`, blanks behind allowed."""
    return not line[pos:].rstrip(BLANKS).strip(line[pos])


def list_marker(line: str, pos: int) -> int:
    """The position after the list marker that begins here, or -1; a blank or the line's end follows it."""
    if line[pos] in "-+*":
        end = pos + 1
    else:
        end = pos
        while line[end : end + 1] in _DIGITS and end - pos < MAX_ORDERED_DIGITS:
            end += 1
        if end == pos or line[end : end + 1] not in _DELIMITERS:
            return -1
        end += 1
    return end if line[end : end + 1] in _AFTER_MARKER else -1


_DIGITS = frozenset("0123456789")
_DELIMITERS = frozenset(".)")
_AFTER_MARKER = frozenset((" ", "\t", ""))


def html_opener(line: str, pos: int, *, whole_tag: bool) -> tuple[str, ...] | None:
    """The marks, in lower case, of which one ends the HTML block that begins here; None: no block begins.

    `whole_tag`: a line that is one complete tag counts too (it may not interrupt a paragraph).
    """
    found = _TAG_NAME.match(line, pos)
    if found is None:
        return _declaration_end(line, pos)
    name, after = found[1].lower(), line[found.end() : found.end() + 1]
    closing = line[pos + 1] == "/"
    if name in _SPECIAL_TAGS and not closing and (after in (">", "") or after.isspace()):
        return tuple(f"</{tag}>" for tag in _SPECIAL_TAGS)
    if name in _BLOCK_TAGS and (after in (">", "") or after.isspace() or line.startswith("/>", found.end())):
        return UNTIL_BLANK
    return UNTIL_BLANK if whole_tag and _WHOLE_TAG.match(line, pos) else None


def _declaration_end(line: str, pos: int) -> tuple[str, ...] | None:
    if line.startswith("<!--", pos):
        return ("-->",)
    if line.startswith("<?", pos):
        return ("?>",)
    if line.startswith("<![CDATA[", pos):
        return ("]]>",)
    letter = line[pos + 2 : pos + 3]
    return (">",) if line.startswith("<!", pos) and letter.isascii() and letter.isalpha() else None


def is_definition(line: str) -> bool:
    """Whether the line is a link reference definition by itself: `[label]: target "title"`."""
    return line.startswith("[") and _DEFINITION.match(line) is not None


def delimiter_columns(line: str, pos: int) -> int:
    """How many columns the delimiter row of a table here has; 0: it is none."""
    row = line[pos:].strip(BLANKS)
    if len(row) < 2 or row.strip("|-: \t") or (row[0] == "-" and row[1] in BLANKS):
        return 0
    cells = [cell.strip(BLANKS) for cell in row.split("|")]
    if not cells[0]:
        del cells[0]
    if cells and not cells[-1]:
        del cells[-1]
    return len(cells) if all(_is_delimiter(cell) for cell in cells) else 0


def _is_delimiter(cell: str) -> bool:
    dashes = cell.removeprefix(":").removesuffix(":")
    return bool(dashes) and not dashes.strip("-")


def header_columns(row: str) -> int:
    """How many cells a table's header row has; 0 where it holds no `|` at all."""
    row = row.strip(BLANKS)
    bars = row.count("|")
    if "\\" in row:
        bars -= _escaped_bars(row)
    if "|" not in row:
        return 0
    leading = row.startswith("|")
    trailing = row.endswith("|") and not row.endswith("\\|")
    return bars + 1 - leading - trailing


def _escaped_bars(row: str) -> int:
    """Bars right behind a backslash (a backslash before that one does not count, as in GitHub's tables)."""
    return row.count("\\|")


def begins_block(line: str, pos: int) -> bool:
    """Whether the line ends a table's rows: it begins a block that may interrupt a paragraph."""
    char = line[pos]
    if char == ">":
        return True
    if char == "#":
        return atx_heading(line, pos) is not None
    if char in "`~":
        return fence_opener(line, pos) != ""
    if char == "<":
        return html_opener(line, pos, whole_tag=False) is not None
    return is_rule(line, pos) or list_marker(line, pos) >= 0
