"""Text that came from documents, names and queries, made safe for a terminal (S1-56).

Three forms: `one_line` (snippets, titles), `display` (whole texts; newlines and tabs stay) and `name` (keys,
citations, paths: nothing is dropped, so that what is shown can be typed again; see `typed`).
"""

import re
from functools import cache

# ECMA-48: CSI; strings up to BEL or ST (OSC, DCS, SOS, PM, APC); other escapes. Possessive: no backtracking.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*+[0-~]"
)
_NOT_PLAIN = re.compile(r"[^\n\t\x20-\x7e]")
_SHOWN_CODE = re.compile(r"<U\+([0-9A-F]{4,6})>")
_NEWLINE_PAIR = "\r\n"
# invisible, yet printable for str.isprintable: variation selectors, fillers, joiners
_INVISIBLE_RANGES = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF),
)  # fmt: skip
_DROPPED_RANGES = ((0x00AD, 0x00AD), (0xFE00, 0xFE0F))  # soft hyphens, emoji selectors: ordinary and harmless


def one_line(text: str, limit: int = 0) -> str:
    """One line without control sequences, white space collapsed; cut at `limit` characters, 0 = whole."""
    plain = text if text.isascii() and text.isprintable() else _cleaned(text)
    collapsed = " ".join(plain.split())
    if limit and len(collapsed) > limit:
        return collapsed[: limit - 1] + "…"
    return collapsed


def segment(text: str) -> str:
    """A part of a line, without control sequences; blanks stay, since more follows."""
    if text.isascii() and text.isprintable():
        return text
    return _cleaned(text).replace("\n", " ").replace("\t", " ")


def display(text: str) -> str:
    """Text for reading: newlines and tabs stay."""
    return _cleaned(text.replace(_NEWLINE_PAIR, "\n"))


def name(text: str) -> str:
    """A name on one line; what is no visible character stands as <U+XXXX>, and so does the < of a name that holds
    such a code itself: no two names are shown alike."""
    if "<U+" in text:
        text = _SHOWN_CODE.sub(_with_code_of_its_sign, text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_visible(char) else _code(char) for char in text)


def typed(text: str) -> str:
    """A name as `name` shows it, turned back."""
    return _SHOWN_CODE.sub(_from_code, text)


def json_safe(json_text: str) -> str:
    """JSON whose strings hold no raw character that could act on a terminal; still the same value."""
    if json_text.isascii():
        return json_text.replace("\x7f", "\\u007f")
    return _NOT_PLAIN.sub(_json_escape, json_text)


def _cleaned(text: str) -> str:
    without = _SEQUENCES.sub("", text) if "\x1b" in text or not text.isascii() else text
    return _NOT_PLAIN.sub(_shown, without)


def _shown(found: re.Match[str]) -> str:
    return _shown_character(found[0])


@cache
def _shown_character(char: str) -> str:
    if char < " " or "\x7f" <= char < "\xa0":
        return " "
    if _is_in(char, _DROPPED_RANGES):
        return ""
    return char if _is_visible(char) else _code(char)


def _is_visible(char: str) -> bool:
    """Printable and with a width or a shape; the wide spaces count."""
    is_space = char.isspace() and char >= "\xa0" and char not in "\u2028\u2029"
    return (char.isprintable() or is_space) and not _is_in(char, _INVISIBLE_RANGES)


def _is_in(char: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(char) <= last for first, last in ranges)


def _code(char: str) -> str:
    return f"<U+{ord(char):04X}>"


def _with_code_of_its_sign(found: re.Match[str]) -> str:
    return _code("<") + found[0][1:]


def _from_code(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    is_character = number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
    return chr(number) if is_character else found[0]


def _json_escape(found: re.Match[str]) -> str:
    char = found[0]
    if _is_visible(char) or _is_in(char, _DROPPED_RANGES):
        return char
    number = ord(char)
    if number <= 0xFFFF:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
