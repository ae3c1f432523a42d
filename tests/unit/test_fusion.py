import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.answer import Lanes
from retrieval.fusion import LaneName, arrange, fuse, lanes_of, rank_lanes

lists = st.lists(st.integers(1, 30), unique=True, max_size=12)


def test_scores_are_sums_of_reciprocal_ranks() -> None:
    ranks = rank_lanes({"words": [7, 5], "literal": [5], "substring": []})
    assert fuse(ranks) == pytest.approx({5: 1 / 62 + 1 / 61, 7: 1 / 61})
    assert list(fuse(ranks)) == [5, 7]
    assert lanes_of(ranks, 5) == Lanes(words=2, literal=1)
    assert lanes_of(ranks, 7) == Lanes(words=1)


def test_ties_go_to_the_lower_id() -> None:
    assert list(fuse(rank_lanes({"words": [9, 3], "literal": [3, 9]}))) == [3, 9]
    assert list(fuse(rank_lanes({"words": [9], "substring": [3]}))) == [3, 9]


@given(lists, lists, lists, st.integers())
def test_the_order_of_lanes_in_the_mapping_means_nothing(
    words: list[int], literal: list[int], substring: list[int], seed: int
) -> None:
    lanes: list[tuple[LaneName, list[int]]] = [("words", words), ("literal", literal), ("substring", substring)]
    fused = fuse(rank_lanes(dict(lanes)))
    random.Random(seed).shuffle(lanes)
    assert list(fuse(rank_lanes(dict(lanes))).items()) == list(fused.items())
    scores = [(-score, chunk_id) for chunk_id, score in fused.items()]
    assert scores == sorted(scores)
    assert set(fused) == {*words, *literal, *substring}


def test_without_rules_the_order_is_as_fused() -> None:
    assert arrange([3, 1, 2], quoted=[], rare=[], without_body=frozenset()) == [3, 1, 2]


def test_chunks_without_a_body_stand_last() -> None:
    assert arrange([3, 1, 2], quoted=[], rare=[], without_body={3, 1}) == [2, 3, 1]


def test_quoted_literals_stand_first_and_more_of_them_higher() -> None:
    assert arrange(
        [1, 2, 3, 4], quoted=[dict.fromkeys((3, 4), True), {4: True}], rare=[], without_body=frozenset()
    ) == [4, 3, 1, 2]


def test_exact_case_stands_higher() -> None:
    assert arrange([1, 2, 3], quoted=[{1: False, 3: True}], rare=[], without_body=frozenset()) == [3, 1, 2]


def test_quoted_literals_prefer_hits_with_a_body() -> None:
    assert arrange([1, 2, 3, 4], quoted=[dict.fromkeys((3, 4), True)], rare=[], without_body={3}) == [4, 1, 2, 3]
    assert arrange([1, 2, 3, 4], quoted=[{3: True}], rare=[], without_body={3}) == [3, 1, 2, 4]


def test_rare_literals_take_the_first_three_places() -> None:
    order = arrange(list(range(1, 10)), quoted=[], rare=[[9, 8, 7, 6]], without_body=frozenset())
    assert order == [9, 8, 7, 1, 2, 3, 4, 5, 6]


def test_each_rare_literal_has_its_best_place_before_another_its_second() -> None:
    order = arrange([1, 2, 5, 6, 7, 8], quoted=[], rare=[[5, 6], [7], [8]], without_body=frozenset())
    assert order[:3] == [5, 7, 8]


def test_a_rare_literal_prefers_hits_with_a_body() -> None:
    assert arrange([1, 2, 3], quoted=[], rare=[[3, 2]], without_body={3})[0] == 2
    assert arrange([1, 2, 3], quoted=[], rare=[[3]], without_body={3})[0] == 3


def test_a_compound_is_brought_near_and_no_nearer() -> None:
    assert arrange([1, 2, 3, 4, 5], quoted=[], rare=[], near=[[5, 4]], without_body=frozenset()) == [1, 2, 4, 3, 5]
    assert arrange([1, 2, 3, 4, 5], quoted=[], rare=[], near=[[5, 1]], without_body=frozenset()) == [1, 2, 3, 4, 5]
    assert arrange([1, 2], quoted=[], rare=[], near=[[9]], without_body=frozenset()) == [1, 2]


@given(lists, st.lists(lists, max_size=3), st.lists(lists, max_size=3), lists)
def test_arranging_loses_nothing_and_adds_nothing(
    fused: list[int], quoted: list[list[int]], rare: list[list[int]], empty: list[int]
) -> None:
    order = arrange(
        fused, quoted=[dict.fromkeys(hits, True) for hits in quoted], rare=rare, near=rare, without_body=empty
    )
    assert sorted(order) == sorted(fused)
