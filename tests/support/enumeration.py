"""Enumerations once more, slowly: every chunk of every document is read, and words are compared one by one.

Shares nothing with the product but the stored chunks: the words come from a pattern, their stems from a table.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from store.port import SearchSnapshot, Visibility

# form -> stem, of the words that texts and queries are made of
STEMS = {
    "run": "run", "runs": "run", "running": "run",
    "index": "index", "indexes": "index", "indexing": "index", "indexed": "index",
    "happy": "happi", "happiness": "happi",
    "file": "file", "files": "file", "filing": "file",
    "kernel": "kernel", "kernels": "kernel",
    "blue": "blue", "red": "red", "green": "green", "rare": "rare", "once": "onc",
}  # fmt: skip
FORMS = tuple(STEMS)


@dataclass(frozen=True, slots=True)
class SlowTerm:
    """A term in its parts: `words` side by side, in one of the fields."""

    words: tuple[str, ...]
    fields: tuple[str, ...] = ("body", "heading_path")
    excluded: bool = False

    @property
    def written(self) -> str:
        """As the query language spells it."""
        field = "" if len(self.fields) > 1 else "body:" if self.fields == ("body",) else "heading:"
        text = self.words[0] if len(self.words) == 1 else f'"{" ".join(self.words)}"'
        return f"{'-' if self.excluded else ''}{field}{text}"


@dataclass(frozen=True, slots=True)
class SlowDocument:
    path: str
    ordinal: int
    body_matches: int
    heading_matches: int
    total_chunks: int


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


class SlowCorpus:
    """The chunks of a store, as words."""

    def __init__(self, snapshot: SearchSnapshot) -> None:
        everything = Visibility.everything()
        keys = [document.key for document in snapshot.documents("", limit=10_000, visibility=everything)]
        self._chunks: Mapping[str, Sequence[Mapping[str, list[str]]]] = {
            key: [
                {"body": words_of(chunk.body), "heading_path": words_of(chunk.heading_path)}
                for chunk in snapshot.chunks(key, visibility=everything)
            ]
            for key in keys
        }

    def documents(self, terms: Sequence[SlowTerm], min_matches: int = 1) -> list[SlowDocument]:
        """Those that hold all terms and no excluded one, by path."""
        found = []
        for key, chunks in sorted(self._chunks.items()):
            places = {term: list(self._places(key, term)) for term in terms}
            if any(bool(places[term]) == term.excluded for term in terms):
                continue
            matches = [place for term in terms for place in places[term]]
            if len(matches) >= min_matches:
                in_body = sum(field == "body" for _, field in matches)
                first = min(ordinal for ordinal, _ in matches)
                found.append(SlowDocument(key, first, in_body, len(matches) - in_body, len(chunks)))
        return found

    def holding(self, term: SlowTerm) -> int:
        """Documents that hold the term in any form, excluded or not."""
        return sum(any(True for _ in self._places(key, term)) for key in self._chunks)

    def holding_as_written(self, term: SlowTerm) -> int:
        return sum(
            any(term.words[0] in chunk[field] for chunk in chunks for field in term.fields)
            for chunks in self._chunks.values()
        )

    def _places(self, key: str, term: SlowTerm) -> Iterator[tuple[int, str]]:
        """Ordinal and field of each chunk of which that field holds the term."""
        wanted = [_stem(word) for word in term.words]
        for ordinal, chunk in enumerate(self._chunks[key]):
            for field in term.fields:
                stems = [_stem(word) for word in chunk[field]]
                if any(stems[at : at + len(wanted)] == wanted for at in range(len(stems))):
                    yield ordinal, field


def _stem(word: str) -> str:
    return STEMS.get(word, word)
