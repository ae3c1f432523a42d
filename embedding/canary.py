"""Whether a server still makes the vectors that an index holds: three fixed texts, embedded again (S1-15, T25)."""

from domain.errors import EmbeddingsChangedError
from domain.vectors import CANARY_TOLERANCE, PinnedIdentity
from embedding.port import Probe

REINDEX_HINT = "run `knowledge index --reindex`: new vectors are made beside the old ones, which answer until then"


def refuse_changed(pinned: PinnedIdentity, probe: Probe) -> None:
    """Raises EmbeddingsChangedError where a server answers otherwise than when the identity was pinned."""
    difference = canary_difference(pinned, probe)
    if difference:
        raise EmbeddingsChangedError(f"the embeddings have changed: {difference}", hint=REINDEX_HINT)


def canary_difference(pinned: PinnedIdentity, probe: Probe) -> str:
    """In words what a probe of the canary texts shows to be another model; "" where all agrees (T25)."""
    identity = pinned.identity
    if probe.dimension != identity.dimension:
        return f"vectors have {probe.dimension} dimensions, those of the index {identity.dimension}"
    if probe.served_model != identity.served_model:
        return f"the server answers as {probe.served_model!r}, the index was made with {identity.served_model!r}"
    if probe.normalised != identity.normalised:
        return "the server's vectors are " + ("of unit length now" if probe.normalised else "not of unit length now")
    import numpy as np

    for pinned_bytes, bytes_now in zip(pinned.canary, probe.vectors, strict=True):
        cosine = float(np.dot(np.frombuffer(pinned_bytes, "<f4"), np.frombuffer(bytes_now, "<f4")))
        if abs(1.0 - cosine) > CANARY_TOLERANCE:
            return f"the same text has another vector (cosine {cosine:.4f}): another model answers under the same name"
    return ""
