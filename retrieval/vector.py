"""The vector lane: chunks whose text stands near the query in meaning, by the cosine of their vectors (S1-11)."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from domain.status import Tier
from store.port import Scope, SearchSnapshot, Visibility
from store.vector_port import NO_VECTORS, VectorMethod, VectorSnapshot, VectorStatus


class MeaningSnapshot(SearchSnapshot, VectorSnapshot, Protocol):
    """A store with both tiers."""


class QueryVector(NamedTuple):
    """What a search knows of its query's meaning before it looks: the tier that will rank, and the vector.

    Made by retrieval.query_vector, outside of any transaction: a server may take long to answer.
    """

    tier: Tier = Tier.LEXICAL
    vector: bytes = b""  # b"": words alone
    status: VectorStatus = NO_VECTORS  # of the state that is searched


WORDS_ALONE = QueryVector()


class VectorLane(NamedTuple):
    """`ranks` (from 1) by chunk, nearest first: the copies of one text share a rank, and fill the lane no more than
    one of them would."""

    ranks: Mapping[int, int] = {}
    similarities: Mapping[int, float] = {}
    dropped: int = 0  # candidates that are less similar than was asked for
    method: VectorMethod = "none"


def vector_lane(
    snapshot: MeaningSnapshot,
    vector: bytes,
    *,
    limit: int,
    min_similarity: float,
    scope: Scope | None,
    visibility: Visibility,
) -> VectorLane:
    """Raises EmbeddingsChangedError for a vector of another dimension than the stored ones (S0-41)."""
    found = snapshot.nearest(vector, limit=limit, scope=scope, visibility=visibility)
    ranks: dict[int, int] = {}
    similarities: dict[int, float] = {}
    rank, before = 0, 2.0
    for hit in found.hits:
        if hit.similarity < min_similarity:
            break
        if hit.similarity < before:
            rank, before = rank + 1, hit.similarity
        ranks[hit.chunk] = rank
        similarities[hit.chunk] = hit.similarity
    ranks = dict(sorted(ranks.items(), key=lambda one: (one[1], one[0])))
    return VectorLane(ranks, similarities, len(found.hits) - len(ranks), found.method)
