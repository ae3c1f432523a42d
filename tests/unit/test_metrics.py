"""nDCG, recall and reciprocal rank against values computed by hand, and what holds for every ranking."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.metrics import ndcg, recall, recall_of_nearest, reciprocal_rank

NAMES = st.lists(st.sampled_from("abcdefghijkl"), unique=True)
GAINS = st.dictionaries(st.sampled_from("abcdefghijkl"), st.sampled_from([0.0, 1.0, 2.0, 3.0]))


def test_ndcg_by_hand() -> None:
    """Relevant at ranks 1 and 3 of three relevant ones: (1 + 1/2) / (1 + 1/log2(3) + 1/2)."""
    gains = {"a": 1.0, "c": 1.0, "x": 1.0}
    assert ndcg(["a", "b", "c"], gains) == pytest.approx(1.5 / (1.5 + 1 / log2(3)))
    assert ndcg(["a", "b", "c"], gains) == pytest.approx(0.7039, abs=1e-4)


def test_ndcg_with_grades_by_hand() -> None:
    """The example of grades 3, 2, 3, 0, 1, 2 in that order: 6.8611 over 7.1409."""
    gains = dict(zip("abcdef", [3.0, 2.0, 3.0, 0.0, 1.0, 2.0], strict=True))
    assert ndcg("abcdef", gains) == pytest.approx(6.8611 / 7.1410, abs=1e-4)


def test_ndcg_counts_the_first_ten_and_no_more_are_expected() -> None:
    relevant = {str(number): 1.0 for number in range(30)}
    assert ndcg([str(number) for number in range(10)], relevant) == pytest.approx(1.0)
    assert ndcg([*"abcdefghij", "0"], relevant) == 0.0
    assert ndcg(["0", "1"], relevant, depth=2) == pytest.approx(1.0)


def test_recall_by_hand() -> None:
    gains = {"a": 1.0, "b": 2.0, "c": 1.0, "d": 0.0}
    assert recall(["a", "d", "b"], gains) == pytest.approx(2 / 3)
    assert recall(["d", "a", "b"], gains, depth=2) == pytest.approx(1 / 3)
    assert recall(["x"] * 0, gains) == 0.0


def test_reciprocal_rank_by_hand() -> None:
    gains = {"c": 1.0, "a": 0.0}
    assert reciprocal_rank(["a", "b", "c"], gains) == pytest.approx(1 / 3)
    assert reciprocal_rank(["a", "b"], gains) == 0.0


def test_an_unjudged_document_is_not_relevant() -> None:
    assert ndcg(["u", "a"], {"a": 1.0}) == pytest.approx(1 / log2(3))
    assert recall(["u"], {"a": 1.0}) == 0.0
    assert reciprocal_rank(["u", "a"], {"a": 1.0}) == 0.5


def test_nothing_to_find_is_worth_nothing() -> None:
    assert ndcg(["a"], {}) == recall(["a"], {"a": 0.0}) == reciprocal_rank(["a"], {}) == 0.0
    assert ndcg(["a"], {"a": -1.0}) == 0.0


def test_recall_of_the_nearest_by_hand() -> None:
    nearest = [0.9, 0.8, 0.7, 0.6]
    assert recall_of_nearest([0.9, 0.8, 0.7, 0.6], nearest, 4) == 1.0
    assert recall_of_nearest([0.9, 0.7, 0.6, 0.5], nearest, 4) == pytest.approx(3 / 4)
    assert recall_of_nearest([0.9, 0.7, 0.6, 0.5], nearest, 2) == pytest.approx(1 / 2)
    assert recall_of_nearest([0.9], nearest, 4) == pytest.approx(1 / 4)
    assert recall_of_nearest([], nearest, 4) == 0.0
    assert recall_of_nearest([], [], 10) == 1.0


def test_of_equally_near_vectors_any_will_do() -> None:
    assert recall_of_nearest([0.9, 0.8 - 1e-8, 0.8], [0.9, 0.8, 0.8], 3) == 1.0
    assert recall_of_nearest([0.8, 0.8, 0.8], [0.8, 0.8], 2) == 1.0


@given(NAMES, GAINS)
def test_values_lie_between_nothing_and_everything(ranked: list[str], gains: dict[str, float]) -> None:
    for value in (ndcg(ranked, gains), recall(ranked, gains), reciprocal_rank(ranked, gains)):
        assert 0.0 <= value <= 1.0 + 1e-12


@given(GAINS)
def test_the_best_order_has_it_all(gains: dict[str, float]) -> None:
    best = sorted(gains, key=lambda name: -gains[name])
    has_any = any(gains.values())
    assert ndcg(best, gains) == pytest.approx(1.0 if has_any else 0.0)
    assert recall(best, gains) == reciprocal_rank(best, gains) == (1.0 if has_any else 0.0)


@given(NAMES, GAINS, st.integers(0, 10))
def test_a_better_one_moved_up_never_lowers_anything(ranked: list[str], gains: dict[str, float], place: int) -> None:
    if place + 1 >= len(ranked) or gains.get(ranked[place + 1], 0) < gains.get(ranked[place], 0):
        return
    moved = list(ranked)
    moved[place], moved[place + 1] = moved[place + 1], moved[place]
    assert ndcg(moved, gains) >= ndcg(ranked, gains) - 1e-12
    assert recall(moved, gains) == recall(ranked, gains)
    assert reciprocal_rank(moved, gains) >= reciprocal_rank(ranked, gains)
