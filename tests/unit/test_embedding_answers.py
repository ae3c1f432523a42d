"""Answers of a model's server are believed whole or not at all (S0-29, S0-30, T23, T24)."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.answers import read_answer
from embedding.failures import Rejected
from tests.support.embedding_lies import LIES, Piece, answer_json
from tests.support.embedding_server import vector_of

DIMENSION = 8
TEXTS = ("one", "two", "three", "four")


def pieces(texts: tuple[str, ...] = TEXTS) -> list[Piece]:
    return [Piece(b"%d" % index, json.dumps(vector_of(text, DIMENSION)).encode()) for index, text in enumerate(texts)]


def body(first: object = None, **more: object) -> bytes:
    """An answer to one text."""
    vector = [1.0, 0.0] if first is None else first
    return json.dumps({"data": [{"index": 0, "embedding": vector}], "model": "m", **more}).encode()


@given(order=st.permutations(range(len(TEXTS))))
def test_vectors_stand_where_their_own_index_says(order: list[int]) -> None:
    """S0-29: the order of the objects means nothing."""
    whole = pieces()
    answer = read_answer(answer_json([whole[position] for position in order], b'"served"'), len(TEXTS))
    assert answer.served_model == "served"
    assert answer.vectors.dtype == np.float32
    assert answer.vectors.shape == (len(TEXTS), DIMENSION)
    for row, text in zip(answer.vectors, TEXTS, strict=True):
        assert row.tolist() == np.array(vector_of(text, DIMENSION), np.float32).tolist()


def is_answered_200(lie: str) -> bool:
    return LIES[lie](pieces(), b'"m"').status == 200


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("lie", [name for name in LIES if is_answered_200(name)])
def test_a_lie_refuses_the_whole_answer(lie: str, count: int) -> None:
    """S0-30, T23, T24: in any order of the objects."""
    if (lie, count) == ("wrong_dimension", 1):
        return  # one vector has nothing to differ from; the client knows what was expected
    for seed in range(4):
        shuffled = pieces(TEXTS[:count])
        random.Random(seed).shuffle(shuffled)
        with pytest.raises(Rejected) as caught:
            read_answer(LIES[lie](shuffled, b'"m"').body, count)
        assert caught.value.status == 0
        assert caught.value.dimension is None
        assert not caught.value.is_too_long
        assert not caught.value.is_refusing


def test_there_are_enough_ways_of_lying() -> None:
    """P6 asks for 16."""
    assert sum(is_answered_200(name) for name in LIES) >= 30


@pytest.mark.parametrize("first", [1e-20, 1e30])
def test_a_norm_that_no_float_can_hold_is_refused(first: float) -> None:
    """T24: such a vector cannot be brought to unit length."""
    with pytest.raises(Rejected):
        read_answer(body([first, 0.0]), 1)


def test_numbers_that_vanish_in_float32_make_a_zero_vector() -> None:
    """T24."""
    with pytest.raises(Rejected):
        read_answer(body([1e-60, 1e-60]), 1)


def test_whole_numbers_are_numbers() -> None:
    assert read_answer(body([3, 4]), 1).vectors.tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(("vector", "is_normalised"), [([0.6, 0.8], True), ([3.0, 4.0], False), ([0.6, 0.79], False)])
def test_what_is_normalised_is_noted_and_left_as_it_is(vector: list[float], is_normalised: bool) -> None:
    answer = read_answer(body(vector), 1)
    assert answer.normalised is is_normalised
    assert answer.vectors.tolist() == np.array([vector], np.float32).tolist()


def test_fields_that_nobody_asked_for_are_no_fault() -> None:
    more = {"error": None, "usage": {"prompt_tokens": 7}, "object": "list", "id": "x"}
    assert read_answer(body(None, **more), 1).served_model == "m"


@pytest.mark.parametrize("model", [None, ""])
def test_a_server_may_leave_its_model_out(model: str | None) -> None:
    assert read_answer(body(None, model=model), 1).served_model == ""


@pytest.mark.parametrize("model", ["x" * 257, "a\x1b]0;b", "a\nb", "\u202eevil", 7, ["m"]])
def test_a_name_that_cannot_be_shown_is_refused(model: object) -> None:
    with pytest.raises(Rejected):
        read_answer(body(None, model=model), 1)


@pytest.mark.parametrize("error", [{}, "no", False, 0, [], {"message": "x"}])
def test_any_error_beside_the_data_is_one(error: object) -> None:
    """S0-30: an error payload under status 200."""
    with pytest.raises(Rejected):
        read_answer(body(None, error=error), 1)


@given(st.binary(max_size=300))
def test_noise_is_refused_and_nothing_else_happens(noise: bytes) -> None:
    with pytest.raises(Rejected):
        read_answer(noise, 2)


@given(position=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_one_wrong_byte_never_misplaces_a_vector(position: int, byte: int) -> None:
    """P6: a changed byte of an index makes a gap and a duplicate; one of a number is that number's alone."""
    honest = answer_json(pieces(), b'"m"')
    position %= len(honest)
    bent = honest[:position] + bytes([byte]) + honest[position + 1 :]
    try:
        answer = read_answer(bent, len(TEXTS))
    except Rejected:
        return
    right = read_answer(honest, len(TEXTS)).vectors
    assert int(np.sum(answer.vectors != right)) <= 1


def test_words_of_a_refusal_are_short_and_hold_no_values() -> None:
    secret = "salary of the director"
    for bad in (body([secret]), body(secret), body(None, model={secret: 1}), secret.encode()):
        with pytest.raises(Rejected) as caught:
            read_answer(bad, 1)
        assert secret not in caught.value.words
        assert len(caught.value.words) < 200
