"""What many ask for is looked at once for all of them."""

import asyncio

import pytest

from server.http.shared_looks import MOST_KEPT, SharedLooks


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def test_those_who_come_together_share_a_look() -> None:
    looks, seen = SharedLooks(), 0
    may_end = asyncio.Event()

    async def look() -> int:
        nonlocal seen
        seen += 1
        await may_end.wait()
        return seen

    asked = [asyncio.create_task(looks.at("runs", look, at_most_old_s=10)) for _ in range(5)]
    await asyncio.sleep(0)
    may_end.set()
    assert await asyncio.gather(*asked) == [1] * 5


async def test_what_is_too_old_is_looked_at_again() -> None:
    clock, numbers = Clock(), iter(range(10))
    looks = SharedLooks(clock)

    async def look() -> int:
        return next(numbers)

    assert [await looks.at("a", look, at_most_old_s=1), await looks.at("a", look, at_most_old_s=1)] == [0, 0]
    clock.now_s += 1
    assert await looks.at("a", look, at_most_old_s=1) == 1
    assert await looks.at("b", look, at_most_old_s=1) == 2


async def test_who_leaves_and_what_fails_keeps_nobody_from_looking() -> None:
    looks = SharedLooks()

    async def never() -> int:
        await asyncio.Event().wait()
        raise AssertionError

    async def fails() -> int:
        raise ValueError("no")

    async def works() -> int:
        return 7

    leaving = asyncio.create_task(looks.at("a", never, at_most_old_s=10))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(looks.at("a", works, at_most_old_s=10))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await waiting == 7
    with pytest.raises(ValueError, match="no"):
        await looks.at("b", fails, at_most_old_s=10)
    assert await looks.at("b", works, at_most_old_s=10) == 7


async def test_only_so_many_are_remembered() -> None:
    looks, seen = SharedLooks(), []

    async def look() -> int:
        seen.append(1)
        return len(seen)

    for number in range(3 * MOST_KEPT):
        await looks.at(number, look, at_most_old_s=3600)
        assert await looks.at(number, look, at_most_old_s=3600) == number + 1
    assert await looks.at(2 * MOST_KEPT + 1, look, at_most_old_s=3600) == 2 * MOST_KEPT + 2
    assert await looks.at(0, look, at_most_old_s=3600) == 3 * MOST_KEPT + 1
