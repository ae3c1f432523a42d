"""A query as people write it, taken apart. Nothing in it is syntax but paired quotes; every string is a
query.

Terms are what the full-text tables index: runs of letters and digits by Unicode category (S0-33), with the
marks that belong to them. A piece with punctuation is also a literal, and text written without blanks a
substring.
"""

import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from domain.errors import UsageError
from domain.markdown.scripts import is_spaceless
from domain.status import DropReason
from retrieval.answer import DroppedTerm
from retrieval.terms import without_question_words

MAX_QUERY_CHARS = 10_000  # a longer query is cut here, before anything reads it
MAX_READ_TERMS = 400  # what follows is not looked at; 40 of them are searched for
MAX_LITERALS = 8
MAX_LISTED = 50  # dropped terms
MAX_SHOWN_CHARS = 80
MIN_TERM_CHARS = 2
MANY_TERMS = 6  # a sentence more likely than a few key words

_ASCII_WORD = re.compile(r"[0-9A-Za-z]+")
_QUOTED = re.compile(r"""(?<![^\s(\[{])["\u201c\u201d]([^"\u201c\u201d]+)["\u201c\u201d](?![^\W_])""")
_OPENING = "([{<\"'\u2018\u201c\u00bf\u00a1"
_CLOSING = ".,;:!?)]}>\"'\u2019\u201d\u2026\u3002\uff0c\uff1f\uff01\u3001"
_CONTRACTION = re.compile(r"(?<=[^\W_])['\u2019](?=(?:[sStTdDmM]|re|ve|ll)?(?:-|$))")  # it's, we'll, users'
_APOSTROPHE = re.compile(r"['\u2019]")
_ONE_ENDED = re.compile(r"[-/][^\W\d_]+|[^\W\d_]+[-/]")
_ABBREVIATIONS = frozenset(("e.g", "i.e"))


class LiteralKind(StrEnum):
    """How much is meant by a piece's punctuation."""

    QUOTED = "quoted"  # between quotes, or the whole query: everything
    IDENTIFIER = "identifier"  # `C++`, `foo_bar.baz`, `--dry-run`, `ERR-1042`, an address, a path
    COMPOUND = "compound"  # `two-dimensional`, `O'Reilly` among other words: words first of all
    WORD = "word"  # `installed?`, `it's` among other words: nothing, it is the sentence's


class Literal(NamedTuple):
    """Text to be found as it stands."""

    text: str
    core: str  # without what a sentence puts around it
    kind: LiteralKind = LiteralKind.IDENTIFIER


class Query(NamedTuple):
    """The parts of a query in their order. Repeats are kept: they are weight."""

    terms: tuple[str, ...]
    short_terms: tuple[str, ...]  # of one character
    literals: tuple[Literal, ...]
    substrings: tuple[str, ...]  # written without blanks
    dropped: tuple[DroppedTerm, ...]
    truncated: bool


def parse_query(text: str) -> Query:
    """Raises UsageError for text that is no Unicode (a lone surrogate), and nothing else."""
    if not text.isascii():
        refuse_surrogates(text)
    parts = _Parts()
    pieces = list(_pieces(text[:MAX_QUERY_CHARS].replace("\x00", " ")))
    for piece, in_quotes in pieces:
        parts.add(piece, in_quotes, is_alone=len(pieces) == 1)
    return parts.query(len(text) > MAX_QUERY_CHARS)


def split_words(text: str) -> list[str]:
    """Runs of letters, digits, private characters and marks; a run begins with no mark."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    kept = [character if is_word_character(character) else " " for character in text]
    runs = "".join(kept).split()
    return [word for word in map(_without_leading_marks, runs) if word]


def is_word_character(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LNM" or category == "Co"


def _without_leading_marks(run: str) -> str:
    at = 0
    while at < len(run) and unicodedata.category(run[at])[0] == "M":
        at += 1
    return run[at:]


def refuse_surrogates(text: str) -> None:
    """Raises UsageError for a lone surrogate, which is no Unicode and no database takes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the query holds half a character at position {error.start}: it is no Unicode text",
            hint="type the query again; a program must not send lone surrogates",
        ) from None


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """What stands between blanks, and what stands between quotes, in order."""
    at = 0
    for found in _QUOTED.finditer(text):
        for piece in text[at : found.start()].split():
            yield piece, False
        yield " ".join(found[1].split()), True
        at = found.end()
    for piece in text[at:].split():
        yield piece, False


def _literal(piece: str, is_alone: bool) -> Literal:
    core = piece.lstrip(_OPENING).rstrip(_CLOSING)
    kind = _kind(core)
    if not is_alone:
        return Literal(piece, core, kind)
    # a word and a full stop may be meant so, but without the full stop it is for the words lane
    return Literal(piece, piece) if kind is LiteralKind.WORD else Literal(piece, core, LiteralKind.QUOTED)


def _among_many(literal: Literal) -> Literal:
    """A word with a dash or a slash at one end is an option or a path; among many words it may as well be a stroke of
    the writer's. As a compound it is in the first hits, but does not fill them."""
    is_stroke = literal.kind is LiteralKind.IDENTIFIER and _ONE_ENDED.fullmatch(literal.core)
    return literal._replace(kind=LiteralKind.COMPOUND) if is_stroke else literal


def _kind(core: str) -> LiteralKind:
    parts = _APOSTROPHE.sub("-", _CONTRACTION.sub("", core)).split("-")
    if all(part.isalpha() for part in parts):
        return LiteralKind.COMPOUND if len(parts) > 1 else LiteralKind.WORD
    is_word = (len(parts) == 1 and split_words(parts[0]) == parts) or core.lower() in _ABBREVIATIONS
    return LiteralKind.WORD if is_word else LiteralKind.IDENTIFIER


class _Parts:
    def __init__(self) -> None:
        self._terms: list[str] = []
        self._short: list[str] = []
        self._literals: dict[str, Literal] = {}
        self._substrings: dict[str, None] = {}
        self._dropped: dict[str, DroppedTerm] = {}
        self._read = 0

    def add(self, piece: str, in_quotes: bool, is_alone: bool) -> None:
        words = split_words(piece)
        if not words:
            self._drop(piece, DropReason.PUNCTUATION)
            return
        if in_quotes:
            self._literals.setdefault(piece, Literal(piece, piece, LiteralKind.QUOTED))
        elif len(words) > 1 or words[0] != piece:
            self._literals.setdefault(piece, _literal(piece, is_alone))
        for word in words:
            self._add_word(word)

    def query(self, truncated: bool) -> Query:
        terms, question_words = without_question_words(self._terms)
        for word in question_words:
            self._drop(word, DropReason.QUESTION_WORD)
        literals = list(self._literals.values())
        if len(self._terms) >= MANY_TERMS:
            literals = [_among_many(literal) for literal in literals]
        return Query(
            terms=terms,
            short_terms=tuple(dict.fromkeys(self._short)),
            literals=tuple(literals),
            substrings=tuple(self._substrings),
            dropped=tuple(self._dropped.values()),
            truncated=truncated or self._read > MAX_READ_TERMS,
        )

    def _add_word(self, word: str) -> None:
        self._read += 1
        if self._read > MAX_READ_TERMS:
            return
        spaceless = is_spaceless(word)
        if spaceless:
            self._substrings.update(dict.fromkeys(_spaceless_pieces(word)))
        if len(word) >= MIN_TERM_CHARS:
            self._terms.append(word)
        elif not spaceless:
            self._short.append(word)

    def _drop(self, piece: str, reason: DropReason) -> None:
        shown = piece[:MAX_SHOWN_CHARS]
        if shown and len(self._dropped) < MAX_LISTED:
            self._dropped.setdefault(shown, DroppedTerm(shown, reason))


def _spaceless_pieces(word: str) -> list[str]:
    """The runs of a word that are written without blanks: of one in two scripts, not the other."""
    if all(map(is_spaceless, word)):
        return [word]
    kept = [
        character if is_spaceless(character) or unicodedata.category(character)[0] == "M" else " " for character in word
    ]
    return [piece for piece in map(_without_leading_marks, "".join(kept).split()) if piece]
