"""The closed language of `match` (S0-44, S0-45, S0-46, S0-54): what it reads, and what it refuses by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import UsageError
from domain.status import DropReason
from retrieval.match_query import MatchTerm, parse_match
from retrieval.query_text import MAX_QUERY_CHARS, split_words
from retrieval.terms import MAX_TERMS


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("kernel driver", (MatchTerm("kernel"), MatchTerm("driver"))),
        ('"memory map"', (MatchTerm("memory map", is_phrase=True),)),
        ("kernel -draft", (MatchTerm("kernel"), MatchTerm("draft", excluded=True))),
        ("heading:install", (MatchTerm("install", "heading"),)),
        ("Body:install", (MatchTerm("install", "body"),)),
        (
            'kernel -heading:"release notes"',
            (MatchTerm("kernel"), MatchTerm("release notes", "heading", excluded=True, is_phrase=True)),
        ),
        ('"say ""hello"" twice"', (MatchTerm('say "hello" twice', is_phrase=True),)),
        ('"two\n  lines"', (MatchTerm("two lines", is_phrase=True),)),
        ('"C"', (MatchTerm("C", is_phrase=True),)),
        ('"OR"', (MatchTerm("OR", is_phrase=True),)),
        ('"a* wild card"', (MatchTerm("a* wild card", is_phrase=True),)),
        ("foo_bar.baz e-mail", (MatchTerm("foo_bar.baz"), MatchTerm("e-mail"))),
        ("heading:std::move", (MatchTerm("std::move", "heading"),)),
        ("again and-so again", (MatchTerm("again"), MatchTerm("and-so"))),
        ("order android nearly nothing", tuple(map(MatchTerm, ("order", "android", "nearly", "nothing")))),
        ("nul\x00byte", (MatchTerm("nul"), MatchTerm("byte"))),
        ("\u6771", (MatchTerm("\u6771"),)),
        ("", ()),
        (" \n\t ", ()),
    ],
)
def test_the_four_forms_are_read(text: str, terms: tuple[MatchTerm, ...]) -> None:
    assert parse_match(text).terms == terms


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x", DropReason.TOO_SHORT),
        ("C++", DropReason.TOO_SHORT),
        ("heading:7", DropReason.TOO_SHORT),
        ("&&", DropReason.PUNCTUATION),
        ('"..."', DropReason.PUNCTUATION),
    ],
)
def test_what_cannot_be_looked_for_is_kept_with_its_reason(text: str, reason: DropReason) -> None:
    """S0-54."""
    query = parse_match(f"kernel {text}")
    assert [term.not_queried for term in query.terms] == [None, reason]
    assert [term.text for term in query.required] == ["kernel"]
    assert query.compiled == "kernel"


def test_the_compiled_line_joins_with_and() -> None:
    query = parse_match('kernel -draft heading:"memory map" -body:"a ""b"" c"')
    assert query.compiled == 'kernel AND -draft AND heading:"memory map" AND -body:"a ""b"" c"'


@pytest.mark.parametrize("operator", ["OR", "or", "Or", "AND", "and", "NOT", "not", "NEAR", "near"])
@pytest.mark.parametrize("written", ["{}", "-{}", "({})", "heading:{}"])
def test_operators_are_refused_by_name_in_any_case(operator: str, written: str) -> None:
    """S0-45."""
    with pytest.raises(UsageError) as refused:
        parse_match(f"kernel {written.format(operator)} driver")
    assert refused.value.message.startswith(f"{operator.upper()} is no operator here")
    assert f'"{operator}"' in refused.value.hint


@pytest.mark.parametrize("text", ["NEAR(kernel driver)", "near/5", "NEAR(kernel"])
def test_near_is_refused_with_its_brackets(text: str) -> None:
    with pytest.raises(UsageError, match="NEAR is no operator here"):
        parse_match(text)


@pytest.mark.parametrize("text", ["kern*", "*nel", "ke*el", "*", "-kern*", "heading:kern*", "kernel AND*"])
def test_a_star_is_refused_at_any_position(text: str) -> None:
    """S0-46."""
    with pytest.raises(UsageError) as refused:
        parse_match(text)
    assert refused.value.message.startswith("* in ")
    assert "knowledge words" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ("title:kernel", "there is no field 'title'", "body: and heading:"),
        ("https://example.org/", "there is no field 'https'", '"https://example.org/"'),
        (":kernel", "no field stands before the colon", "in quotes"),
        ('title:"a b"', "there is no field 'title'", "body: and heading:"),
        ("kernel -", "a minus stands alone", "-draft"),
        ("--dry-run", "two minuses", '"--dry-run"'),
        ("kernel --limt", "neither an option nor a term", "--help"),
        ("heading:", "nothing follows 'heading:'", "heading:install"),
        ("heading: kernel", "nothing follows 'heading:'", "right behind it"),
        ('heading:""', "nothing between the quotes", "leave the quotes out"),
        ('""', "nothing between the quotes", "leave the quotes out"),
        ("heading:-kernel", "a minus stands inside", "-heading:"),
        ('"memory map', "is not closed", "at the end"),
        ('kernel "', "is not closed", "at the end"),
        ('"a b""', "is not closed", "at the end"),
        ('ker"nel"', "a quote stands inside 'ker'", "around a whole term"),
        ('"a b"c', "after the phrase 'a b' there is no blank", "a blank between"),
        ("\u201cmemory map\u201d", "typographic quotes", "straight quotes"),
        ("-kernel", "only says what is not wanted", "without a minus"),
        ('-kernel -heading:"a b"', "only says what is not wanted", "without a minus"),
        ("\ud800", "half a character", "type the query again"),
    ],
)
def test_what_is_outside_the_language_is_an_error_with_its_remedy(text: str, told: str, hint: str) -> None:
    """S0-44."""
    with pytest.raises(UsageError) as refused:
        parse_match(text)
    assert told in refused.value.message
    assert hint in refused.value.hint


def test_forty_terms_are_taken_and_no_more() -> None:
    most = [f"word{number}" for number in range(MAX_TERMS)]
    assert len(parse_match(" ".join(most)).required) == MAX_TERMS
    assert len(parse_match(" ".join([*most, *most, "x"])).required) == MAX_TERMS
    with pytest.raises(UsageError, match=f"has {MAX_TERMS + 1} terms; {MAX_TERMS} are taken"):
        parse_match(" ".join([*most, "-another"]))


def test_a_query_of_a_book_is_refused_before_it_is_read() -> None:
    with pytest.raises(UsageError, match="characters"):
        parse_match("word " * MAX_QUERY_CHARS)


PIECES = st.sampled_from(
    [
        '"',
        '""',
        "-",
        "--",
        "*",
        ":",
        "heading:",
        "body:",
        "x:",
        " ",
        "\t",
        "or",
        "NEAR(",
        "kernel",
        "a",
        "\u201c",
        "\u6771",
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES).map("".join), st.text(st.characters(codec=None, categories=["Cs", "L"]))))
def test_any_string_is_a_query_or_an_error_with_a_hint(text: str) -> None:
    """S0-44."""
    try:
        query = parse_match(text)
    except UsageError as error:
        assert error.message
        assert error.hint
        return
    assert len(query.required) + len(query.excluded) <= MAX_TERMS
    assert not query.terms or not all(term.excluded for term in query.terms)
    for term in (*query.required, *query.excluded):
        assert split_words(term.text)
        assert "\x00" not in term.text


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
def test_what_was_read_is_read_again_from_its_own_spelling(text: str) -> None:
    try:
        query = parse_match(text)
    except UsageError:
        return
    spelled = " ".join(f"-{term.surface}" if term.excluded else term.surface for term in query.terms)
    assert parse_match(spelled) == query
