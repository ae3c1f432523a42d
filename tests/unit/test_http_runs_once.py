"""A request that is sent again under its key begins nothing again."""

from collections.abc import Callable

import pytest

from domain.errors import RefusedError
from server.http.asked_before import AskedBefore


def counting() -> Callable[[], int]:
    begun: list[int] = []

    def begin() -> int:
        begun.append(len(begun) + 1)
        return begun[-1]

    return begin


def test_a_key_has_one_run() -> None:
    asked, begin = AskedBefore(), counting()
    assert [asked.once("a", "x", begin), asked.once("a", "x", begin), asked.once("b", "x", begin)] == [1, 1, 2]
    assert [asked.once("", "x", begin), asked.once("", "x", begin)] == [3, 4]
    with pytest.raises(RefusedError):
        asked.once("a", "y", begin)
    assert asked.once("c", "x", begin) == 5


def test_what_fails_is_not_remembered() -> None:
    asked = AskedBefore()

    def fails() -> int:
        raise RefusedError("no")

    with pytest.raises(RefusedError):
        asked.once("a", "x", fails)
    assert asked.once("a", "y", counting()) == 1


def test_the_newest_keys_are_remembered() -> None:
    asked, begin = AskedBefore(most=3), counting()
    for key in "abcd":
        asked.once(key, "x", begin)
    assert [asked.once("b", "x", begin), asked.once("d", "x", begin), asked.once("a", "x", begin)] == [2, 4, 5]
