import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import UsageError
from domain.status import DropReason
from retrieval.query_text import MAX_QUERY_CHARS, MAX_READ_TERMS, Literal, LiteralKind, parse_query, split_words


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("how to install", ("how", "to", "install")),
        ("foo_bar.baz --dry-run", ("foo", "bar", "baz", "dry", "run")),
        ("foo OR bar NOT (baz*)", ("foo", "OR", "bar", "NOT", "baz")),
        ("again and again", ("again", "and", "again")),
        ("na\u00efve \u00dcber", ("na\u00efve", "\u00dcber")),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", ("\u0939\u093f\u0928\u094d\u0926\u0940",)),
        ("nul\x00byte", ("nul", "byte")),
        ("body:x2 ^a1 NEAR(", ("body", "x2", "a1", "NEAR")),
    ],
)
def test_terms_are_runs_of_letters_and_digits(text: str, terms: tuple[str, ...]) -> None:
    assert parse_query(text).terms == terms


def test_single_characters_stand_apart() -> None:
    query = parse_query("plan b")
    assert query.terms == ("plan",)
    assert query.short_terms == ("b",)


@pytest.mark.parametrize(
    ("piece", "core", "kind"),
    [
        ("C++", "C++", LiteralKind.IDENTIFIER),
        ("--dry-run", "--dry-run", LiteralKind.IDENTIFIER),
        ("ERR-1042,", "ERR-1042", LiteralKind.IDENTIFIER),
        (".NET", ".NET", LiteralKind.IDENTIFIER),
        ("foo()", "foo(", LiteralKind.IDENTIFIER),
        ("a@example.org", "a@example.org", LiteralKind.IDENTIFIER),
        ("docs/a.md", "docs/a.md", LiteralKind.IDENTIFIER),
        ("foo_bar", "foo_bar", LiteralKind.IDENTIFIER),
        ("U.S.", "U.S", LiteralKind.IDENTIFIER),
        ("two-dimensional,", "two-dimensional", LiteralKind.COMPOUND),
        ("O'Reilly", "O'Reilly", LiteralKind.COMPOUND),
        ("we'll", "we'll", LiteralKind.WORD),
        ("users'", "users", LiteralKind.WORD),
        ("installed?", "installed", LiteralKind.WORD),
        ("(installed)", "installed", LiteralKind.WORD),
        ("it's", "it's", LiteralKind.WORD),
        ("it\u2019s,", "it\u2019s", LiteralKind.WORD),
        ("1042.", "1042", LiteralKind.WORD),
        ("(i.e.", "i.e", LiteralKind.WORD),
        ("e.g.,", "e.g", LiteralKind.WORD),
    ],
)
def test_pieces_with_punctuation_are_literals(piece: str, core: str, kind: LiteralKind) -> None:
    assert parse_query(f"some {piece} words").literals == (Literal(piece, core, kind),)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("two-dimensional,", Literal("two-dimensional,", "two-dimensional", LiteralKind.QUOTED)),
        (" C++ ", Literal("C++", "C++", LiteralKind.QUOTED)),
        ("installed?", Literal("installed?", "installed?")),
    ],
)
def test_alone_a_piece_is_meant_as_it_stands(text: str, literal: Literal) -> None:
    assert parse_query(text).literals == (literal,)


def test_a_piece_of_letters_and_digits_is_no_literal() -> None:
    assert parse_query("KB5005565 \u4e16\u754c").literals == ()


@pytest.mark.parametrize("text", ['say "two  words" now', "say \u201ctwo words\u201d now", '"two words"'])
def test_quotes_make_a_literal(text: str) -> None:
    assert Literal("two words", "two words", LiteralKind.QUOTED) in parse_query(text).literals


@pytest.mark.parametrize("text", ['"foo', 'foo"', '5" and 6" pipes', 'a"b"c'])
def test_other_quotes_are_punctuation(text: str) -> None:
    assert not any(literal.kind is LiteralKind.QUOTED for literal in parse_query(f"say {text}").literals)


def test_punctuation_alone_is_dropped_and_named() -> None:
    query = parse_query("&& \U0001f389 -- real")
    assert [(drop.term, drop.reason) for drop in query.dropped] == [
        ("&&", DropReason.PUNCTUATION),
        ("\U0001f389", DropReason.PUNCTUATION),
        ("--", DropReason.PUNCTUATION),
    ]
    assert query.terms == ("real",)


def test_words_that_only_ask_are_left_out_and_named() -> None:
    query = parse_query("What is known of the lift of a thin wing?")
    assert query.terms == ("known", "of", "the", "lift", "of", "thin", "wing")
    assert [drop.term for drop in query.dropped if drop.reason is DropReason.QUESTION_WORD] == ["What", "is"]


@pytest.mark.parametrize("word", ["-dash", "/slip", "flow/"])
def test_a_word_with_a_stroke_at_one_end_is_an_identifier_but_not_among_many(word: str) -> None:
    """Strokes beside words are punctuation for many writers; an option or a path is asked for in a few words."""
    assert parse_query(f"set {word} here").literals[0].kind is LiteralKind.IDENTIFIER
    assert parse_query(f"what is known of jets {word} near plates").literals[0].kind is LiteralKind.COMPOUND


@pytest.mark.parametrize("word", ["--dry-run", "ERR-1042", "src/net", "/etc/passwd", "-9", "C++"])
def test_other_identifiers_are_so_among_many_words_too(word: str) -> None:
    assert parse_query(f"what is known of jets {word} near plates").literals[0].kind is LiteralKind.IDENTIFIER


def test_text_without_blanks_is_searched_as_substrings() -> None:
    query = parse_query("\u4e16\u754c iPhone\u624b\u673a \u4eba hello")
    assert query.substrings == ("\u4e16\u754c", "\u624b\u673a", "\u4eba")
    assert query.terms == ("\u4e16\u754c", "iPhone\u624b\u673a", "hello")
    assert query.short_terms == ()


@pytest.mark.parametrize("text", ["\ud800", "a \udfff b", "x" * 20_000 + "\ud800"])
def test_half_a_character_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_query(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["word " * 2_000_000, "a1 " * 100_000, "(" * 3_000, '"' * 100_000, "\u4e16" * 1_000_000, "a" * 10_000_000],
    ids=["ten megabytes", "terms", "parentheses", "quotes", "spaceless", "one word"],
)
def test_size_is_bounded_before_anything_is_read(text: str) -> None:
    begin = time.process_time()
    query = parse_query(text)
    assert time.process_time() - begin < 0.5
    assert len(query.terms) <= MAX_READ_TERMS
    assert query.truncated is (len(text) > MAX_QUERY_CHARS)


@given(st.text(max_size=200))
def test_every_unicode_text_is_a_query(text: str) -> None:
    try:
        query = parse_query(text)
    except UsageError:
        assert any("\ud800" <= character <= "\udfff" for character in text)
        return
    assert all(len(term) >= 2 for term in query.terms)
    assert all(split_words(term) == [term] for term in (*query.terms, *query.short_terms))
    assert "\x00" not in "".join([*query.terms, *(literal.text for literal in query.literals)])
