"""The literal lane: tokens with punctuation and quoted text, wherever they stand in a chunk."""

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.query_text import MAX_LITERALS, Literal, split_words
from retrieval.statistics import StoreStatistics
from store.port import LiteralHit, Scope, SearchSnapshot, Visibility

MAX_POSTINGS = 50_000  # for all literals of a query together
MAX_PLAIN_POSTINGS = 1_000  # a plain word with a full stop is looked for only where the word is rare
RARE_HITS = 20  # a literal that so few chunks hold, or fewer, is rare: it names something


@dataclass(frozen=True, slots=True)
class FoundLiteral:
    """A literal as it was found: as written, or without what a sentence puts around it."""

    text: str
    quoted: bool
    hits: tuple[LiteralHit, ...]  # exact case first, then best first
    truncated: bool

    @property
    def ids(self) -> list[int]:
        return [hit.id for hit in self.hits]

    @property
    def is_rare(self) -> bool:
        return not self.quoted and not self.truncated and 0 < len(self.hits) <= RARE_HITS


@dataclass(frozen=True, slots=True)
class LiteralLane:
    """What all literals of a query found; `ids` is the lane's order."""

    found: tuple[FoundLiteral, ...] = ()
    truncated: bool = False

    @property
    def ids(self) -> list[int]:
        """Chunks with more literals first, then those with more of exact case, then by their best place."""
        held: dict[int, list[int]] = {}
        for literal in self.found:
            for place, hit in enumerate(literal.hits):
                count, exact, best = held.get(hit.id, (0, 0, place))
                held[hit.id] = [count + 1, exact + hit.exact, min(best, place)]
        return sorted(held, key=lambda chunk_id: (-held[chunk_id][0], -held[chunk_id][1], held[chunk_id][2], chunk_id))


def literal_lane(
    snapshot: SearchSnapshot,
    literals: Sequence[Literal],
    *,
    statistics: StoreStatistics,
    limit: int,
    scope: Scope | None,
    visibility: Visibility,
) -> LiteralLane:
    found = []
    budget = MAX_POSTINGS // max(1, min(len(literals), MAX_LITERALS))
    for literal in literals[:MAX_LITERALS]:
        if literal.is_plain_word and not _is_rare_word(snapshot, literal, statistics):
            continue
        for text in dict.fromkeys((literal.text, literal.core)):
            if not text:
                continue
            answer = snapshot.find_literal(text, limit=limit, max_postings=budget, scope=scope, visibility=visibility)
            found.append(FoundLiteral(text, literal.quoted, tuple(answer.hits), answer.truncated))
            if answer.hits:
                break
    truncated = len(literals) > MAX_LITERALS or any(literal.truncated for literal in found)
    return LiteralLane(tuple(literal for literal in found if literal.hits), truncated)


def _is_rare_word(snapshot: SearchSnapshot, literal: Literal, statistics: StoreStatistics) -> bool:
    counts = statistics.term_counts(snapshot, split_words(literal.text))
    return 0 < min(counts.values(), default=0) <= MAX_PLAIN_POSTINGS
