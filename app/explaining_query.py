"""`knowledge explain PATH --query Q`: where a query finds one document, and why it does not stand higher."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from domain.status import DropReason, Tier
from retrieval.answer import SearchAnswer, SearchHit, SearchRequest
from retrieval.lexical import words_lane
from retrieval.literal import literal_lane
from retrieval.query_text import Query, parse_query
from retrieval.query_vector import Meaning, embed_query, plan_meaning
from retrieval.search import LANE_LIMIT, LEAST_PART_CHARS, search
from retrieval.statistics import statistics_of
from retrieval.vector import MeaningSnapshot, QueryVector, vector_lane
from store.port import Scope, Visibility
from store.sqlite import SqliteStore

SHOWN_BEYOND = 100  # hits that are asked for where the usual number does not hold the document
MOST_VECTORS = 5_000  # texts whose order by nearness is made
_EVERYTHING = Visibility.everything()
_EVERY_CHUNK = Scope(((0, 2**62),))


class Cause(StrEnum):
    """Why the document stands where it does. The sentences are made in app.present_explain."""

    NOT_INDEXED = "not_indexed"
    QUERY_EMPTY = "query_empty"
    HIT = "hit"
    COPY = "copy"  # its text is another hit's, which tells of it
    BELOW_TOP_K = "below_top_k"
    BELOW_OTHERS = "below_others"  # a lane names it, and a hundred hits stand above it
    BEYOND_LANES = "beyond_lanes"  # found, but in no lane among those that count
    LEFT_OUT_TERMS = "left_out_terms"  # holds only words that were not searched for
    NO_TERM = "no_term"


class TermTrace(NamedTuple):
    """A word of the query. `chunks` of the index and `in_document` of the document hold it, in any form."""

    term: str
    stem: str
    chunks: int
    in_document: int
    dropped: DropReason | None = None


class LaneTrace(NamedTuple):
    """The document's best place in a lane, from 1 (None: the lane does not hold it), and how long the lane is.

    `is_cut`: not all of the lane was made. `similarity` is that of the document's nearest chunk.
    """

    rank: int | None
    length: int
    is_cut: bool = False
    similarity: float | None = None


class QueryTrace(NamedTuple):
    query: str
    tier: Tier
    cause: Cause
    top_k: int
    rank: int | None = None  # among the hits, from 1
    citation: str = ""  # of the hit that is the document's, or a copy of it
    terms: tuple[TermTrace, ...] = ()
    lanes: dict[str, LaneTrace] = {}  # noqa: RUF012 - a default of a named tuple, never changed


class _Asked(NamedTuple):
    snapshot: MeaningSnapshot
    request: SearchRequest
    query: Query
    meaning: QueryVector
    key: str
    inside: Scope  # the document's chunks


def explain_query(store: SqliteStore, key: str, request: SearchRequest, meaning: Meaning | None) -> QueryTrace:
    """`key` "" or of no document: only the words are looked up. Raises what a search raises."""
    wanted = meaning.wanted if meaning is not None else None
    with store.snapshot() as snapshot:
        plan = plan_meaning(snapshot, request, wanted)
    vector = embed_query(plan, request, meaning)
    with store.snapshot() as snapshot:
        query = parse_query(request.query)
        ids = [document_id for document_id, _ in snapshot.document_ids(key)] if key else []
        inside = (snapshot.scope_of(ids) or _EVERY_CHUNK) if ids else Scope(())
        asked = _Asked(snapshot, request, query, vector, key, inside)
        return _trace(asked, is_indexed=bool(ids))


def _trace(asked: _Asked, *, is_indexed: bool) -> QueryTrace:
    found = search(asked.snapshot, asked.request, asked.meaning)
    top_k = asked.request.effective_top_k
    trace = QueryTrace(
        asked.request.query, found.tier, Cause.NOT_INDEXED, top_k, terms=_terms(asked, found, is_indexed=is_indexed)
    )
    if not is_indexed:
        return trace
    if not (asked.query.terms or asked.query.short_terms or asked.query.substrings):
        return trace._replace(cause=Cause.QUERY_EMPTY)
    lanes = _lanes(asked)
    hit = _hit_of(found.results, asked.key)
    if hit is None:
        more = search(asked.snapshot, _deeper(asked.request), asked.meaning)
        hit = _hit_of(more.results, asked.key)
    rank = hit.rank if hit is not None else None
    citation = hit.citation if hit is not None else ""
    cause = _cause(asked, hit, lanes, trace.terms)
    return trace._replace(cause=cause, rank=rank, citation=citation, lanes=lanes)


def _deeper(request: SearchRequest) -> SearchRequest:
    from msgspec.structs import replace

    return replace(request, depth=SHOWN_BEYOND)


def _hit_of(hits: Sequence[SearchHit], key: str) -> SearchHit | None:
    """The first hit that is the document's, or whose text is."""
    copy_of = f"{key}#"
    for hit in hits:
        if hit.path == key or any(other.startswith(copy_of) for other in hit.also_in):
            return hit
    return None


def _cause(asked: _Asked, hit: SearchHit | None, lanes: dict[str, LaneTrace], terms: Sequence[TermTrace]) -> Cause:
    if hit is not None:
        if hit.rank > asked.request.effective_top_k:
            return Cause.BELOW_TOP_K
        return Cause.HIT if hit.path == asked.key else Cause.COPY
    ranks = [lane.rank for lane in lanes.values() if lane.rank is not None]
    if ranks:
        return Cause.BELOW_OTHERS if min(ranks) <= LANE_LIMIT else Cause.BEYOND_LANES
    return Cause.LEFT_OUT_TERMS if any(term.in_document and term.dropped for term in terms) else Cause.NO_TERM


def _terms(asked: _Asked, found: SearchAnswer, *, is_indexed: bool) -> tuple[TermTrace, ...]:
    """Every word of the query, each once, those that were not searched for too."""
    snapshot = asked.snapshot
    dropped = {entry.term: entry.reason for entry in found.dropped_terms}
    told = dict.fromkeys((*asked.query.terms, *asked.query.short_terms, *dropped))
    terms = [term for term in told if dropped.get(term) is not DropReason.PUNCTUATION]
    counts = statistics_of(snapshot.identity()).term_counts(snapshot, terms)
    stems = snapshot.stems(terms)
    limit = snapshot.chunk_total()
    traces = []
    for term in terms:
        inside: Sequence[int] = ()
        if is_indexed and counts[term] > 0:
            inside = snapshot.rank_words([term], limit=limit, scope=asked.inside, visibility=_EVERYTHING)
        traces.append(TermTrace(term, " ".join(stems[term]), max(0, counts[term]), len(inside), dropped.get(term)))
    return tuple(traces)


def _lanes(asked: _Asked) -> dict[str, LaneTrace]:
    """The lanes of a search, each made as long as it gets."""
    lanes: dict[str, LaneTrace] = {}
    if asked.meaning.vector:
        lanes["vector"] = _vector_lane(asked)
    if asked.meaning.vector and asked.request.mode == "vector":
        return lanes
    return _word_lanes(asked) | lanes


def _word_lanes(asked: _Asked) -> dict[str, LaneTrace]:
    snapshot, query = asked.snapshot, asked.query
    statistics, limit = statistics_of(snapshot.identity()), snapshot.chunk_total()
    # the words are chosen as a search chooses them, for its short lane
    first = words_lane(
        snapshot,
        query.terms or query.short_terms,
        statistics=statistics,
        limit=LANE_LIMIT,
        scope=None,
        visibility=_EVERYTHING,
    )
    left_out = {entry.term for entry in first.dropped}
    searched = [term for term in first.terms if term not in left_out]
    ranked = snapshot.rank_words(searched, limit=limit, scope=None, visibility=_EVERYTHING)
    lanes = {"words": _lane(asked, ranked)}
    if query.literals:
        found = literal_lane(snapshot, query.literals, first=first.ids, limit=limit, scope=None, visibility=_EVERYTHING)
        lanes["literal"] = _lane(asked, found.ids, is_cut=found.truncated)
    if pieces := query.substrings or _parts_of_words(asked):
        relax = bool(query.substrings)
        found_pieces = snapshot.find_substrings(pieces, relax=relax, limit=limit, scope=None, visibility=_EVERYTHING)
        lanes["substring"] = _lane(asked, found_pieces.ids, is_cut=found_pieces.truncated)
    return lanes


def _parts_of_words(asked: _Asked) -> tuple[str, ...]:
    if asked.snapshot.identity().substring_index != "on":
        return ()
    return tuple(dict.fromkeys(term for term in asked.query.terms if len(term) >= LEAST_PART_CHARS))


def _lane(asked: _Asked, ids: Sequence[int], *, is_cut: bool = False) -> LaneTrace:
    places = (place for place, chunk in enumerate(ids, start=1) if _is_inside(asked, chunk))
    return LaneTrace(next(places, None), len(ids), is_cut)


def _is_inside(asked: _Asked, chunk: int) -> bool:
    return any(first <= chunk <= last for first, last in asked.inside.ranges)


def _vector_lane(asked: _Asked) -> LaneTrace:
    """The order of the nearest texts; and how near the document is, be it among them or not."""

    def nearest(scope: Scope | None, limit: int) -> dict[int, tuple[int, float]]:
        lane = vector_lane(
            asked.snapshot,
            asked.meaning.vector,
            limit=limit,
            min_similarity=-1.0,
            scope=scope,
            visibility=_EVERYTHING,
        )
        return {chunk: (rank, lane.similarities[chunk]) for chunk, rank in lane.ranks.items()}

    all_near = nearest(None, MOST_VECTORS)
    inside = nearest(asked.inside, 1)
    ranks = [rank for chunk, (rank, _) in all_near.items() if _is_inside(asked, chunk)]
    similarity = next((near for _, near in inside.values()), None)
    longest = max((rank for rank, _ in all_near.values()), default=0)
    return LaneTrace(min(ranks, default=None), longest, longest >= MOST_VECTORS, similarity)
