"""The words lane: free text as OR-ed terms, ranked by BM25 on the stemmed table."""

from collections.abc import Sequence
from typing import NamedTuple

from domain.status import DropReason
from retrieval.answer import DroppedTerm
from retrieval.statistics import StoreStatistics
from retrieval.terms import MAX_TERMS, choose_terms
from store.port import Scope, SearchSnapshot, Visibility


class WordsLane(NamedTuple):
    """`ids` best first; `terms` are those searched for; `missing` are in no chunk at all."""

    ids: tuple[int, ...] = ()
    terms: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    dropped: tuple[DroppedTerm, ...] = ()


def words_lane(
    snapshot: SearchSnapshot,
    terms: Sequence[str],
    *,
    statistics: StoreStatistics,
    limit: int,
    scope: Scope | None,
    visibility: Visibility,
) -> WordsLane:
    if not terms:
        return WordsLane()
    if len(set(terms)) == 1:  # nothing to choose from: how common it is matters only where it is not found
        terms = terms[:MAX_TERMS]
        ids = snapshot.rank_words(terms, limit=limit, scope=scope, visibility=visibility)
        if ids:
            return WordsLane(tuple(ids), tuple(terms))
    counts = statistics.term_counts(snapshot, terms)
    indexed = [term for term in terms if counts[term] >= 0]
    choice = choose_terms(indexed, counts, statistics.chunk_total(snapshot), limit)
    searched, common = choice.searched, choice.common
    ranked = snapshot.rank_words(searched, limit=limit, scope=scope, visibility=visibility)
    if common and len(ranked) < limit:  # a scope holds fewer of the rarer ones than the whole
        searched, common = choice.all, ()
        ranked = snapshot.rank_words(searched, limit=limit, scope=scope, visibility=visibility)
    dropped = [
        *(DroppedTerm(term, DropReason.NOT_INDEXED) for term in dict.fromkeys(terms) if counts[term] < 0),
        *(DroppedTerm(term, DropReason.TOO_COMMON) for term in common),
        *(DroppedTerm(term, DropReason.OVER_LIMIT) for term in choice.over_limit),
    ]
    return WordsLane(
        ids=tuple(ranked),
        terms=(*searched, *common),
        missing=tuple(term for term in dict.fromkeys(indexed) if counts[term] == 0),
        dropped=tuple(dropped),
    )
