"""Reciprocal rank fusion, and the rules that set a hit above its score. Pure and deterministic.

Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", SIGIR 2009: a chunk's score is the sum of 1 / (60 + rank) over the lanes that hold it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from retrieval.answer import Lanes

K = 60
MAX_PROMOTED = 3

LaneName = Literal["words", "literal", "substring", "vector"]
LANE_ORDER: tuple[LaneName, ...] = ("words", "literal", "substring", "vector")


LaneRanks = Mapping[LaneName, Mapping[int, int]]
"""For each lane, the ranks (from 1) of the chunks that it holds."""


def rank_lanes(lanes: Mapping[LaneName, Sequence[int]]) -> LaneRanks:
    return {name: {chunk_id: rank for rank, chunk_id in enumerate(ids, 1)} for name, ids in lanes.items()}


def fuse(ranks: LaneRanks) -> dict[int, float]:
    """The chunks of all lanes with their scores, best first; ties by id, ascending (S0-35). Lanes weigh the same."""
    scores: dict[int, float] = {}
    for name in LANE_ORDER:  # sums of floats depend on their order: always this one
        for chunk_id, rank in ranks.get(name, {}).items():
            scores[chunk_id] = scores.get(chunk_id, 0.0) + 1 / (K + rank)
    if sum(bool(lane) for lane in ranks.values()) > 1:  # one lane alone is in order
        scores = dict(sorted(scores.items(), key=lambda one: (-one[1], one[0])))
    return scores


def put_behind(fused: dict[int, float], ids: Sequence[int], limit: int) -> None:
    """Chunks that are to be candidates only: those in no lane are ranked as if behind a full one."""
    for place, chunk_id in enumerate(ids, 1):
        fused.setdefault(chunk_id, 1 / (K + limit + place))


def lanes_of(ranks: LaneRanks, chunk_id: int) -> Lanes:
    return Lanes(*[ranks[name].get(chunk_id) if name in ranks else None for name in LANE_ORDER])


def arrange(
    fused: Sequence[int],
    *,
    quoted: Sequence[Mapping[int, bool]],
    rare: Sequence[Sequence[int]],
    near: Sequence[Sequence[int]] = (),
    without_body: Collection[int],
) -> list[int]:
    """The order of hits: quoted literals first, the best places of rare literals next, then as fused.

    `quoted` says of each hit of each quoted literal whether its case is exact: chunks with more of them stand
    higher, then those with more of exact case. `rare` holds the hits of each rare literal, best first:
    `MAX_PROMOTED` of all are set before the rest, each literal's best before any one's second. `near` holds the
    hits of each rare compound, one of which is to be in the first `MAX_PROMOTED`.
    Chunks without a body come last (R13), unless no hit of a quoted or rare literal has one.
    """
    if not (quoted or rare or near or without_body):
        return list(fused)
    ordered = dict.fromkeys([*_holding(quoted, fused, without_body), *_promoted(rare, fused, without_body)])
    ordered.update(dict.fromkeys([chunk_id for chunk_id in fused if chunk_id not in without_body]))
    ordered.update(dict.fromkeys(fused))
    order = list(ordered)
    for hits in near:
        _bring_near(order, hits)
    return order


def _bring_near(order: list[int], hits: Sequence[int]) -> None:
    """The best placed of the hits stands in the first `MAX_PROMOTED`; where none does, at the last of these."""
    wanted = frozenset(hits)
    if wanted.isdisjoint(order[:MAX_PROMOTED]):
        place = next((place for place, chunk_id in enumerate(order) if chunk_id in wanted), None)
        if place is not None:
            order.insert(MAX_PROMOTED - 1, order.pop(place))


def _holding(quoted: Sequence[Mapping[int, bool]], fused: Sequence[int], without_body: Collection[int]) -> list[int]:
    """Those that hold quoted literals, in the order that `arrange` says; without a body only if all are."""
    held = {chunk_id: sum(chunk_id in hits for hits in quoted) for chunk_id in fused} if quoted else {}
    first = [chunk_id for chunk_id, count in held.items() if count]
    first = [chunk_id for chunk_id in first if chunk_id not in without_body] or first
    exact = {chunk_id: sum(hits.get(chunk_id, False) for hits in quoted) for chunk_id in first}
    first.sort(key=lambda chunk_id: (-held[chunk_id], -exact[chunk_id]))
    return first


def _promoted(rare: Sequence[Sequence[int]], fused: Sequence[int], without_body: Collection[int]) -> list[int]:
    candidates = frozenset(fused if rare else ())
    queues = []
    for hits in rare:
        known = [chunk_id for chunk_id in hits if chunk_id in candidates]
        queues.append([chunk_id for chunk_id in known if chunk_id not in without_body] or known[:1])
    promoted: dict[int, None] = {}
    for round_number in range(MAX_PROMOTED):
        for hits in queues:
            if round_number < len(hits) and len(promoted) < MAX_PROMOTED:
                promoted.setdefault(hits[round_number])
    return list(promoted)
