"""Texts that are too long for a model: where they are cut, and what their vector is (fault 28, R21)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.vectors import sent_text
from embedding.port import EmbeddedText
from embedding.splitting import (
    FLOOR_CHARS,
    Part,
    bounded_parts,
    halves,
    joined,
    prefix_chars,
    reason_not_to_ask,
)
from embedding.unit_vectors import mean_vector, unit_vectors

SENTENCE = "The keeper of the lighthouse wrote down the weather of the day. "


def unit(*numbers: float) -> bytes:
    (vector,) = unit_vectors(np.array([numbers], dtype=np.float32))
    return vector


def numbers(vector: bytes) -> list[float]:
    values: list[float] = np.frombuffer(vector, dtype="<f4").tolist()
    return values


@pytest.mark.parametrize("text", ["", "  \n\t", "\u00a0\u2003", "\x0b\x1f"])
def test_no_model_is_asked_about_nothing(text: str) -> None:
    """S0-28."""
    assert reason_not_to_ask(text) == "there is no text in it"


def test_what_cannot_be_sent_is_not_asked_about() -> None:
    assert reason_not_to_ask("a \ud800 b") == "it is not valid Unicode"
    assert reason_not_to_ask("a") == ""


def test_a_text_is_cut_behind_its_sentences() -> None:
    text = SENTENCE * 20
    parts = halves(text)
    assert len(parts) > 1
    assert all(part.text.endswith("day.") and part.text.startswith("The keeper") for part in parts)
    assert " ".join(part.text for part in parts) == text.strip()
    assert all(part.weight_chars == len(part.text) for part in parts)


def test_a_size_that_is_known_to_be_taken_is_cut_to_at_once() -> None:
    parts = halves(SENTENCE * 100, at_most_bytes=700)
    assert 8 < len(parts) < 20
    assert all(len(part.text.encode()) <= 700 for part in parts)


@given(st.text(min_size=1, max_size=3_000), st.integers(0, 900))
def test_cutting_ends(text: str, at_most_bytes: int) -> None:
    """However a text looks: each round at least halves it, and at the floor there is no other."""
    texts, rounds = [text], 0
    while texts:
        longest = max(len(each.encode("utf-8", "surrogatepass")) for each in texts)
        texts = [part.text for each in texts for part in halves(each, at_most_bytes=at_most_bytes)]
        assert all(2 * len(each.encode("utf-8", "surrogatepass")) <= longest + 1 for each in texts)
        rounds += 1
        assert rounds < 10


@given(st.text(alphabet="ab .\n\u6f22\U0001f600", min_size=FLOOR_CHARS + 1, max_size=2_000))
def test_nothing_but_blanks_is_lost(text: str) -> None:
    parts = halves(text)
    assert "".join("".join(part.text for part in parts).split()) == "".join(text.split())


def test_a_text_at_the_floor_is_not_cut() -> None:
    assert halves("x" * FLOOR_CHARS) == []
    assert len(halves("x" * (FLOOR_CHARS + 1))) == 2


def test_a_prefix_stands_before_every_part() -> None:
    """A model that wants one before a text wants it before each part; what it stands for is not counted twice."""
    prefix = "search_document: "
    parts = halves(sent_text(prefix, "Coast > Lights", SENTENCE * 20), prefix)
    assert len(parts) > 1
    assert all(part.text.startswith(prefix) for part in parts)
    assert all(part.weight_chars == len(part.text) - len(prefix) for part in parts)
    assert [part.text.count(prefix) for part in parts] == [1] * len(parts)


@pytest.mark.parametrize("prefix", ["title: {title} | text: ", "{title}", "passage: {title}", "passage: "])
@pytest.mark.parametrize("heading_path", ["", "Coast > Lights"])
def test_the_prefix_of_a_text_is_found(prefix: str, heading_path: str) -> None:
    text = sent_text(prefix, heading_path, "The body.")
    filled = prefix.replace("{title}", heading_path or "none")
    found = prefix_chars(text, prefix)
    if prefix.endswith("{title}"):
        assert filled.startswith(text[:found]), "what follows {title} cannot be told from it"
    else:
        assert text[:found] == filled


def test_a_text_without_the_prefix_is_cut_as_it_is() -> None:
    assert prefix_chars("Any text", "passage: ") == 0
    assert prefix_chars("title: without an end", "title: {title} | text: ") == 0


def test_parts_for_which_nobody_is_asked_first_keep_the_bound() -> None:
    """R21: over 128 KiB."""
    parts = bounded_parts("passage: " + SENTENCE * 5_000, "passage: ", 128 * 1024)
    assert len(parts) == 3
    assert all(len(part.text.encode()) <= 128 * 1024 and part.text.startswith("passage: ") for part in parts)


def test_the_mean_is_weighted_by_characters_and_has_unit_length() -> None:
    """Fault 28."""
    parts = [Part("aaa", 300), Part("b", 100)]
    whole = joined(parts, [EmbeddedText(unit(2, 0)), EmbeddedText(unit(0, 5))])
    assert np.allclose(numbers(whole.vector), np.array([3, 1]) / np.sqrt(10))
    assert whole.parts == 2


def test_parts_of_parts_are_counted_by_the_leaves() -> None:
    parts = [Part("a", 10), Part("b", 10)]
    whole = joined(parts, [EmbeddedText(unit(1, 0), parts=3), EmbeddedText(unit(0, 1))])
    assert whole.parts == 4


def test_a_text_is_refused_with_one_of_its_parts() -> None:
    parts = [Part("a", 10), Part("b", 10)]
    whole = joined(parts, [EmbeddedText(unit(1, 0)), EmbeddedText(b"", refusal="the model refused it: status 400")])
    assert whole == EmbeddedText(b"", refusal="the model refused it: status 400")


def test_no_vector_is_made_of_parts_that_cancel_each_other_out() -> None:
    parts = [Part("a", 10), Part("b", 10)]
    whole = joined(parts, [EmbeddedText(unit(1, 0)), EmbeddedText(unit(-1, 0))])
    assert whole.vector == b""
    assert whole.refusal
    assert joined([], []).refusal


def test_a_vector_is_stored_little_endian_at_unit_length_and_never_zero() -> None:
    """S2-42, S0-30."""
    rows = np.array([[3, 4], [0, 0], [1e-30, 0], [float("nan"), 1]], dtype=np.float32)
    long, zero, small, odd = unit_vectors(rows)
    assert long == np.array([0.6, 0.8], dtype="<f4").tobytes()
    assert (zero, odd) == (b"", b"")
    assert numbers(small) == [1, 0]
    assert numbers(mean_vector([long, long], [1, 7])) == pytest.approx([0.6, 0.8])
