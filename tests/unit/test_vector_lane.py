"""The vector lane's ranks, and the modes as people write them."""

from collections.abc import Sequence
from typing import cast

import pytest

from domain.errors import UsageError
from retrieval.answer import Lanes
from retrieval.fusion import fuse, lanes_of, rank_lanes
from retrieval.modes import parse_mode, parse_similarity
from retrieval.vector import MeaningSnapshot, VectorLane, vector_lane
from store.port import Scope, Visibility
from store.vector_port import VectorFind, VectorHit


class Nearest:
    """A snapshot that knows what is nearest."""

    def __init__(self, hits: Sequence[tuple[int, float]]) -> None:
        self._hits = [VectorHit(*hit) for hit in hits]

    def nearest(self, vector: bytes, *, limit: int, scope: Scope | None, visibility: Visibility) -> VectorFind:
        return VectorFind(self._hits, "exact")


def lane(hits: Sequence[tuple[int, float]], *, min_similarity: float = -1.0) -> VectorLane:
    return vector_lane(
        cast(MeaningSnapshot, Nearest(hits)),
        b"",
        limit=50,
        min_similarity=min_similarity,
        scope=None,
        visibility=Visibility.everything(),
    )


def test_copies_share_a_rank_and_stand_by_id() -> None:
    """S0-35: of one rank, the lower id first."""
    found = lane([(9, 0.9), (2, 0.8), (7, 0.8), (5, 0.8), (1, 0.7)])
    assert list(found.ranks.items()) == [(9, 1), (2, 2), (5, 2), (7, 2), (1, 3)]
    assert found.similarities[7] == 0.8
    assert found.method == "exact"


def test_what_is_less_similar_is_left_out_and_counted() -> None:
    hits = [(1, 0.9), (2, 0.5), (3, 0.5), (4, 0.4999), (5, -0.2)]
    found = lane(hits, min_similarity=0.5)
    assert (list(found.ranks), found.dropped) == ([1, 2, 3], 2)
    assert lane(hits).dropped == 0
    assert lane([], min_similarity=0.5).dropped == 0


def test_the_vector_lane_weighs_as_much_as_the_others() -> None:
    """S2-48, S1-11: 1 / (60 + rank) each; ties by id."""
    ranks = {**rank_lanes({"words": [1, 2]}), "vector": lane([(2, 0.9), (3, 0.8), (4, 0.8)]).ranks}
    fused = fuse(ranks)
    assert list(fused) == [2, 1, 3, 4]
    assert fused == pytest.approx({2: 1 / 61 + 1 / 62, 1: 1 / 61, 3: 1 / 62, 4: 1 / 62})
    assert lanes_of(ranks, 2) == Lanes(words=2, vector=1)
    assert lanes_of(ranks, 4) == Lanes(vector=2)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("auto", "auto"), ("lexical", "lexical"), ("bm25", "lexical"), ("keyword", "lexical"), ("vector", "vector"),
        ("semantic", "vector"), ("hybrid", "hybrid"), (" Hybrid ", "hybrid"),
    ],
)  # fmt: skip
def test_modes_and_their_other_names(text: str, mode: str) -> None:
    """R5"""
    assert parse_mode(text) == mode


@pytest.mark.parametrize("text", ["", "fuzzy", "auto,vector", "x" * 500])
def test_an_unknown_mode_is_told_with_the_known_ones(text: str) -> None:
    with pytest.raises(UsageError) as told:
        parse_mode(text)
    assert len(told.value.message) < 120
    assert "lexical" in told.value.hint


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), ("-1", -1.0), ("1", 1.0), (" .25 ", 0.25)])
def test_a_similarity(text: str, value: float) -> None:
    assert parse_similarity(text) == value


@pytest.mark.parametrize("text", ["", "1.01", "-1.01", "nan", "inf", "50%", "half"])
def test_what_is_no_similarity(text: str) -> None:
    with pytest.raises(UsageError):
        parse_similarity(text)
