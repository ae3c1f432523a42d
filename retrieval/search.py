"""One search: the query's lanes over a snapshot, fused, hydrated and cut to the count that was asked for.

Synchronous: a server runs it in one hop on the connection's thread.
"""

from collections.abc import Sequence
from typing import NamedTuple

from domain.status import DropReason, SearchNote, SearchStatus, TierKind
from retrieval.answer import DroppedTerm, Mode, SearchAnswer, SearchHit, SearchRequest, VectorFacts
from retrieval.did_you_mean import did_you_mean
from retrieval.fusion import LaneRanks, arrange, fuse, put_behind, rank_lanes
from retrieval.hits import Candidates, make_hits
from retrieval.lexical import WordsLane, words_lane
from retrieval.literal import LiteralLane, literal_lane
from retrieval.matching import make_matcher
from retrieval.path_filter import resolve_scope
from retrieval.query_text import LiteralKind, Query, parse_query, split_words
from retrieval.statistics import StoreStatistics, statistics_of
from retrieval.vector import WORDS_ALONE, MeaningSnapshot, QueryVector, VectorLane, vector_lane
from store.port import Scope, StoreIdentity, SubstringFind

LANE_LIMIT = 50  # candidates a lane (S0-34)
LEAST_PART_CHARS = 3  # a trigram
WIDER = 8  # where copies and chunks without a body leave too few hits
MAX_LANE_LIMIT = LANE_LIMIT * WIDER * WIDER


class _Question(NamedTuple):
    """What every lane is given."""

    snapshot: MeaningSnapshot
    request: SearchRequest
    query: Query
    meaning: QueryVector
    statistics: StoreStatistics
    scope: Scope | None
    parts_of_words: tuple[str, ...]  # with `substring_index: on`, the terms as parts of longer words

    @property
    def mode(self) -> Mode:
        """What ranks."""
        if not self.meaning.vector:
            return "lexical"
        return "vector" if self.meaning.tier.kind is TierKind.VECTOR else "hybrid"


class _Found(NamedTuple):
    """What the lanes found."""

    words: WordsLane
    literal: LiteralLane
    substring: SubstringFind
    vector: VectorLane
    candidates: Candidates
    is_full: bool  # a lane holds as many as it may: there may be more

    @property
    def holds_words(self) -> bool:
        """Whether a lexical lane has found anything."""
        return bool(self.words.ids or self.literal.ids or self.substring.ids)


def search(snapshot: MeaningSnapshot, request: SearchRequest, meaning: QueryVector = WORDS_ALONE) -> SearchAnswer:
    """By words, and by the vector of the query where `meaning` has one (see retrieval.query_vector).

    Raises UsageError (a query that is no Unicode, a bad path pattern), EmbeddingsChangedError for a vector of another
    dimension than the stored ones, and what the store raises.
    """
    query = parse_query(request.query)
    identity = snapshot.identity()
    if not (query.terms or query.short_terms or query.substrings):
        return SearchAnswer(
            SearchStatus.QUERY_EMPTY,
            identity,
            dropped_terms=query.dropped,
            notes=_notes(query, None, ()),
            tier=meaning.tier,
            vectors=_facts(meaning, None),
        )
    statistics = statistics_of(identity)
    scope = resolve_scope(snapshot, statistics, request.root, request.path_glob)
    parts = _parts_of_words(query) if identity.substring_index == "on" else ()
    question = _Question(snapshot, request, query, meaning, statistics, scope, parts)
    found = _find(question)
    literals = [literal.text for literal in found.literal.found]
    matcher = make_matcher(snapshot, found.words.terms, literals, query.substrings or parts)
    results = make_hits(snapshot, request, found.candidates, matcher)
    missing = [term for term in found.words.missing if term not in query.substrings]
    if missing and not snapshot.has_documents():
        missing = []  # of an index without documents "it is nowhere" says nothing of the word
    dropped = _dropped(query, found, question.mode)
    return SearchAnswer(
        status=_status(question, identity, bool(results), dropped),
        identity=identity,
        results=results,
        dropped_terms=dropped,
        did_you_mean=did_you_mean(snapshot, missing, request.visibility) if missing else (),
        notes=_notes(query, found, results),
        tier=meaning.tier,
        mode=question.mode,
        vectors=_facts(meaning, found.vector),
    )


def _parts_of_words(query: Query) -> tuple[str, ...]:
    """Terms that the trigram table can be asked for (R1, `substring_index: on`)."""
    return tuple(dict.fromkeys(term for term in query.terms if len(term) >= LEAST_PART_CHARS))


def _find(question: _Question) -> _Found:
    """Run the lanes; again with more candidates while too few different bodies are among them."""
    limit = LANE_LIMIT
    while True:
        found = _run_lanes(question, question.query.terms, limit)
        if not found.holds_words and question.query.short_terms and question.mode != "vector":
            return _run_lanes(question, question.query.short_terms, limit)
        if not found.is_full or limit >= MAX_LANE_LIMIT or _has_enough(found, question.request):
            return found
        limit *= WIDER


def _run_lanes(question: _Question, terms: Sequence[str], limit: int) -> _Found:
    vector = VectorLane()
    if question.meaning.vector:
        vector = vector_lane(
            question.snapshot,
            question.meaning.vector,
            limit=limit,
            min_similarity=question.request.min_similarity,
            scope=question.scope,
            visibility=question.request.visibility,
        )
    if question.mode == "vector":
        # the words are looked for in what was found, and rank nothing
        words = WordsLane(terms=tuple(terms))
        return _fused(question, words, LiteralLane(), SubstringFind(()), vector, limit)
    snapshot, query, scope = question.snapshot, question.query, question.scope
    visibility, statistics = question.request.visibility, question.statistics
    words = words_lane(snapshot, terms, statistics=statistics, limit=limit, scope=scope, visibility=visibility)
    literal = LiteralLane()
    if query.literals:
        literal = literal_lane(
            snapshot,
            query.literals,
            first=words.ids,
            limit=limit,
            scope=scope,
            visibility=visibility,
        )
    substring = SubstringFind(())
    if pieces := query.substrings or question.parts_of_words:
        # parts of ordinary words are asked for whole or not at all: the words lane has the rest
        relax = bool(query.substrings)
        substring = snapshot.find_substrings(pieces, relax=relax, limit=limit, scope=scope, visibility=visibility)
    return _fused(question, words, literal, substring, vector, limit)


def _fused(
    question: _Question,
    words: WordsLane,
    literal: LiteralLane,
    substring: SubstringFind,
    vector: VectorLane,
    limit: int,
) -> _Found:
    """The lanes as one order of candidates."""
    lanes = rank_lanes({"words": words.ids, "literal": literal.ids, "substring": substring.ids})
    ranks: LaneRanks = {**lanes, "vector": vector.ranks} if vector.ranks else lanes
    fused = fuse({**ranks, **rank_lanes({"literal": literal.fused_ids})})
    near = literal.hits_of(LiteralKind.COMPOUND, rare=True)
    put_behind(fused, [chunk_id for ids in near for chunk_id in ids], limit)
    sketches = {sketch.id: sketch for sketch in question.snapshot.sketches(list(fused))}
    order = arrange(
        list(sketches),
        quoted=[dict(found.hits) for found in literal.found if found.kind is LiteralKind.QUOTED],
        rare=literal.hits_of(LiteralKind.IDENTIFIER, rare=True),
        near=near,
        without_body=frozenset(sketch.id for sketch in sketches.values() if not sketch.has_body),
    )
    candidates = Candidates(tuple(sketches[chunk_id] for chunk_id in order), ranks, fused, vector.similarities)
    is_full = any(len(lane) >= limit for lane in ranks.values())
    return _Found(words, literal, substring, vector, candidates, is_full)


def _has_enough(found: _Found, request: SearchRequest) -> bool:
    bodies = [chunk.text_hash for chunk in found.candidates.ordered if chunk.has_body]
    return len(bodies if request.all_chunks else set(bodies)) >= request.effective_top_k


def _dropped(query: Query, found: _Found, mode: Mode) -> tuple[DroppedTerm, ...]:
    """What was not searched for. A single character that a found literal holds was; a vector is of the whole query."""
    if mode == "vector":
        return ()
    covered = {word for literal in found.literal.found for word in split_words(literal.text)}
    covered.update(found.words.terms if found.holds_words else ())
    short = [DroppedTerm(term, DropReason.TOO_SHORT) for term in query.short_terms if term not in covered]
    return (*query.dropped, *short, *found.words.dropped)


def _status(
    question: _Question, identity: StoreIdentity, has_results: bool, dropped: Sequence[DroppedTerm]
) -> SearchStatus:
    query = question.query
    if not has_results:
        unsearched = {entry.term for entry in dropped}
        if not query.substrings and unsearched.issuperset((*query.terms, *query.short_terms)):
            return SearchStatus.QUERY_EMPTY
    if identity.complete_ns is None:
        return SearchStatus.INDEX_INCOMPLETE
    if not has_results and not question.snapshot.has_documents():
        return SearchStatus.INDEX_EMPTY
    return SearchStatus.OK


def _facts(meaning: QueryVector, lane: VectorLane | None) -> VectorFacts:
    status = meaning.status
    return VectorFacts(
        method=lane.method if lane is not None else "none",
        pending_documents=status.pending_documents,
        pending_chunks=status.pending_chunks,
        building=status.building.identity.model if status.building is not None else "",
        dropped_below_similarity=lane.dropped if lane is not None else 0,
    )


def _notes(query: Query, found: _Found | None, results: Sequence[SearchHit]) -> tuple[SearchNote, ...]:
    notes = []
    if results and not any(map(_shares_words, results)):
        notes.append(SearchNote.NEAREST_BY_MEANING)
    if query.truncated:
        notes.append(SearchNote.QUERY_TRUNCATED)
    if found is not None and found.literal.truncated:
        notes.append(SearchNote.LITERAL_TRUNCATED)
    if found is not None and found.literal.has_missing:
        notes.append(SearchNote.LITERAL_NOT_FOUND)
    if found is not None and found.substring.truncated:
        notes.append(SearchNote.SUBSTRING_TRUNCATED)
    if found is not None and found.substring.relaxed:
        notes.append(SearchNote.SUBSTRING_RELAXED)
    return tuple(notes)


def _shares_words(hit: SearchHit) -> bool:
    lanes = hit.lanes
    return bool(hit.matched_in) or any(rank is not None for rank in (lanes.words, lanes.literal, lanes.substring))
