"""Where a text that is too long may be cut: pieces by their size in UTF-8 bytes, borders by sense."""

from collections.abc import Iterator
from unicodedata import category

MAX_JOINED = 32  # code points: as many marks as a cut keeps with their base character
_ZERO_WIDTH_JOINER = "\u200d"
_SPACES = " \t\r\n"
# The end of a sentence, and how much of the mark belongs to it; a list item or table row begins a new one.
_SENTENCE_ENDS = (
    *((stop + space, 1) for stop in ".!?" for space in " \n\r"),
    *((stop, 1) for stop in "\u3002\uff01\uff1f"),
    *((f"\n{marker}", 0) for marker in ("- ", "* ", "+ ", "|", "\n")),
)


def utf8_size(text: str) -> int:
    """Bytes that the text takes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def cut_prose(text: str, start: int, end: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Start and end of the pieces of text[start:end], each of at most `max_bytes`, blanks between left out.

    Cut behind a sentence in the second half of what fits, else between words, else between characters.
    """
    at = start
    while at < end:
        fits = _reach(text, at, end, max_bytes)
        stop = end if fits == end else _whole(text, at, _sentence(text, at, fits) or _word(text, at, fits) or fits)
        ends = _strip_back(text, at, stop)
        if ends > at:
            yield at, ends
        at = _skip(text, stop, end, _SPACES)


def cut_lines(text: str, start: int, end: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Start and end of the pieces of text[start:end] at line ends, each of at most `max_bytes`.

    A line that is too long by itself is cut between characters.
    """
    at = start
    while at < end:
        fits = _reach(text, at, end, max_bytes)
        stop = fits
        if fits < end:
            line_end = max(text.rfind("\n", at + 1, fits + 1), text.rfind("\r", at + 1, fits + 1))
            stop = line_end if line_end > 0 else _whole(text, at, fits)
        yield at, _strip_back(text, at, stop) or stop
        at = _skip(text, stop, end, "\r\n")


def _reach(text: str, start: int, end: int, max_bytes: int) -> int:
    """The furthest offset up to `end` such that the text from `start` takes at most `max_bytes`."""
    stop = min(end, start + max_bytes)
    part = text[start:stop]
    if part.isascii():
        return stop
    fitting = part.encode("utf-8", "surrogatepass")[:max_bytes].decode("utf-8", "ignore")
    return start + max(1, len(fitting))


def _sentence(text: str, start: int, stop: int) -> int:
    """The offset behind the last sentence that ends in the second half of a window, or 0."""
    middle = start + (stop - start) // 2
    best = 0
    for mark, taken in _SENTENCE_ENDS:
        found = text.rfind(mark, middle, stop)
        if found >= 0:
            best = max(best, found + taken)
    return best


def _word(text: str, start: int, stop: int) -> int:
    """The offset of the last blank of a window (the character behind it included), or 0."""
    return max(0, *(text.rfind(space, start + 1, stop + 1) for space in _SPACES))


def _whole(text: str, start: int, stop: int) -> int:
    """The offset at or before `stop` that cuts no character from its marks, if there is one within 32."""
    cut = stop
    while cut > start + 1 and stop - cut <= MAX_JOINED:
        char = text[cut]
        if not (category(char)[0] == "M" or _ZERO_WIDTH_JOINER in (char, text[cut - 1])):
            return cut
        cut -= 1
    return stop


def _strip_back(text: str, start: int, stop: int) -> int:
    while stop > start and text[stop - 1] in _SPACES:
        stop -= 1
    return stop


def _skip(text: str, start: int, end: int, chars: str) -> int:
    while start < end and text[start] in chars:
        start += 1
    return start
