"""Each term of an enumeration by itself: where it stands, which documents hold it, and what is told of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from domain.errors import IntegrityError
from domain.markdown.scripts import is_spaceless
from domain.status import DropReason
from retrieval.chunk_documents import DocumentsOf, documents_lookup
from retrieval.match_answer import TermReading, TermReport
from retrieval.match_query import MatchQuery, MatchTerm
from retrieval.related_forms import related_forms
from store.enumeration_port import Column, EnumerationSnapshot
from store.port import StoreIdentity

MAX_STEMMED_CHARS = 200  # of a longer text the store stems the beginning
MAX_TOLD_CHARS = 40
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "": ("body", "heading_path"),
    "body": ("body",),
    "heading": ("heading_path",),
}


class Limits(NamedTuple):
    """Which documents may be given: `only` None is all but the hidden ones."""

    only: AbstractSet[int] | None
    hidden: AbstractSet[int]

    def within(self, documents: AbstractSet[int]) -> AbstractSet[int]:
        kept = documents if self.only is None else documents & self.only
        return kept - self.hidden if self.hidden else kept


class Postings(NamedTuple):
    """The chunks of a term, ascending; no `as_written` where the index cannot tell."""

    term: MatchTerm
    stem: tuple[str, ...]
    reading: TermReading
    body: Sequence[int]
    heading: Sequence[int]
    as_written: Sequence[int] | None


class TermSet(NamedTuple):
    """The documents of a term that may be given, and the matches of each. `matches` may hold other documents too."""

    postings: Postings
    documents: AbstractSet[int]
    matches: Mapping[int, int]
    as_written: int | None  # documents


def stems_of(snapshot: EnumerationSnapshot, query: MatchQuery) -> dict[str, tuple[str, ...]]:
    """Text of a term -> the stems of its words, in order; () where the index sees only separators.

    The index is asked where a word ends: of letters newer than its tables, or than ours, both may think otherwise.
    """
    pieces = {
        term.text: [term.text] if len(term.text) <= MAX_STEMMED_CHARS else term.text.split() for term in query.terms
    }
    stems = snapshot.stems([piece for run in pieces.values() for piece in run])
    return {text: tuple(stem for piece in run for stem in stems[piece]) for text, run in pieces.items()}


def without_unindexed(query: MatchQuery, stems: Mapping[str, tuple[str, ...]]) -> MatchQuery:
    """Terms of letters that the full-text tables take for separators are not queried."""
    return MatchQuery(tuple(_queried(term, stems) for term in query.terms))


def _queried(term: MatchTerm, stems: Mapping[str, tuple[str, ...]]) -> MatchTerm:
    if term.not_queried is not None or stems[term.text]:
        return term
    return term._replace(not_queried=DropReason.NOT_INDEXED)


def read_term_sets(
    snapshot: EnumerationSnapshot,
    query: MatchQuery,
    stems: Mapping[str, tuple[str, ...]],
    limits: Limits,
    document_total: int,
) -> dict[MatchTerm, TermSet]:
    """A set for each term that is queried."""
    identity = snapshot.identity()
    read = [_read(snapshot, identity, term, stems[term.text]) for term in (*query.required, *query.excluded)]
    lists = [ids for found in read for ids in (found.body, found.heading, found.as_written or ())]
    documents_of = documents_lookup(snapshot, identity, lists, document_total)
    return {found.term: _set_of(found, documents_of, limits) for found in read}


def _read(snapshot: EnumerationSnapshot, identity: StoreIdentity, term: MatchTerm, stem: tuple[str, ...]) -> Postings:
    reading = TermReading.WORDS
    if is_spaceless(term.text):
        reading = TermReading.WHOLE_RUN if identity.substring_index == "off" else TermReading.PART
    chunks_with = snapshot.chunks_with_part if reading is TermReading.PART else snapshot.chunks_with
    columns = _COLUMNS[term.field]
    is_word = reading is not TermReading.PART and len(stem) == 1 and len(term.text) <= MAX_STEMMED_CHARS
    word = snapshot.folded(term.text) if is_word else ""
    return Postings(
        term,
        stem,
        reading,
        body=chunks_with(term.text, "body") if "body" in columns else (),
        heading=chunks_with(term.text, "heading_path") if "heading_path" in columns else (),
        as_written=snapshot.chunks_as_written(word, columns) if word else None,
    )


def _set_of(found: Postings, documents_of: DocumentsOf, limits: Limits) -> TermSet:
    """Raises IntegrityError where the full text knows a chunk that the index does not have."""
    as_written = None
    try:
        matches = Counter(documents_of(found.body))
        matches.update(documents_of(found.heading))
        if found.as_written is not None:
            as_written = len(limits.within(set(documents_of(found.as_written))))
    except LookupError as error:
        raise IntegrityError(
            f"the full text holds {found.term.text[:MAX_TOLD_CHARS]!r} for a chunk that the index does not have",
            hint="see `knowledge verify`; `knowledge rebuild` makes the full text again",
        ) from error
    return TermSet(found, limits.within(matches.keys()), matches, as_written)


def report_terms(
    snapshot: EnumerationSnapshot, query: MatchQuery, sets: Mapping[MatchTerm, TermSet], limits: Limits
) -> tuple[TermReport, ...]:
    """Every term of the query in its order, those that were not queried among them."""
    return tuple(
        _report(snapshot, sets[term], limits) if term in sets else unqueried_report(term) for term in query.terms
    )


def unqueried_report(term: MatchTerm) -> TermReport:
    return TermReport(term.surface, term.field, term.excluded, term.not_queried)


def _report(snapshot: EnumerationSnapshot, found: TermSet, limits: Limits) -> TermReport:
    term, stem, reading = found.postings.term, found.postings.stem, found.postings.reading
    # the vocabulary is of all documents: of the hidden ones not even a word is to be told
    has_forms = reading is TermReading.WORDS and len(stem) == 1 and not limits.hidden
    forms = related_forms(snapshot, snapshot.folded(term.text), stem[0]) if has_forms else ()
    only_in_names = 0
    if not found.documents and not term.excluded and not term.field:
        elsewhere = snapshot.chunks_with(term.text, "names")
        only_in_names = len(limits.within(set(snapshot.documents_of(elsewhere).values())))
    return TermReport(
        surface=term.surface,
        field=term.field,
        excluded=term.excluded,
        stem=" ".join(stem),
        documents=len(found.documents),
        as_written=found.as_written,
        related_forms=forms,
        reading=reading,
        only_in_names=only_in_names,
    )
