"""From the body of an answer to vectors in the order of the texts, or to a refusal of all of it (S0-29, S0-30).

A vector is placed by the index that its own object names, and by nothing else. Nothing is repaired or guessed.
"""

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from domain.decoding import UNDECODABLE
from domain.vectors import CANARY_TOLERANCE
from embedding.failures import Rejected

Vectors = npt.NDArray[np.float32]

MAX_MODEL_CHARS = 256
# outside of these a norm in float32 is no longer exact, as its squares leave the range of the type
SMALLEST_NORM = 1e-15
LARGEST_NORM = 1e15
_NOTHING = (b"", b"null")


class BatchAnswer(NamedTuple):
    served_model: str  # "": the server does not name it
    vectors: Vectors  # (texts, dimension), as the server gave them
    normalised: bool  # all had unit length, within CANARY_TOLERANCE


class _Object(msgspec.Struct):
    embedding: list[float]
    index: Any = None  # of whatever type it came: 0.0 and true would pass for numbers


class _Body(msgspec.Struct):
    data: list[_Object] | None = None
    model: str | None = None
    error: msgspec.Raw = msgspec.Raw(b"")


_decoder = msgspec.json.Decoder(_Body)


def read_answer(body: bytes | bytearray, count: int) -> BatchAnswer:
    """The `count` vectors of an answer with status 200. Raises Rejected where anything is wrong with any of them."""
    try:
        answer = _decoder.decode(body)
    except UNDECODABLE as error:
        # the words of the decoder name places and types, never values
        raise Rejected(f"the answer is not as it should be: {str(error)[:120]}") from error
    if bytes(answer.error) not in _NOTHING:
        raise Rejected("the answer is an error, with status 200")
    model = answer.model or ""
    if len(model) > MAX_MODEL_CHARS or not model.isprintable():
        raise Rejected("the answer names a model that cannot be written down")
    vectors = _array(_ordered(answer.data or [], count))
    return BatchAnswer(model, vectors, _norms_are_one(vectors))


def _ordered(objects: list[_Object], count: int) -> list[list[float]]:
    """The vectors in the order of the texts: `count` objects with distinct indexes in range leave no gap."""
    if len(objects) != count:
        raise Rejected(f"{len(objects)} vectors for {count} texts")
    placed: dict[int, list[float]] = {}
    for item in objects:
        if type(item.index) is not int:
            raise Rejected("an index is missing or no whole number")
        if not 0 <= item.index < count:
            raise Rejected("an index is out of range")
        if item.index in placed:
            raise Rejected(f"index {item.index} came twice")
        placed[item.index] = item.embedding
    return [placed[index] for index in range(count)]


def _array(vectors: list[list[float]]) -> Vectors:
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1:
        raise Rejected(f"vectors of {len(lengths)} lengths in one answer")
    if not lengths.pop():
        raise Rejected("empty vectors")
    doubles = np.array(vectors, dtype=np.float64)
    if not np.all(np.abs(doubles) <= np.finfo(np.float32).max):  # also where it is not a number
        raise Rejected("a number is not finite, or beyond what is stored")
    singles = doubles.astype(np.float32)
    norms = _norms(singles)
    if not np.all((norms >= SMALLEST_NORM) & (norms <= LARGEST_NORM)):
        raise Rejected("a vector is zero or has no sensible length")
    return singles


def _norms(vectors: Vectors) -> npt.NDArray[np.float64]:
    doubles = vectors.astype(np.float64)
    squares: npt.NDArray[np.float64] = np.einsum("ij,ij->i", doubles, doubles)
    return np.sqrt(squares)


def _norms_are_one(vectors: Vectors) -> bool:
    return bool(np.all(np.abs(_norms(vectors) - 1.0) <= CANARY_TOLERANCE))
