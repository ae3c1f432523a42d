"""How good a ranking is, measured against judgements. Pure; a document without a judgement is not relevant.

A ranking is ids, best first, no id twice. `gains` says how much finding a document is worth: what is not in it, or
stands at 0 or below, is worth nothing. All values are from 0 to 1, and 0 where nothing is worth anything.
"""

from collections.abc import Mapping, Sequence
from math import fsum, log2

NDCG_DEPTH = 10
RECALL_DEPTH = 50
EQUALLY_NEAR = 1e-6  # of a cosine: float32 sums differ by as much with the order in which they are made


def ndcg(ranked: Sequence[str], gains: Mapping[str, float], depth: int = NDCG_DEPTH) -> float:
    """Normalised discounted cumulated gain of the first `depth`: each gain divided by log2(rank + 1), over what the
    best possible order has.

    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002, with the
    discount that trec_eval's ndcg_cut takes: it begins at the second rank.
    """
    best = _discounted(sorted(gains.values(), reverse=True)[:depth])
    return _discounted([gains.get(name, 0.0) for name in ranked[:depth]]) / best if best > 0 else 0.0


def recall(ranked: Sequence[str], gains: Mapping[str, float], depth: int = RECALL_DEPTH) -> float:
    """The share of the relevant documents that stand among the first `depth`."""
    relevant = {name for name, gain in gains.items() if gain > 0}
    return len(relevant.intersection(ranked[:depth])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranked: Sequence[str], gains: Mapping[str, float]) -> float:
    """One divided by the rank of the first relevant document; its mean over queries is MRR."""
    return next((1 / rank for rank, name in enumerate(ranked, 1) if gains.get(name, 0.0) > 0), 0.0)


def recall_of_nearest(found: Sequence[float], nearest: Sequence[float], depth: int) -> float:
    """The share of the `depth` nearest that a search has found, by their similarities, best first in both.

    A vector as near as the last of the nearest is one of them, whichever of several equally near it is. 1 where there
    is nothing to find.
    """
    wanted = nearest[:depth]
    if not wanted:
        return 1.0
    near_enough = sum(similarity >= wanted[-1] - EQUALLY_NEAR for similarity in found[:depth])
    return min(near_enough, len(wanted)) / len(wanted)


def _discounted(gains: Sequence[float]) -> float:
    return fsum(max(gain, 0.0) / log2(rank + 1) for rank, gain in enumerate(gains, 1))
