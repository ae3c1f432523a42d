"""SIGTERM as Ctrl-C for a command whose work is in an event loop, also where SIGINT is ignored."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from app.event_loop import run_interruptibly
from cli.index_verb import terminated_like_interrupted
from tests.support.signals import sigint


@pytest.fixture(params=[False, True], ids=["SIGINT", "SIGINT ignored"], autouse=True)
def interruptible(request: pytest.FixtureRequest) -> Iterator[None]:
    with sigint(ignored=request.param):
        yield


def test_the_task_is_cancelled_and_cleans_up() -> None:
    seen: list[str] = []

    async def main() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
        run_interruptibly(main())
    assert seen == ["cleaned up"]


def test_a_second_one_waits_for_nothing() -> None:
    async def main() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(600)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(100):
                await asyncio.sleep(0)
            pytest.fail("it was waited for")

    with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
        run_interruptibly(main())


def test_outside_of_a_loop_it_interrupts_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), terminated_like_interrupted():
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("nothing was raised")


def test_nothing_of_it_stays() -> None:
    async def answer() -> int:
        return 7

    before = signal.getsignal(signal.SIGTERM)
    with terminated_like_interrupted():
        assert run_interruptibly(answer()) == 7
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is before
    assert run_interruptibly(answer()) == 7


def test_a_cancellation_of_its_own_is_no_interrupt() -> None:
    async def main() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError), terminated_like_interrupted():
        run_interruptibly(main())
