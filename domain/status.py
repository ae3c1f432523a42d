"""Closed sets of states that answers carry. The words for people are made in app.present."""

from enum import StrEnum
from typing import ClassVar

from msgspec import Struct


class TierKind(StrEnum):
    """What ranks answers. `DEGRADED` is words alone where meaning was wanted too."""

    LEXICAL = "lexical"  # no embeddings are configured
    LEXICAL_ASKED = "lexical_asked"  # they are, and words alone were asked for
    HYBRID = "hybrid"
    VECTOR = "vector"
    DEGRADED = "degraded"


class DegradeCause(StrEnum):
    """Why words alone rank: by the step that failed, never by what it said (S0-39)."""

    EMBEDDINGS = "embeddings"  # no vector for the query: connection, refusal, or an answer that is none
    TIMEOUT = "timeout"  # a deadline passed
    CANCELED = "canceled"  # whoever asked does not wait any more
    INDEX_META = "index_meta"  # what the index says of its vectors cannot be read
    NO_VECTORS = "no_vectors"  # the first set is not complete yet
    CHANGED = "embeddings_changed"  # the stored vectors are not those of the configuration; a search refuses


class Tier(Struct, frozen=True):
    """What ranks answers, or ranked one. Its line of text is a function of this value and made in one place."""

    kind: TierKind = TierKind.LEXICAL
    model: str = ""  # of HYBRID and VECTOR
    dimension: int = 0
    cause: DegradeCause | None = None  # of DEGRADED
    reason: str = ""  # in words, for people

    LEXICAL: ClassVar["Tier"]

    @staticmethod
    def degraded(cause: DegradeCause, reason: str) -> "Tier":
        return Tier(TierKind.DEGRADED, cause=cause, reason=reason)


Tier.LEXICAL = Tier()


class SearchStatus(StrEnum):
    """How a search ended.

    `INDEX_NOT_BUILT` is never made by a search, which has no store to ask then: surfaces give it in the same
    place. `INDEX_INCOMPLETE` comes with the results there are so far.
    """

    OK = "ok"
    INDEX_NOT_BUILT = "index_not_built"
    INDEX_EMPTY = "index_empty"
    INDEX_INCOMPLETE = "index_incomplete"
    INDEX_INCONSISTENT = "index_inconsistent"  # blank, while runs are on record that have filled it (S2-21)
    INDEX_OUTDATED = "index_outdated"  # an older copy than a full run on record has left; its hits come along
    QUERY_EMPTY = "query_empty"


class DropReason(StrEnum):
    """Why a part of a query was not searched for."""

    TOO_SHORT = "too_short"  # one character, beside longer terms
    PUNCTUATION = "punctuation"  # no letter and no digit
    TOO_COMMON = "too_common"  # in more than half of the chunks, beside rarer terms
    QUESTION_WORD = "question_word"  # `what`, `has`: it asks, beside terms that say what is asked
    OVER_LIMIT = "over_limit"  # beyond the 40 rarest terms of a long question
    NOT_INDEXED = "not_indexed"  # letters that the full-text tables take for punctuation


class SearchNote(StrEnum):
    """What else is to be known of an answer."""

    QUERY_TRUNCATED = "query_truncated"  # the query was cut before it was read
    LITERAL_TRUNCATED = "literal_truncated"  # more places for a literal than are examined: some may be missing
    LITERAL_NOT_FOUND = "literal_not_found"  # no chunk holds a literal as written: the hits hold its words
    SUBSTRING_TRUNCATED = "substring_truncated"  # likewise, of text written without spaces
    SUBSTRING_RELAXED = "substring_relaxed"  # no chunk holds all substrings: those with any are given
    NEAREST_BY_MEANING = "nearest_by_meaning"  # no hit shares a word with the query


class MatchStatus(StrEnum):
    """How an enumeration ended. A query that cannot be read is an error, not a status.

    `INDEX_NOT_BUILT` is never made by an enumeration, which has no store to ask then: surfaces give it in the same
    place. `INDEX_INCOMPLETE` and `INDEX_OUTDATED` come with the set of what there is.
    """

    OK = "ok"
    INDEX_NOT_BUILT = "index_not_built"
    CORPUS_EMPTY = "corpus_empty"
    INDEX_INCOMPLETE = "index_incomplete"  # no run has seen all of the folders yet
    INDEX_INCONSISTENT = "index_inconsistent"  # as of a search
    INDEX_OUTDATED = "index_outdated"  # as of a search
    QUERY_EMPTY = "query_empty"


class Standing(StrEnum):
    """What the index as a whole is: by itself, and beside what the runs on record have left (S2-21)."""

    COMPLETE = "complete"
    EMPTY = "empty"  # complete, and without a document
    INCOMPLETE = "incomplete"  # no full run has seen everything yet
    INCONSISTENT = "index_inconsistent"  # blank, while runs are on record that have filled it
    OUTDATED = "index_outdated"  # older than a full run on record: an older copy was put in its place


class Absence(StrEnum):
    """Why there is no index to ask (`index_not_built`)."""

    NEVER_BUILT = "never_built"
    CUT_SHORT = "cut_short"  # the first run ended before it had stored anything
    LOST = "lost"  # knowledge.db is gone, or empty, while runs are on record that have filled it
    RECORD_LOST = "record_lost"  # knowledge.db is there, and state.db beside it is gone


class NoMatchCause(StrEnum):
    """Why no document was enumerated."""

    NOWHERE = "nowhere"  # a term is in no document at all
    NEVER_TOGETHER = "never_together"  # each term is somewhere, all of them in no document
    EXCLUDED = "excluded"  # documents hold all of them, and each holds an excluded term as well
    TOO_FEW = "too_few"  # none has as many matches as were asked for
