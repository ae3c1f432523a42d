import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.terms import LEAST_OTHER_WORDS, MAX_TERMS, QUESTION_WORDS, choose_terms, without_question_words


def test_few_terms_are_all_searched() -> None:
    choice = choose_terms(["b", "a", "b"], {"a": 1, "b": 2}, 100, 50)
    assert choice.searched == ("b", "a", "b")
    assert choice.common == choice.over_limit == ()


def test_common_terms_are_left_out_only_while_the_others_fill_the_lane() -> None:
    counts = {"the": 80, "of": 51, "driver": 50}
    choice = choose_terms(["the", "driver", "of"], counts, 100, 50)
    assert choice.searched == ("driver",)
    assert choice.common == ("the", "of")
    assert choice.all == ("driver", "the", "of")
    assert choose_terms(["the", "driver", "of"], counts, 100, 51).searched == ("the", "driver", "of")
    assert choose_terms(["the", "of"], counts, 100, 50).searched == ("the", "of")


def test_of_a_long_question_the_rarest_stay_with_their_repeats() -> None:
    terms = [f"common{number}" for number in range(60)] + ["rare", "rare", "nowhere"]
    counts = dict.fromkeys(terms, 40) | {"rare": 3, "nowhere": 0}
    choice = choose_terms(terms, counts, 1000, 50)
    assert choice.searched.count("rare") == 2
    assert "nowhere" in choice.over_limit
    assert len(choice.searched) == MAX_TERMS


@given(st.lists(st.sampled_from("abcdefgh"), max_size=90), st.integers(1, 100))
def test_every_term_is_searched_or_named(terms: list[str], wanted: int) -> None:
    counts = {term: number * 13 for number, term in enumerate("abcdefgh")}
    choice = choose_terms(terms, counts, 100, wanted)
    assert len(choice.searched) <= MAX_TERMS
    if any(counts[term] for term in terms):
        assert choice.searched


@pytest.mark.parametrize(
    ("question", "left_out"),
    [
        ("what is the effect of pressure on plates in flow", "what is"),
        ("What has been measured about jets near plates", "What has been"),
        ("to what extent can readily available data be used", "what can be"),
        ("has anyone solved the problem of heated plates", "has anyone"),
        ("who pays the WHO for IT systems it has bought", "who it has"),
        ("how do we know which plates buckle and how", "how do we which"),
    ],
)
def test_a_question_is_asked_without_the_words_that_only_ask(question: str, left_out: str) -> None:
    terms = question.split()
    kept, dropped = without_question_words(terms)
    assert list(dropped) == left_out.split()
    assert list(kept) == [term for term in terms if term not in dropped]
    assert len(kept) >= LEAST_OTHER_WORDS


@pytest.mark.parametrize(
    "words",
    [
        "CAN bus and can bus", "where clause", "what is rust", "how to install it", "to be or not to be", "",
        "the driver was loaded when it had been signed", "what can it do for us now", "HOW TO BEND A STEEL PLATE",
    ],
)  # fmt: skip
def test_where_nothing_is_asked_or_little_else_is_said_every_word_is_meant(words: str) -> None:
    assert without_question_words(words.split()) == (tuple(words.split()), ())


@given(st.lists(st.sampled_from([*sorted(QUESTION_WORDS)[:5], "what", "What", "IT", "plate", "jet", "flow"])))
def test_no_word_is_lost_unnamed(terms: list[str]) -> None:
    kept, dropped = without_question_words(terms)
    assert set(terms) == set(kept) | set(dropped)
    assert list(kept) == terms or len(kept) >= LEAST_OTHER_WORDS
    assert bool(dropped) is (list(kept) != terms)
