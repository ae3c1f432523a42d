"""Where in a text a query's terms, literals and substrings stand: for snippets and `matched_in`.

Words are compared by their stems, as the index does. FTS5's own highlight() costs 0.1 to 1.5 ms a hit, as
it walks the posting lists again; here only words that begin like a stem are looked up, and stems are
remembered.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from store.port import SearchSnapshot

MAX_SPANS = 1_000  # a text
LITERAL_WEIGHT = 4  # a literal or substring says more than a word
SUBSTRING_PART_CHARS = 3

_ASCII_TAIL = re.compile("[0-9a-z]*")
_WORD = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036f])*")


class Span(NamedTuple):
    """A match in a text: half-open offsets, what matched, and how much that says."""

    start: int
    end: int
    label: str
    weight: int = 1


class Matcher(Struct, frozen=True):
    """What is looked for, made once a search."""

    stems: frozenset[str]
    beginnings: tuple[str, ...]
    literals: tuple[tuple[str, re.Pattern[str]], ...]
    substrings: tuple[str, ...]
    known: dict[str, str] = field(default_factory=dict)  # word as it stands -> its stem
    places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # by text, of words that may match

    def learn(self, snapshot: SearchSnapshot, texts: Iterable[str]) -> None:
        """Find the words of the texts that may match, and look up the stems of all at once."""
        words: set[str] = set()
        for text in texts:
            places = self.places[text] = list(self._find_places(text))
            words.update([text[start:end] for start, end in places])
        if words:
            for word, stems in snapshot.stems(list(words)).items():
                self.known[word] = stems[0] if len(stems) == 1 else ""

    def spans(self, text: str) -> list[Span]:
        """Matches in a text that was learnt: by their start, apart, the heavier and longer kept."""
        found = list(self._word_spans(text))
        if not found and not self.literals and not self.substrings:
            return found
        for label, pattern in self.literals:
            found += [Span(*hit.span(), label, LITERAL_WEIGHT) for hit in pattern.finditer(text)]
        for piece in self.substrings:
            found += _substring_spans(text, piece)
        return _apart(found)

    def _word_spans(self, text: str) -> Iterator[Span]:
        known, stems = self.known, self.stems
        for start, end in self.places[text]:
            stem = known[text[start:end]]
            if stem in stems:
                yield Span(start, end, stem)

    def _find_places(self, text: str) -> Iterator[tuple[int, int]]:
        if not self.stems:
            return
        if not text.isascii():  # folding may change any letter of a word but those of ASCII
            for found in _WORD.finditer(text):
                word = found[0]
                if not word.isascii() or word.lower().startswith(self.beginnings):
                    yield found.span()
            return
        lowered = text.lower()
        for beginning in self.beginnings:
            at = lowered.find(beginning)
            while at >= 0:
                end = at + len(beginning)
                if at == 0 or not lowered[at - 1].isalnum():
                    end += len(_ASCII_TAIL.match(lowered, end)[0])  # type: ignore[index]
                    yield at, end
                at = lowered.find(beginning, end)


def make_matcher(
    snapshot: SearchSnapshot, terms: Sequence[str], literals: Sequence[str], substrings: Sequence[str]
) -> Matcher:
    stems_by_term: Mapping[str, tuple[str, ...]] = snapshot.stems(terms) if terms else {}
    stems = frozenset(stems[0] for stems in stems_by_term.values() if len(stems) == 1)
    phrases = [term for term, stems in stems_by_term.items() if len(stems) > 1]
    return Matcher(
        stems=stems,
        beginnings=_beginnings(stems),
        literals=tuple((text, _literal_pattern(text)) for text in dict.fromkeys([*literals, *phrases])),
        substrings=tuple(dict.fromkeys(substrings)),
    )


def _beginnings(stems: Iterable[str]) -> tuple[str, ...]:
    """How words with these stems begin: the stemmer rewrites at most a stem's last two characters."""
    return tuple(sorted({stem[: max(len(stem) - 2, min(2, len(stem)))] for stem in stems}))


def _literal_pattern(text: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, text.split())), re.IGNORECASE)


def _substring_spans(text: str, piece: str) -> list[Span]:
    """The piece itself; where it stands nowhere, its parts of three characters."""
    whole = list(_occurrences(text, piece))
    if whole or len(piece) <= SUBSTRING_PART_CHARS:
        return whole
    parts = {piece[at : at + SUBSTRING_PART_CHARS] for at in range(len(piece) - SUBSTRING_PART_CHARS + 1)}
    return [span for part in sorted(parts) for span in _occurrences(text, part)]


def _occurrences(text: str, piece: str) -> Iterator[Span]:
    lowered, wanted = text.lower(), piece.lower()
    if len(lowered) != len(text):
        lowered, wanted = text, piece
    at = lowered.find(wanted)
    while at >= 0:
        yield Span(at, at + len(wanted), piece, LITERAL_WEIGHT)
        at = lowered.find(wanted, at + len(wanted))


def _apart(found: list[Span]) -> list[Span]:
    """Spans that do not overlap: of two that do, the first, or the heavier where they begin together."""
    found.sort(key=lambda span: (span.start, -span.weight, -span.end))
    kept: list[Span] = []
    for span in found[: 2 * MAX_SPANS]:
        if kept and span.start < kept[-1].end:
            if span.weight > kept[-1].weight:
                kept[-1] = span._replace(start=kept[-1].start)
            continue
        kept.append(span)
    return kept[:MAX_SPANS]
