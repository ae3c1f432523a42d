"""A text that is too long for a model: cut at the borders of its sentences, and put together again as one vector.

Pure. The parts keep what the model was trained to see first: a document prefix stands before each of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from domain.markdown.borders import cut_prose, utf8_size
from embedding.port import EmbeddedText
from embedding.unit_vectors import mean_vector

FLOOR_CHARS = 200  # a text that is refused at this length is not refused for its length
MAX_PREFIX_CHARS = 4_096  # of a prefix with a breadcrumb in it; further behind, it is not looked for
BLANK = "there is no text in it"
NOT_UNICODE = "it is not valid Unicode"


class Part(NamedTuple):
    """What is sent for a piece of a text, and how many characters of the text it stands for."""

    text: str
    weight_chars: int


def reason_not_to_ask(text: str) -> str:
    """Why no model is asked about a text, in a few words; "" where one is (S0-28)."""
    if not text.strip():
        return BLANK
    try:
        text.encode()
    except UnicodeEncodeError:
        return NOT_UNICODE
    return ""


def prefix_chars(text: str, document_prefix: str) -> int:
    """How much of a text is its document prefix, `{title}` in it replaced; 0 where it does not begin with it."""
    before, title, after = document_prefix.partition("{title}")
    if not text.startswith(before):
        return 0
    if not title:
        return len(before)
    found = text.find(after, len(before), len(before) + MAX_PREFIX_CHARS) if after else len(before)
    return found + len(after) if found >= 0 else 0


def halves(text: str, document_prefix: str = "", *, at_most_bytes: int = 0) -> list[Part]:
    """The parts of a text, each about half as long or shorter; none where it is too short to be cut.

    `at_most_bytes`: a size that is known to be taken, where there is one. Each cut at least halves what is cut, so
    that cutting parts again ends after as many rounds as a text has doublings of FLOOR_CHARS.
    """
    kept = prefix_chars(text, document_prefix)
    if len(text) - kept <= FLOOR_CHARS:
        return []
    half = (utf8_size(text[kept:]) + 1) // 2
    if at_most_bytes:
        half = min(half, max(at_most_bytes - utf8_size(text[:kept]), FLOOR_CHARS))
    return _parts(text, kept, half)


def bounded_parts(text: str, document_prefix: str, max_bytes: int) -> list[Part]:
    """The parts of a text that no model is asked about whole, each of at most `max_bytes` with its prefix (R21)."""
    kept = prefix_chars(text, document_prefix)
    return _parts(text, kept, max(max_bytes - utf8_size(text[:kept]), FLOOR_CHARS))


def _parts(text: str, kept_chars: int, max_bytes: int) -> list[Part]:
    kept = text[:kept_chars]
    pieces = (text[start:end] for start, end in cut_prose(text, kept_chars, len(text), max_bytes))
    return [Part(kept + piece, len(piece)) for piece in pieces if piece.strip()]


def joined(parts: Sequence[Part], embedded: Sequence[EmbeddedText]) -> EmbeddedText:
    """One vector for a text out of those of its parts: their mean, weighted by characters, at unit length (fault 28).

    Refused where a part is: a mean over a part of a text would stand for a text that nobody wrote.
    """
    refused = next((each.refusal for each in embedded if each.refusal), "") if parts else BLANK
    if refused:
        return EmbeddedText(b"", refusal=refused)
    vector = mean_vector([each.vector for each in embedded], [part.weight_chars for part in parts])
    if not vector:
        return EmbeddedText(b"", refusal="the vectors of its parts cancel each other out")
    return EmbeddedText(vector, parts=sum(each.parts for each in embedded))
