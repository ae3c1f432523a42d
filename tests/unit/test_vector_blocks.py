"""Packed signs: a bit a dimension, the lowest first, rows padded to whole 8 bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.vector_blocks import pack_signs, row_bytes
from store.vectors import are_sound


@pytest.mark.parametrize(("dimension", "width"), [(1, 8), (63, 8), (64, 8), (65, 16), (384, 48), (768, 96)])
def test_rows_are_whole_words(dimension: int, width: int) -> None:
    assert row_bytes(dimension) == width
    assert len(pack_signs(struct.pack(f"<{dimension * 3}f", *[1.0] * dimension * 3), dimension)) == 3 * width


@given(st.integers(1, 130), st.data())
def test_a_bit_is_the_sign_of_its_number(dimension: int, data: st.DataObject) -> None:
    """0, and what is below it, is no bit."""
    values = data.draw(st.lists(st.sampled_from([-1.0, -0.0, 0.0, 1e-30, 2.0]), min_size=dimension, max_size=dimension))
    packed = pack_signs(struct.pack(f"<{dimension}f", *values), dimension)
    bits = [packed[place // 8] >> (place % 8) & 1 for place in range(8 * len(packed))]
    assert bits == [int(value > 0) for value in values] + [0] * (len(bits) - dimension)


def test_which_vectors_are_sound() -> None:
    """Finding 4, S1-14: finite, and of unit length within a thousandth."""
    rows = [
        (1.0, 0.0),
        (0.6, -0.8),
        (1.0005, 0.0),
        (1.01, 0.0),
        (0.0, 0.0),
        (float("nan"), 1.0),
        (float("inf"), 0.0),
        (3e38, 3e38),
    ]
    floats = b"".join(struct.pack("<2f", *row) for row in rows)
    assert are_sound(floats, 2) == [True, True, True, False, False, False, False, False]
