"""Which terms of a query are searched for: at most 40, and not those that can change nothing."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

MAX_TERMS = 40  # a control: 5,000 OR-ed terms take 53 ms, 100,000 take 12 s


class TermChoice(NamedTuple):
    """Terms in the query's order, repeats kept."""

    searched: tuple[str, ...]
    common: tuple[str, ...] = ()  # in more than half of the chunks; left out while the others fill the lane
    over_limit: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return self.searched + self.common


def choose_terms(terms: Sequence[str], counts: Mapping[str, int], total: int, wanted: int) -> TermChoice:
    """The 40 rarest terms (those that are nowhere last), without the common ones where that loses nothing.

    BM25 gives a term that is in more than half of the chunks no weight (an idf of 0.000001), so it can be
    left out where the rarer ones are in `wanted` chunks or more between them.
    """
    if len(terms) <= MAX_TERMS and all(0 < counts[term] * 2 <= total for term in terms):
        return TermChoice(tuple(terms))
    places = sorted(range(len(terms)), key=lambda place: _rarity(counts[terms[place]], place))
    kept = sorted(places[:MAX_TERMS])
    over_limit = tuple(dict.fromkeys(terms[place] for place in sorted(places[MAX_TERMS:])))
    chosen = [terms[place] for place in kept]
    common = [term for term in chosen if counts[term] * 2 > total]
    rarer = [term for term in chosen if 0 < counts[term] * 2 <= total]
    if not common or sum(counts[term] for term in set(rarer)) < wanted:
        searched = rarer + common if rarer or common else chosen
        return TermChoice(_in_order(chosen, searched), over_limit=_without(over_limit, searched))
    return TermChoice(tuple(rarer), tuple(dict.fromkeys(common)), _without(over_limit, chosen))


def _rarity(count: int, place: int) -> tuple[bool, int, int]:
    return count == 0, count, place


def _in_order(terms: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    wanted = set(kept)
    return tuple(term for term in terms if term in wanted)


def _without(terms: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    return tuple(term for term in terms if term not in set(kept))
