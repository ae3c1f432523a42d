"""One line of a hit's text around its matches, with the offsets of the matches in that line. Pure."""

import re
from collections.abc import Sequence

from retrieval.matching import Span

WIDTH_CHARS = 150
LEAD_CHARS = 30  # shown before the first match
BREAK_CHARS = 15  # a cut is moved by at most so much, to a blank
ELLIPSIS = "\u2026"

_BLANKS = re.compile(r"\s+")
Matches = tuple[tuple[int, int], ...]


def make_snippet(text: str, spans: Sequence[Span]) -> tuple[str, Matches]:
    """The part of the text with the most different matches; its beginning where there are none.

    Runs of blanks become one blank, an ellipsis stands where text is left out. Spans ascend and are apart.
    """
    begin, end = _window(text, spans)
    line, matches = _one_line(text, begin, end, spans)
    if text[:begin].strip():
        line = ELLIPSIS + line
        matches = tuple((start + 1, stop + 1) for start, stop in matches)
    if text[end:].strip():
        line += ELLIPSIS
    return line, matches


def _window(text: str, spans: Sequence[Span]) -> tuple[int, int]:
    first = _best_first(spans)
    begin = max(0, first.start - LEAD_CHARS) if first is not None else 0
    if len(text) - begin < WIDTH_CHARS:  # near the end: show more of what stands before
        begin = max(0, min(begin, len(text) - WIDTH_CHARS))
    if begin > 0:
        limit = min(begin + BREAK_CHARS, first.start if first is not None else begin)
        blank = _BLANKS.search(text, begin, limit)
        begin = blank.end() if blank else begin
    end = min(len(text), begin + WIDTH_CHARS)
    if end < len(text):
        blanks = list(_BLANKS.finditer(text, end - BREAK_CHARS, end))
        end = blanks[-1].start() if blanks else end
    return begin, end


def _best_first(spans: Sequence[Span]) -> Span | None:
    """The match with which the window of the greatest weight of different matches begins; ties: the first."""
    best, best_weight = None, 0
    for number, span in enumerate(spans):
        labels: dict[str, int] = {}
        for other in spans[number:]:
            if other.end > span.start + WIDTH_CHARS - LEAD_CHARS and labels:
                break
            labels[other.label] = other.weight
        weight = sum(labels.values())
        if weight > best_weight:
            best, best_weight = span, weight
    return best


def _one_line(text: str, begin: int, end: int, spans: Sequence[Span]) -> tuple[str, Matches]:
    line = ""
    matches: list[tuple[int, int]] = []
    at = begin
    for span in spans:
        start, stop = max(span.start, begin), min(span.end, end)
        if start >= stop:
            continue
        line = _joined(line, text[at:start])
        offset = len(line)
        line = _joined(line, text[start:stop])
        if len(line) > offset:
            matches.append((offset, len(line)))
        at = stop
    line = _joined(line, text[at:end]).rstrip()
    return line, tuple((start, min(stop, len(line))) for start, stop in matches if start < len(line))


def _joined(line: str, part: str) -> str:
    part = _BLANKS.sub(" ", part)
    return line + (part[1:] if part.startswith(" ") and (not line or line.endswith(" ")) else part)
