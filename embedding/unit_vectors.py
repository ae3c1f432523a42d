"""Arithmetic of vectors as they are stored: little-endian float32 of unit length, as bytes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

STORED = np.dtype("<f4")


def unit_vectors(raw: NDArray[np.float32]) -> list[bytes]:
    """Each row of an array (n, dimension) at unit length; b"" for a row without any.

    Lengths are taken in float64: the same row gives the same bytes whatever stands beside it.
    """
    rows = raw.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    usable = np.isfinite(lengths) & (lengths > 0)
    units = (rows / np.where(usable, lengths, 1.0)[:, None]).astype(STORED)
    return [row.tobytes() if good else b"" for row, good in zip(units, usable.tolist(), strict=True)]


def mean_vector(vectors: Sequence[bytes], weights: Sequence[int]) -> bytes:
    """The weighted mean of unit vectors, again at unit length; b"" where they cancel each other out."""
    stacked = np.stack([np.frombuffer(vector, dtype=STORED) for vector in vectors]).astype(np.float64)
    mean = np.asarray(weights, dtype=np.float64) @ stacked / sum(weights)
    length = float(np.sqrt(mean @ mean))
    return (mean / length).astype(STORED).tobytes() if length > 1e-6 else b""
