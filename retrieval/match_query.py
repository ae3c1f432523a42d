"""The closed language of an enumeration: words, "phrases", a leading minus, heading: and body:; nothing else.

Every string is a query or a UsageError that says what to write instead. What looks like an operator of a search
engine is refused by name, since taken as a word it would quietly ask for something else.

    query   = blank* ( term ( blank+ term )* )? blank*
    term    = "-"? ( "heading:" | "body:" )? ( word | phrase )
    phrase  = '"' ( any character but '"' | '""' )+ '"'        a doubled quote is a quote
    word    = characters without blanks, quotes and "*"
"""

import re
from typing import Literal, NamedTuple

from domain.errors import UsageError
from domain.markdown.scripts import is_spaceless
from domain.status import DropReason
from retrieval.query_text import MAX_QUERY_CHARS, MIN_TERM_CHARS, refuse_surrogates, split_words
from retrieval.terms import MAX_TERMS

Field = Literal["", "body", "heading"]
"""Where a term is looked for; "": in bodies and headings."""

FIELDS: dict[str, Field] = {"body": "body", "heading": "heading"}
MAX_SHOWN_CHARS = 80  # of a piece that an error quotes

_BLANKS = re.compile(r"\s*")
_UNQUOTED = re.compile(r'[^\s"]*')
_PHRASE = re.compile(r'"((?:[^"]|"")*+)"')
_TYPOGRAPHIC = re.compile("[\u201c\u201d\u201e\u201f]")
_OPERATOR = re.compile(r"[^\w]*(?P<name>or|and|not|near)(?:[^\w]*|(?<=near)[(/].*)", re.IGNORECASE | re.DOTALL)
_INSTEAD = {
    "AND": "every term is required as it is: leave it out",
    "OR": "ask once for each alternative",
    "NOT": "write a minus before the term that is not wanted, such as -draft",
    "NEAR": 'put words that stand side by side in quotes, such as "memory map"',
}


class MatchTerm(NamedTuple):
    """One term as written. `not_queried` says why nothing is looked for; None: it is."""

    text: str  # without minus, field and quotes
    field: Field = ""
    excluded: bool = False
    is_phrase: bool = False  # it stood in quotes
    not_queried: DropReason | None = None

    @property
    def surface(self) -> str:
        """The term as the language spells it, without its minus."""
        text = '"' + self.text.replace('"', '""') + '"' if self.is_phrase else self.text
        return f"{self.field}:{text}" if self.field else text


class MatchQuery(NamedTuple):
    """Terms in the query's order, each once; those that are not queried are among them."""

    terms: tuple[MatchTerm, ...] = ()

    @property
    def required(self) -> tuple[MatchTerm, ...]:
        return tuple(term for term in self.terms if not term.excluded and term.not_queried is None)

    @property
    def excluded(self) -> tuple[MatchTerm, ...]:
        return tuple(term for term in self.terms if term.excluded and term.not_queried is None)

    @property
    def compiled(self) -> str:
        """What is asked, in a line: joined with AND, a minus before what is excluded."""
        queried = (term for term in self.terms if term.not_queried is None)
        return " AND ".join(f"-{term.surface}" if term.excluded else term.surface for term in queried)


def parse_match(text: str) -> MatchQuery:
    """Raises UsageError for whatever is not in the language, for more than 40 terms, and for excluded terms alone."""
    refuse_surrogates(text)
    if len(text) > MAX_QUERY_CHARS:
        raise UsageError(
            f"the query has {len(text):,} characters; {MAX_QUERY_CHARS:,} are taken",
            hint="ask for fewer words: a set of documents is narrow after three or four",
        )
    terms = tuple(dict.fromkeys(_terms(text.replace("\x00", " "))))
    queried = sum(term.not_queried is None for term in terms)
    if queried > MAX_TERMS:
        raise UsageError(
            f"the query has {queried} terms; {MAX_TERMS} are taken", hint="ask for fewer, or in several queries"
        )
    if terms and all(term.excluded for term in terms):
        raise UsageError(
            "the query only says what is not wanted: nothing is left to take it from",
            hint="add a term without a minus; `knowledge sources --all` lists every document",
        )
    return MatchQuery(terms)


def _terms(text: str) -> list[MatchTerm]:
    found: list[MatchTerm] = []
    at = _skip_blanks(text, 0)
    while at < len(text):
        term, at = _read_term(text, at)
        found.append(term)
        at = _skip_blanks(text, at)
    return found


def _skip_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _read_term(text: str, at: int) -> tuple[MatchTerm, int]:
    """The term that begins here, and where it ends."""
    unquoted = _UNQUOTED.match(text, at)
    written = unquoted[0] if unquoted else ""
    end = at + len(written)
    excluded = written.startswith("-")
    piece = written.removeprefix("-")
    if end < len(text) and text[end] == '"':
        field = _field_before_quote(piece)
        phrase, end = _read_phrase(text, end)
        return _phrase_term(phrase, field, excluded), end
    return _word_term(piece, excluded), end


def _field_before_quote(piece: str) -> Field:
    if not piece:
        return ""
    if not piece.endswith(":"):
        raise UsageError(
            f"a quote stands inside {_shown(piece)}",
            hint='quotes go around a whole term, with blanks outside; inside a phrase, write "" for a quote',
        )
    return _field_named(piece[:-1], piece)


def _read_phrase(text: str, at: int) -> tuple[str, int]:
    found = _PHRASE.match(text, at)
    if found is None:
        raise UsageError(
            f"the quote before {_shown(text[at + 1 :])} is not closed",
            hint='write " at the end of the phrase; inside a phrase, "" is a quote',
        )
    end = found.end()
    if end < len(text) and not text[end].isspace():
        raise UsageError(
            f"after the phrase {_shown(found[1])} there is no blank",
            hint='put a blank between two terms; inside a phrase, write "" for a quote',
        )
    return " ".join(found[1].replace('""', '"').split()), end


def _phrase_term(phrase: str, field: Field, excluded: bool) -> MatchTerm:
    if not phrase:
        raise UsageError("there is nothing between the quotes", hint="put words there, or leave the quotes out")
    reason = None if split_words(phrase) else DropReason.PUNCTUATION
    return MatchTerm(phrase, field, excluded, is_phrase=True, not_queried=reason)


def _word_term(piece: str, excluded: bool) -> MatchTerm:
    if not piece:
        raise UsageError(
            "a minus stands alone", hint="write it right before the term that is not wanted, such as -draft"
        )
    if piece.startswith("-"):
        raise UsageError(
            f"two minuses stand before {_shown(piece[1:])}: it is neither an option nor a term",
            hint=f'the options are in `knowledge match --help`; text goes in quotes: "-{_plain(piece)}"',
        )
    _refuse_foreign_signs(piece)
    field, word = _field_of(piece)
    _refuse_operator(word, piece)
    return MatchTerm(word, field, excluded, not_queried=_word_drop(word))


def _refuse_foreign_signs(piece: str) -> None:
    if "*" in piece:
        beginning = "".join(split_words(piece)[:1]).lower()
        raise UsageError(
            f"* in {_shown(piece)} stands for nothing here: terms are whole words, in any form of them",
            hint=f"`knowledge words '^{beginning}'` lists the words of the index to choose from",
        )
    if _TYPOGRAPHIC.search(piece):
        raise UsageError(f"{_shown(piece)} has typographic quotes", hint='phrases stand in straight quotes, as "this"')


def _field_of(piece: str) -> tuple[Field, str]:
    name, colon, word = piece.partition(":")
    if not colon:
        return "", piece
    field = _field_named(name, piece)
    if not word:
        raise UsageError(f"nothing follows {_shown(piece)}", hint=f"write the term right behind it: {field}:install")
    if word.startswith("-"):
        raise UsageError(f"a minus stands inside {_shown(piece)}", hint=f"the minus goes first: -{field}:install")
    return field, word


def _field_named(name: str, piece: str) -> Field:
    field = FIELDS.get(name.lower())
    if field is None:
        told = f"there is no field {_shown(name)}" if name else "no field stands before the colon"
        raise UsageError(
            told,
            hint=f"the fields are {' and '.join(f'{known}:' for known in sorted(FIELDS))};"
            f' to look for text with a colon, put it in quotes: "{_plain(piece)}"',
        )
    return field


def _refuse_operator(word: str, piece: str) -> None:
    found = _OPERATOR.fullmatch(word)
    if found is not None:
        name = found["name"].upper()
        raise UsageError(
            f"{name} is no operator here ({_shown(piece)})",
            hint=f'{_INSTEAD[name]}; to look for the word itself, put it in quotes: "{found["name"]}"',
        )


def _word_drop(word: str) -> DropReason | None:
    """Of several words in a piece, such as `e-mail`, each may be short: they stand side by side, as in a phrase."""
    words = split_words(word)
    if not words:
        return DropReason.PUNCTUATION
    if len(words) == 1 and len(words[0]) < MIN_TERM_CHARS and not is_spaceless(words[0]):
        return DropReason.TOO_SHORT
    return None


def _shown(piece: str) -> str:
    return repr(piece if len(piece) <= MAX_SHOWN_CHARS else f"{piece[:MAX_SHOWN_CHARS]}...")


def _plain(piece: str) -> str:
    return piece[:MAX_SHOWN_CHARS]
