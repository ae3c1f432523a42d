"""Which terms of a query are searched for: at most 40, and not those that change nothing or only ask."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

MAX_TERMS = 40  # a control: 5,000 OR-ed terms take 53 ms, 100,000 take 12 s
LEAST_OTHER_WORDS = 4  # fewer are key words: in `why vs how` and `can bus` every word is meant
_BEGINNING = 3  # words: `to what extent`, `in which case`
_INTERROGATIVES = frozenset(("what", "which", "who", "whom", "whose", "when", "where", "why", "how"))
_AUXILIARIES = """
    am is are was were be been being do does did doing done have has had having
    can could may might must shall should will would
"""
_PRONOUNS = "i me my we us our you your he him his she her it its they them their anyone anybody someone ll ve re"
_AUXILIARY = frozenset(_AUXILIARIES.split())
QUESTION_WORDS = _INTERROGATIVES | _AUXILIARY | frozenset(_PRONOUNS.split())


class TermChoice(NamedTuple):
    """Terms in the query's order, repeats kept."""

    searched: tuple[str, ...]
    common: tuple[str, ...] = ()  # in more than half of the chunks; left out while the others fill the lane
    over_limit: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return self.searched + self.common


def without_question_words(terms: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The terms of a question without the English words that only ask it, and those words, each once.

    BM25 takes a word for telling that is rare in the texts, and in texts that state something "what", "has anyone" and
    "can" are rare: without them nDCG@10 on Cranfield is 0.005 of 0.38 higher. In what is no question, such words are
    found where they were written, so all terms are kept; and also where fewer than `LEAST_OTHER_WORDS` others stand
    beside them. A word in capitals (`IT`, `WHO`) is a name; a capital at the very beginning is the sentence's.
    """
    if len(terms) <= LEAST_OTHER_WORDS:
        return tuple(terms), ()
    first = terms[0].lower() if terms[0].istitle() else terms[0]
    if first not in _AUXILIARY and _INTERROGATIVES.isdisjoint((first, *terms[1:_BEGINNING])):
        return tuple(terms), ()
    kept = tuple(term for term in terms[1:] if term not in QUESTION_WORDS)
    left_out = [term for term in terms[1:] if term in QUESTION_WORDS]
    if first in QUESTION_WORDS:
        left_out.insert(0, terms[0])
    else:
        kept = (terms[0], *kept)
    return (kept, tuple(dict.fromkeys(left_out))) if len(kept) >= LEAST_OTHER_WORDS else (tuple(terms), ())


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
