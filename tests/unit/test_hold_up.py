"""R18: a worker that waits for its model's server says so, again and again, until it goes on."""

import asyncio

import pytest

from domain.errors import QueueError
from domain.files import FileCheck, Page
from scheduler import dispatch
from tests.support.queues import Dispatching
from tests.support.waiting import eventually_true
from workers.hold_up import HoldUpVoice


class Heard:
    def __init__(self, *, deaf_for: int = 0) -> None:
        self.causes: list[str] = []
        self.deaf_for = deaf_for

    async def say(self, cause: str) -> None:
        if self.deaf_for:
            self.deaf_for -= 1
            raise QueueError("nobody there")
        self.causes.append(cause)


async def test_a_cause_is_said_again_until_it_is_over() -> None:
    heard = Heard()
    voice = HoldUpVoice(heard.say, every_s=0.001)
    voice.tell("the server is away")
    await eventually_true(lambda: heard.causes.count("the server is away") >= 3)
    voice.tell("")
    await eventually_true(lambda: heard.causes[-1] == "")
    said = len(heard.causes)
    await asyncio.sleep(0.01)
    assert len(heard.causes) == said
    await voice.aclose()


async def test_another_cause_is_said_next() -> None:
    heard = Heard()
    voice = HoldUpVoice(heard.say, every_s=0.001)
    voice.tell("refused")
    voice.tell("timed out")
    await eventually_true(lambda: "timed out" in heard.causes)
    await voice.aclose()


async def test_a_queue_that_is_away_ends_nothing() -> None:
    heard = Heard(deaf_for=3)
    voice = HoldUpVoice(heard.say, every_s=0.001)
    voice.tell("the server is away")
    await eventually_true(lambda: bool(heard.causes))
    await voice.aclose()


async def test_closing_a_voice_that_never_spoke_is_nothing() -> None:
    await HoldUpVoice(Heard().say).aclose()


async def test_the_run_is_told_why_nothing_moves_and_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """R18: state `waiting` with its cause, then on by itself."""
    monkeypatch.setattr(dispatch, "LOOK_AFTER_S", 0.01)
    told: list[str] = []
    it = Dispatching(hold_up=told.append)
    it.queue.cause = "the embeddings server does not answer"
    pages = [Page(1, "docs", (FileCheck("docs/a.md"),))]
    dispatching = asyncio.create_task(it.dispatcher.dispatch(iter(pages)))
    await eventually_true(lambda: it.queue.cause in told)
    working = asyncio.create_task(it.work())
    await dispatching
    working.cancel()
    assert told[-1] == ""
    assert it.counted == ["docs/a.md"]
