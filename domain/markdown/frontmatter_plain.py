"""The part of YAML that nearly all frontmatter keeps to, read without a YAML parser.

`key: value` lines at the margin, and lists of values below a key or in brackets. Whatever could mean more
than it says in YAML 1.1 (as PyYAML reads it) is not read here: the answer is then None, and PyYAML is asked.
Many times as fast as that, which counts: nearly every file of a documentation tree begins with such a block.
"""

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache

MAX_PLAIN_CHARS = 16 * 1024
# Words that YAML 1.1 reads as null or a truth value, however they are capitalised.
_WORDS_WITH_MEANING: dict[str, bool | None] = {
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NOT_PLAIN = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
# Words that are a string whatever they say, but for _WORDS_WITH_MEANING: no comment, no mapping, no number.
_WORDS = r"[A-Za-z(/_$][^\n:#]*+(?::(?![ \n])[^\n:#]*+)*+"
# A key; its value where that is words; else the rest of its line; and the lines of the list below it. All is
# possessive: nothing can backtrack but from the words to the rest, once a line.
_ENTRY = re.compile(rf"([A-Za-z_][A-Za-z0-9_. -]*+):(?: ({_WORDS})|((?: [^\n]*+)?+))\n((?: *+- [^\n]*+\n)*+)")
_WORDS_ITEM = re.compile(rf"( *+- )({_WORDS})\n")
_MAX_KEY_CHARS = 100
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGER = re.compile(r"0|[1-9][0-9]{0,14}")
_FLOAT = re.compile(r"[0-9]{1,15}\.[0-9]{1,15}")
_IN_NO_NUMBER = re.compile(r"[/A-DF-SU-Ya-df-su-z]")  # e and E, T, t and Z stand in numbers and times


class _NotPlain(Exception):  # noqa: N818 - it never leaves this module
    """Something that only a YAML parser can read."""


def plain_mapping(block: str) -> dict[str, object] | None:
    """The mapping that these lines are, exactly as PyYAML would read them (dates as ISO strings), or None."""
    if not _is_printable(block):
        return None
    mapping: dict[str, object] = {}
    read = 0
    try:
        for key, words, rest, items in _ENTRY.findall(block):
            if words and not items:
                read += len(key) + len(words) + 3
                words = words.rstrip(" ")
                mapping[_key(key)] = _WORDS_WITH_MEANING.get(words, words)
            else:
                read += len(key) + len(rest) + len(items) + 2
                mapping[_key(key)] = _entry(rest, items) if rest or items else None
    except _NotPlain:
        return None
    return mapping if read == len(block) else None  # else something stood between the entries


def _is_printable(text: str) -> bool:
    """Neither tabs, control characters, YAML's own line ends nor too much of it."""
    if len(text) > MAX_PLAIN_CHARS:
        return False
    return text.replace("\n", "").isprintable() if text.isascii() else _NOT_PLAIN.search(text) is None


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    if len(key) > _MAX_KEY_CHARS or key[-1] == " " or key in _WORDS_WITH_MEANING:
        raise _NotPlain
    return key


def _entry(rest: str, items: str) -> object:
    """The value behind a key, or the list below it."""
    text = rest.strip(" ")
    if not items:
        return _value(text) if text else None
    if text:
        raise _NotPlain
    return _words_list(items) or _list(items)


def _words_list(items: str) -> list[object]:
    """The items of a list of words; [] where one of them is more."""
    found = _WORDS_ITEM.findall(items)
    marker = found[0][0] if found else ""
    words = [word.rstrip(" ") for own_marker, word in found if own_marker == marker]
    if sum(map(len, [word for _, word in found])) + (len(marker) + 1) * len(words) != len(items):
        return []
    return [] if any(word in _WORDS_WITH_MEANING for word in words) else list(words)


def _list(items: str) -> list[object]:
    lines = items.split("\n")
    marker = lines[0][: lines[0].index("-") + 2]
    return [_item(line, marker) for line in lines[:-1]]


def _item(line: str, marker: str) -> object:
    if not line.startswith(marker):
        raise _NotPlain
    return _value(line[len(marker) :].strip(" "))


def _value(text: str) -> object:
    """A value on one line: a word, a number, a date, a quoted string or a list of them in brackets."""
    first = text[:1]
    if first.isalpha():
        return _WORDS_WITH_MEANING[text] if text in _WORDS_WITH_MEANING else _words(text)
    reader = _READERS.get(first)
    if reader is None:
        raise _NotPlain
    return reader(text)


def _words(text: str) -> str:
    """A plain scalar that is a string."""
    if ": " in text or " #" in text or text[-1] == ":":
        raise _NotPlain
    return text


def _number(text: str) -> object:
    """A plain scalar that begins with a digit."""
    if text.count(".") >= 2 or (text[:2] not in ("0b", "0x") and _IN_NO_NUMBER.search(text)):
        return _words(text)
    if _DATE.fullmatch(text):
        return _date(text)
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    raise _NotPlain


def _compared(text: str) -> str:
    if text == "<<":  # YAML 1.1's merge key
        raise _NotPlain
    return _words(text)


def _date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise _NotPlain from error


def _quoted(text: str) -> str:
    quote = text[0]
    inner = text[1:-1]
    if len(text) < 2 or text[-1] != quote or quote in inner or (quote == '"' and "\\" in inner):
        raise _NotPlain
    return inner


def _bracketed(text: str) -> list[object]:
    """A list in brackets: strings in double quotes, or none."""
    inner = text[1:-1].strip(" ")
    if len(text) < 2 or text[-1] != "]":
        raise _NotPlain
    if not inner:
        return []
    if inner[0] != '"' or inner[-1] != '"' or len(inner) < 2 or "\\" in inner:
        raise _NotPlain
    parts = inner[1:-1].replace('", "', '","').split('","')
    if any('"' in part for part in parts):
        raise _NotPlain
    return list(parts)


_READERS: dict[str, Callable[[str], object]] = {
    '"': _quoted,
    "'": _quoted,
    "[": _bracketed,
    "<": _compared,
    "(": _words,
    "/": _words,
    "_": _words,
    "$": _words,
    **dict.fromkeys("0123456789", _number),
}
