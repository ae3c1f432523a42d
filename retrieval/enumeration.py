"""The complete set of documents that hold given words: a set of documents for each term, then plain set algebra.

Terms meet in a document, not in a chunk: each is asked for by itself, and the sets are intersected and subtracted
here (S0-43). All reads see one state of the store. Synchronous: a server runs it in one hop on the connection's
thread.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msgspec.structs import replace

from domain.citations import Citation
from domain.keys import prefix_of
from domain.status import MatchStatus, NoMatchCause
from retrieval.chunk_documents import in_key_order
from retrieval.match_answer import MatchAnswer, MatchedDocument, MatchRequest
from retrieval.match_query import MatchQuery, MatchTerm, parse_match
from retrieval.path_filter import compile_glob
from retrieval.term_sets import (
    Limits,
    TermSet,
    read_term_sets,
    report_terms,
    stems_of,
    unqueried_report,
    without_unindexed,
)
from store.enumeration_port import EnumeratedDocument, EnumerationSnapshot
from store.port import StoreIdentity


class FoundDocuments(NamedTuple):
    """An enumeration before its documents are described: a million of them are a list of numbers."""

    answer: MatchAnswer  # without documents
    ids: Sequence[int] = ()  # of the documents that are to be listed, in their order
    required: Sequence[TermSet] = ()


def enumerate_documents(snapshot: EnumerationSnapshot, request: MatchRequest) -> MatchAnswer:
    """Raises UsageError (a query outside the language, a bad path pattern), and what the store raises."""
    found = find_documents(snapshot, request)
    return replace(found.answer, documents=describe_documents(snapshot, found, found.ids))


def find_documents(snapshot: EnumerationSnapshot, request: MatchRequest) -> FoundDocuments:
    """The same without reading the documents; `describe_documents` does, over the same snapshot."""
    identity = snapshot.identity()
    query = parse_match(request.query)
    if not snapshot.has_documents():
        dropped = (term for term in map(unqueried_report, query.terms) if term.not_queried is not None)
        return FoundDocuments(MatchAnswer(MatchStatus.CORPUS_EMPTY, identity, terms=tuple(dropped)))
    stems = stems_of(snapshot, query)
    query = without_unindexed(query, stems)
    total = snapshot.counts(visibility=request.visibility).documents
    if not query.required:
        reports = tuple(map(unqueried_report, query.terms))
        return FoundDocuments(MatchAnswer(MatchStatus.QUERY_EMPTY, identity, terms=reports, indexed_documents=total))
    limits = _limits(snapshot, request)
    sets = read_term_sets(snapshot, query, stems, limits, total)
    required = [sets[term] for term in query.required]
    together = _intersection([found.documents for found in required])
    kept = together.difference(*(sets[term].documents for term in query.excluded))
    matches = _matches(required, kept)
    if request.min_matches > 1:
        matches = {document: count for document, count in matches.items() if count >= request.min_matches}
    answer = MatchAnswer(
        MatchStatus.INDEX_INCOMPLETE if identity.complete_ns is None else MatchStatus.OK,
        identity,
        compiled=query.compiled,
        matched=len(matches),
        terms=report_terms(snapshot, query, sets, limits),
        indexed_documents=total,
        no_match_cause=None if matches else _cause(query, sets, together, kept),
        offset=request.offset,
    )
    return FoundDocuments(answer, _listed(snapshot, identity, matches, request), required)


def _limits(snapshot: EnumerationSnapshot, request: MatchRequest) -> Limits:
    only = None
    if request.root or request.path_glob:
        pattern = compile_glob(request.path_glob) if request.path_glob else None
        documents = snapshot.document_ids(prefix_of(request.root) if request.root else "")
        only = {number for number, key in documents if pattern is None or pattern.fullmatch(key)}
    return Limits(only, frozenset(snapshot.hidden_documents(request.visibility)))


def _intersection(sets: Sequence[AbstractSet[int]]) -> set[int]:
    """Smallest first: what is gone need not be looked for again."""
    smallest, *others = sorted(sets, key=len)
    return set(smallest).intersection(*others)


def _matches(required: Sequence[TermSet], documents: AbstractSet[int]) -> dict[int, int]:
    """Document -> its matches of all terms, in body and heading together."""
    first, *others = (found.matches for found in required)
    matches = {document: first[document] for document in documents}
    for other in others:
        for document in documents:
            matches[document] += other[document]
    return matches


def _listed(
    snapshot: EnumerationSnapshot, identity: StoreIdentity, matches: Mapping[int, int], request: MatchRequest
) -> list[int]:
    """The documents that are listed, in the order that was asked for."""
    limit = len(matches) if request.limit is None else min(request.offset + request.limit, len(matches))
    if request.offset >= limit:
        return []
    if request.sort == "path":
        return in_key_order(snapshot, identity, list(matches))[request.offset : limit]
    best = list(matches)
    if limit < len(best):
        # only those that can be listed are put in the order of their keys
        least = sorted(matches.values(), reverse=True)[limit - 1]
        best = [document for document in best if matches[document] >= least]
    ordered = sorted(in_key_order(snapshot, identity, best), key=matches.__getitem__, reverse=True)
    return ordered[request.offset : limit]


def describe_documents(
    snapshot: EnumerationSnapshot, found: FoundDocuments, ids: Sequence[int]
) -> tuple[MatchedDocument, ...]:
    """Those of the found documents, in the order of `ids`."""
    if not ids:
        return ()
    bodies = [term.postings.body for term in found.required]
    headings = [term.postings.heading for term in found.required]
    return tuple(_document(row, bodies, headings) for row in snapshot.enumerated_documents(ids))


def _document(
    row: EnumeratedDocument, bodies: Sequence[Sequence[int]], headings: Sequence[Sequence[int]]
) -> MatchedDocument:
    """Its chunks are one range of ids, in the order of their ordinals."""
    first, end = row.first_chunk_id, row.first_chunk_id + row.chunk_count
    in_body = [(bisect_left(ids, first), bisect_left(ids, end)) for ids in bodies]
    in_heading = [(bisect_left(ids, first), bisect_left(ids, end)) for ids in headings]
    spans = zip((*bodies, *headings), (*in_body, *in_heading), strict=True)
    ordinal = min(ids[start] for ids, (start, stop) in spans if start < stop) - first
    return MatchedDocument(
        path=row.key,
        citation=Citation(row.key, ordinal).format(),
        ordinal=ordinal,
        title=row.title,
        body_matches=sum(stop - start for start, stop in in_body),
        heading_matches=sum(stop - start for start, stop in in_heading),
        total_chunks=row.chunk_count,
    )


def _cause(
    query: MatchQuery, sets: Mapping[MatchTerm, TermSet], together: AbstractSet[int], kept: AbstractSet[int]
) -> NoMatchCause:
    if kept:
        return NoMatchCause.TOO_FEW
    if together:
        return NoMatchCause.EXCLUDED
    if any(not sets[term].documents for term in query.required):
        return NoMatchCause.NOWHERE
    return NoMatchCause.NEVER_TOGETHER
