"""What is asked of a run is looked at in the run's own pace: now and then, from any thread, without being late."""

from collections.abc import Iterator

import pytest

from app.run_control import HEED_EVERY_ITEMS, LOOK_EVERY_S, RunControl, uncontrolled
from domain.errors import CancelledRunError, InterruptedRunError
from store.run_port import Wish


class Asked:
    """A run that is asked something, and its clock."""

    def __init__(self) -> None:
        self.wish: Wish = ""
        self.looks = 0
        self.now_s = 0.0
        self.slept: list[float] = []
        self.control = RunControl(self._look, clock=lambda: self.now_s, sleep=self._sleep)

    def _look(self) -> Wish:
        self.looks += 1
        return self.wish

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds
        if len(self.slept) == 3:
            self.wish = ""

    def later(self) -> None:
        self.now_s += LOOK_EVERY_S


def test_a_wish_is_asked_for_again_only_after_a_little() -> None:
    it = Asked()
    for _ in range(1000):
        it.control.heed()
    assert it.looks == 0, "a run of a quarter of a second asks nobody"
    it.later()
    for _ in range(1000):
        it.control.heed()
    assert it.looks == 1


def test_a_cancelled_run_ends_with_an_error_that_is_an_interruption() -> None:
    it = Asked()
    it.wish = "cancel"
    it.later()
    with pytest.raises(CancelledRunError) as raised:
        it.control.heed()
    assert isinstance(raised.value, InterruptedRunError)
    assert (raised.value.code, raised.value.exit_status) == ("cancelled", 130)


def test_a_walk_that_is_cancelled_stops_soon_after() -> None:
    """Fault 12: the walk listens, however long it finds nothing to do."""
    it = Asked()

    def files() -> Iterator[int]:
        for number in range(10_000):
            if number == 1000:
                it.wish = "cancel"
                it.later()
            yield number

    seen: list[int] = []
    with pytest.raises(CancelledRunError):
        seen.extend(it.control.heeding(files()))
    assert 1000 <= len(seen) <= 1000 + HEED_EVERY_ITEMS
    assert it.looks == 1


def test_what_is_walked_comes_through_as_it_is() -> None:
    assert list(uncontrolled().heeding(iter(range(3 * HEED_EVERY_ITEMS)))) == list(range(3 * HEED_EVERY_ITEMS))


def test_between_two_steps_a_paused_run_waits_and_says_so() -> None:
    it = Asked()
    it.wish = "pause"
    it.later()
    told: list[bool] = []
    it.control.await_permission(told.append)
    assert told == [True, False]
    assert it.slept == [LOOK_EVERY_S] * 3


def test_a_paused_run_can_be_cancelled() -> None:
    it = Asked()
    it.wish = "pause"
    it.later()

    def tell(is_paused: bool) -> None:
        it.wish = "cancel"

    with pytest.raises(CancelledRunError):
        it.control.await_permission(tell)


def test_a_run_that_is_asked_nothing_is_told_nothing() -> None:
    it = Asked()
    it.later()
    told: list[bool] = []
    it.control.await_permission(told.append)
    assert told == []
    assert not it.slept
