"""What travels in the queue: checked types, never anything executable (C-10, T26)."""

import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from domain.files import FileCheck, Page
from scheduler.queue.payloads import (
    CHECK_PAGE,
    LAST_MS,
    PARK,
    PAYLOAD_CAP_BYTES,
    PayloadError,
    WritePayload,
    decode_check,
    decode_write,
    deserialize_job,
    encode_check,
    encode_write,
    serialize_job,
)
from tests.support.payloads import BAD_CHECKS, BAD_JOBS, BAD_WRITES, NOT_PAYLOADS, job

PAGE = Page(3, "docs", (FileCheck("docs/a.md", b"h" * 32), FileCheck("docs/\u00e9 #0.md")))
WRITE = WritePayload(2, "base", 2, 1, 1, 3, "1-3-1.page")


def test_a_check_comes_back_as_it_went() -> None:
    payload = decode_check(encode_check("base", 2, 1, 4, PAGE))
    assert payload.page() == PAGE
    assert (payload.base_id, payload.generation, payload.run, payload.attempt) == ("base", 2, 1, 4)


def test_a_write_comes_back_as_it_went() -> None:
    assert decode_write(encode_write(WRITE)) == WRITE


def test_a_job_comes_back_with_what_arq_needs() -> None:
    raw = serialize_job({"t": None, "f": CHECK_PAGE, "a": (b"x",), "k": {}, "et": 5})
    assert deserialize_job(raw) == {"t": None, "f": CHECK_PAGE, "a": (b"x",), "k": {}, "et": 5}


def test_the_number_of_tries_is_never_taken_from_a_payload() -> None:
    """arq would give up a job that claims to have been tried often, and not park it."""
    assert deserialize_job(job(t=99))["t"] is None


@pytest.mark.parametrize("raw", [*NOT_PAYLOADS.values(), *BAD_JOBS.values()], ids=[*NOT_PAYLOADS, *BAD_JOBS])
def test_a_bad_job_is_to_be_parked(raw: bytes) -> None:
    parked = deserialize_job(raw)
    assert parked == {"t": None, "f": PARK, "a": (raw[:PAYLOAD_CAP_BYTES],), "k": {}, "et": 0}


@pytest.mark.parametrize("raw", [*NOT_PAYLOADS.values(), *BAD_CHECKS.values()], ids=[*NOT_PAYLOADS, *BAD_CHECKS])
def test_a_bad_check_is_refused(raw: bytes) -> None:
    with pytest.raises(PayloadError):
        decode_check(raw)


@pytest.mark.parametrize("raw", [*NOT_PAYLOADS.values(), *BAD_WRITES.values()], ids=[*NOT_PAYLOADS, *BAD_WRITES])
def test_a_bad_write_is_refused(raw: bytes) -> None:
    with pytest.raises(PayloadError):
        decode_write(raw)


def test_a_refusal_never_says_what_the_payload_holds() -> None:
    with pytest.raises(PayloadError) as refused:
        decode_check(msgspec.msgpack.encode(["hunter2"] * 8))
    assert "hunter2" not in str(refused.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=300) | VALUES.map(msgspec.msgpack.encode))
def test_no_bytes_make_the_deserializer_raise(raw: bytes) -> None:
    """T26: what it gives has the types that arq relies on, whatever comes in."""
    given_job = deserialize_job(raw)
    assert given_job["f"] in (CHECK_PAGE, "write_page", PARK)
    assert isinstance(given_job["a"], tuple)
    assert all(isinstance(argument, bytes) for argument in given_job["a"])
    assert isinstance(given_job["et"], int)
    assert 0 <= given_job["et"] <= LAST_MS


@given(
    st.fixed_dictionaries(
        {}, optional={"t": VALUES, "f": st.just(CHECK_PAGE) | VALUES, "a": VALUES, "k": VALUES, "et": VALUES}
    )
)
def test_no_dictionary_in_the_shape_of_a_job_makes_it_raise(fields: dict[str, Any]) -> None:
    good: dict[str, Any] = {"t": None, "f": CHECK_PAGE, "a": [b""], "k": {}, "et": 1}
    given_job = deserialize_job(msgspec.msgpack.encode(good | fields))
    assert given_job["f"] in (CHECK_PAGE, PARK)


@pytest.mark.parametrize("decode", [decode_check, decode_write])
@given(st.binary(max_size=300) | VALUES.map(msgspec.msgpack.encode))
def test_no_bytes_raise_anything_but_a_payload_error(decode: Callable[[bytes], object], raw: bytes) -> None:
    try:
        decode(raw)
    except PayloadError:
        return


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.binary(max_size=40)), max_size=8))
def test_every_page_comes_back_as_it_went(files: list[tuple[str, bytes]]) -> None:
    page = Page(1, "docs", tuple(FileCheck(key, known) for key, known in files))
    assert decode_check(encode_check("base", 1, 1, 1, page)).page() == page


def test_pickle_is_bytes_like_any_other() -> None:
    """Finding 7: a pickled call in the queue is parked, not run."""
    raw = pickle.dumps(replace(PAGE, root="x"))
    assert deserialize_job(raw)["f"] == PARK
