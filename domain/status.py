"""Closed sets of states that answers carry. The words for people are made in app.present."""

from enum import StrEnum


class Tier(StrEnum):
    """What ranked an answer. Its line of text is a function of this value and made in one place."""

    LEXICAL = "lexical"


class SearchStatus(StrEnum):
    """How a search ended.

    `INDEX_NOT_BUILT` is never made by a search, which has no store to ask then: surfaces give it in the same
    place. `INDEX_INCOMPLETE` comes with the results there are so far.
    """

    OK = "ok"
    INDEX_NOT_BUILT = "index_not_built"
    INDEX_EMPTY = "index_empty"
    INDEX_INCOMPLETE = "index_incomplete"
    QUERY_EMPTY = "query_empty"


class DropReason(StrEnum):
    """Why a part of a query was not searched for."""

    TOO_SHORT = "too_short"  # one character, beside longer terms
    PUNCTUATION = "punctuation"  # no letter and no digit
    TOO_COMMON = "too_common"  # in more than half of the chunks, beside rarer terms
    OVER_LIMIT = "over_limit"  # beyond the 40 rarest terms of a long question
    NOT_INDEXED = "not_indexed"  # letters that the full-text tables take for punctuation


class SearchNote(StrEnum):
    """What else is to be known of an answer."""

    QUERY_TRUNCATED = "query_truncated"  # the query was cut before it was read
    LITERAL_TRUNCATED = "literal_truncated"  # more places for a literal than are examined: some may be missing
    LITERAL_NOT_FOUND = "literal_not_found"  # no chunk holds a literal as written: the hits hold its words
    SUBSTRING_TRUNCATED = "substring_truncated"  # likewise, of text written without spaces
    SUBSTRING_RELAXED = "substring_relaxed"  # no chunk holds all substrings: those with any are given
