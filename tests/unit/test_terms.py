from hypothesis import given
from hypothesis import strategies as st

from retrieval.terms import MAX_TERMS, choose_terms


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
