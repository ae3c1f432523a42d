"""What an enumeration is asked, and what it answers: frozen values, one for every field that a surface shows."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct, field

from domain.status import DropReason, MatchStatus, NoMatchCause
from retrieval.match_query import Field
from store.port import StoreIdentity, Visibility

DEFAULT_LIMIT = 20
MatchSort = Literal["matches", "path"]


class TermReading(StrEnum):
    """How a term was looked for."""

    WORDS = "words"  # whole words in any form, side by side where they are several
    PART = "part"  # written without blanks: anywhere in the text, letter by letter
    WHOLE_RUN = "whole_run"  # the same, but the index has no table for it: only where nothing is written around it


class MatchRequest(Struct, frozen=True):
    """An enumeration. `limit` and `offset` are 0 or more, `min_matches` 1 or more: nothing here brings them there."""

    query: str
    limit: int | None = DEFAULT_LIMIT  # documents that are listed; None = all, 0 = none; they are counted in any case
    sort: MatchSort = "matches"  # body and heading matches together, most first, then by path; or by path
    min_matches: int = 1  # documents with fewer, body and heading together, do not count as matched
    root: str = ""  # a root's name; "" = all
    path_glob: str = ""  # "" = all; see retrieval.path_filter
    visibility: Visibility = field(default_factory=Visibility.everything)
    offset: int = 0  # so many of the first documents are not listed: an earlier answer has given them


class RelatedForm(Struct, frozen=True):
    """Another word of the index with the same stem, and in how many chunks it stands, whatever the column."""

    word: str
    chunks: int


class TermReport(Struct, frozen=True):
    """What became of one term. Counts are of documents within root, path and visibility.

    `documents` hold it in any form, `as_written` in this very one but for case and accents; `as_written` is None where
    the index cannot tell: for several words side by side, and for text written without blanks. Both are 0 for a term
    that was not queried.
    """

    surface: str  # with its field and quotes, without its minus
    field: Field
    excluded: bool
    not_queried: DropReason | None = None
    stem: str = ""  # stems joined by blanks, in the term's order
    documents: int = 0
    as_written: int | None = 0
    related_forms: tuple[RelatedForm, ...] = ()  # at most 5, the most common first; none where documents are hidden
    reading: TermReading = TermReading.WORDS
    only_in_names: int = 0  # of a term that is nowhere: documents that hold it in title, path or tags


class MatchedDocument(Struct, frozen=True):
    """A document that holds every term. A match is a chunk whose body (heading path) holds a term; those of several
    terms add up."""

    path: str  # the document's key
    citation: str  # of the first chunk with a match
    ordinal: int  # of that chunk
    title: str
    body_matches: int
    heading_matches: int
    total_chunks: int


class MatchAnswer(Struct, frozen=True):
    """The complete set, of which `documents` are the first by the order that was asked for."""

    status: MatchStatus
    identity: StoreIdentity
    compiled: str = ""  # what was asked, in a line; "" where nothing was
    matched: int = 0  # documents in all, taken before the limit
    documents: tuple[MatchedDocument, ...] = ()
    terms: tuple[TermReport, ...] = ()  # in the query's order, those that were not queried among them
    indexed_documents: int = 0  # in the whole base, hidden ones left out
    no_match_cause: NoMatchCause | None = None  # where documents were asked and none is left
    offset: int = 0  # documents before the first of `documents`

    @property
    def is_truncated(self) -> bool:
        """Whether there are documents behind the last of these."""
        return self.offset + len(self.documents) < self.matched
