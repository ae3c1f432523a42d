"""Calls: what other processes ask of the writer of a service, by files in the base's home (app.roles.calls)."""

import threading
from pathlib import Path

import msgspec
import pytest

from app.roles.calls import (
    ANSWER_SUFFIX,
    CALL_SUFFIX,
    ActivateIdentity,
    ApplyGroup,
    Failed,
    answer_call,
    answered,
    await_answer,
    error_of,
    failed,
    place_call,
    read_call,
    waiting_calls,
)
from domain.errors import CancelledRunError, DiskFullError, KnowledgeError, LockedError
from domain.files import Outcome
from store.write_port import Applied, GroupResult, RemoveWrite, WriteGroup

GROUP = WriteGroup(removes=[RemoveWrite("docs/a.md", 5, 7)])


def _nothing() -> None:
    return


def test_a_call_and_its_answer_travel_whole(tmp_path: Path) -> None:
    call_id = place_call(tmp_path, ApplyGroup(GROUP))
    assert waiting_calls(tmp_path) == [call_id]
    call = read_call(tmp_path, call_id)
    assert isinstance(call, ApplyGroup)
    assert list(call.group.removes) == list(GROUP.removes)
    result = GroupResult((Applied("docs/a.md", "applied", Outcome.REMOVED),), 12, 0)
    answer_call(tmp_path, call_id, answered(result))
    assert waiting_calls(tmp_path) == [], "it is answered once"
    assert await_answer(tmp_path, call_id, GroupResult, _nothing) == result
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_writer_is_the_askers(tmp_path: Path) -> None:
    call_id = place_call(tmp_path, ActivateIdentity(1, 0))
    answer_call(tmp_path, call_id, failed(DiskFullError("no space", hint="make some")))
    with pytest.raises(DiskFullError, match="no space") as raised:
        await_answer(tmp_path, call_id, int, _nothing)
    assert raised.value.hint == "make some"


@pytest.mark.parametrize("kind", [LockedError, DiskFullError, CancelledRunError])
def test_every_error_is_known_by_its_code(kind: type[KnowledgeError]) -> None:
    assert type(error_of(Failed(kind.code, "m", "h"))) is kind


def test_a_code_that_is_not_known_is_an_error_all_the_same() -> None:
    assert type(error_of(Failed("of_the_future", "m", "h"))) is KnowledgeError


def test_who_gives_up_takes_the_call_back(tmp_path: Path) -> None:
    call_id = place_call(tmp_path, ActivateIdentity(1, 0))

    def give_up() -> None:
        raise CancelledRunError("cancelled")

    with pytest.raises(CancelledRunError):
        await_answer(tmp_path, call_id, int, give_up)
    assert waiting_calls(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_an_answer_is_waited_for(tmp_path: Path) -> None:
    call_id = place_call(tmp_path, ActivateIdentity(3, 0))
    answering = threading.Timer(0.1, lambda: answer_call(tmp_path, call_id, answered(41)))
    answering.start()
    assert await_answer(tmp_path, call_id, int, _nothing) == 41
    answering.join()


def test_calls_are_answered_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    import os

    ids = [place_call(tmp_path, ActivateIdentity(number, 0)) for number in range(5)]
    for age, call_id in enumerate(reversed(ids)):
        os.utime(tmp_path / f"{call_id}{CALL_SUFFIX}", ns=(age, age))
    assert waiting_calls(tmp_path) == [*reversed(ids)]


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"\x81\xa4type\xa4drop", msgspec.msgpack.encode({"type": "apply"})])
def test_what_is_no_call_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / f"x{CALL_SUFFIX}").write_bytes(raw)
    with pytest.raises((ValueError, msgspec.DecodeError)):
        read_call(tmp_path, "x")
    assert not (tmp_path / f"x{ANSWER_SUFFIX}").exists()
