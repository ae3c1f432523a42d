"""The literal lane: tokens with punctuation and quoted text, wherever they stand in a chunk."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from retrieval.query_text import MAX_LITERALS, Literal, LiteralKind
from store.port import LiteralHit, Scope, SearchSnapshot, Visibility

MAX_POSTINGS = 50_000  # for all literals of a query together
MAX_COMPOUND_POSTINGS = 1_000
RARE_HITS = 20  # a literal that so few chunks hold, or fewer, is rare: it names something


class FoundLiteral(NamedTuple):
    """A literal as it was found: as written, or without what a sentence puts around it."""

    text: str
    kind: LiteralKind
    hits: tuple[LiteralHit, ...]  # exact case first, then best first
    truncated: bool

    @property
    def ids(self) -> list[int]:
        return [hit.id for hit in self.hits]

    @property
    def is_rare(self) -> bool:
        return not self.truncated and 0 < len(self.hits) <= RARE_HITS


class LiteralLane(NamedTuple):
    """What all literals of a query found; `ids` is the lane's order."""

    found: tuple[FoundLiteral, ...] = ()
    truncated: bool = False
    has_missing: bool = False  # a quoted text or an identifier is nowhere as written

    def hits_of(self, kind: LiteralKind, *, rare: bool = False) -> list[list[int]]:
        """Ids of the hits of each literal of a kind; with `rare`, only of those that few chunks hold."""
        return [literal.ids for literal in self.found if literal.kind is kind and (literal.is_rare or not rare)]

    @property
    def ids(self) -> list[int]:
        """The lane's order, of all kinds."""
        return self._ordered(tuple(LiteralKind))

    @property
    def fused_ids(self) -> list[int]:
        """What counts in the fusion. A compound does not: its words do, and on Cranfield's questions ("re-entry",
        "two-dimensional") counting it again took 0.02 of 0.38 nDCG@10."""
        return self._ordered((LiteralKind.QUOTED, LiteralKind.IDENTIFIER))

    def _ordered(self, kinds: Collection[LiteralKind]) -> list[int]:
        """Chunks with more literals first, then those with more of exact case, then by their best place."""
        held: dict[int, list[int]] = {}
        for literal in self.found:
            if literal.kind not in kinds:
                continue
            for place, hit in enumerate(literal.hits):
                count, exact, best = held.get(hit.id, (0, 0, place))
                held[hit.id] = [count + 1, exact + hit.exact, min(best, place)]
        return sorted(held, key=lambda chunk_id: (-held[chunk_id][0], -held[chunk_id][1], held[chunk_id][2], chunk_id))


def literal_lane(
    snapshot: SearchSnapshot,
    literals: Sequence[Literal],
    *,
    first: Sequence[int],
    limit: int,
    scope: Scope | None,
    visibility: Visibility,
) -> LiteralLane:
    """`first` is the order of the words lane: of the chunks that hold a literal, these stand first. A literal that
    many chunks hold says nothing of their order, and fusion would forget what the words say."""
    found: list[FoundLiteral] = []
    wanted = [literal for literal in literals if literal.kind is not LiteralKind.WORD]
    budget = MAX_POSTINGS // max(1, min(len(wanted), MAX_LITERALS))
    for literal in wanted[:MAX_LITERALS]:
        for text in dict.fromkeys((literal.text, literal.core)):
            answer = snapshot.find_literal(
                text,
                first=first,
                limit=limit,
                max_postings=_postings(literal, budget),
                scope=scope,
                visibility=visibility,
            )
            found.append(FoundLiteral(text, literal.kind, tuple(answer.hits), answer.truncated))
            if answer.hits:
                break
    named = {literal.core for literal in wanted[:MAX_LITERALS] if literal.kind is not LiteralKind.COMPOUND}
    settled = {literal.core for literal in wanted if _is_settled(literal, found)}
    cut = any(literal.truncated for literal in found if literal.kind is not LiteralKind.COMPOUND)
    return LiteralLane(
        tuple(literal for literal in found if literal.hits), cut or len(wanted) > MAX_LITERALS, not named <= settled
    )


def _is_settled(literal: Literal, found: Sequence[FoundLiteral]) -> bool:
    """Whether a literal was found, or nobody can say that it is nowhere."""
    tried = [answer for answer in found if answer.text in (literal.text, literal.core)]
    return any(answer.hits or answer.truncated for answer in tried)


def _postings(literal: Literal, budget: int) -> int:
    """A compound counts only where it is rare."""
    return min(budget, MAX_COMPOUND_POSTINGS) if literal.kind is LiteralKind.COMPOUND else budget
