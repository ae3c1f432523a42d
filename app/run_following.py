"""Beside a run's dispatching: what is asked of the run is done, and how it gets on is told to state.db."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from app.progress import RunProgress
from app.run_control import LOOK_EVERY_S, RunControl
from scheduler.dispatch import Dispatcher
from store.run_port import RunLedgerPort

TELL_EVERY_S = 1.0


class Followed(Protocol):
    """A run that goes on (app.indexing.Running)."""

    @property
    def control(self) -> RunControl: ...

    def pause(self, is_paused: bool) -> None: ...


async def follow_wishes(it: Followed, dispatcher: Dispatcher) -> None:
    """Until cancelled: hold pages back while the run is paused. Raises CancelledRunError when it is to end."""
    is_told = False
    while True:
        it.control.heed()
        is_wanted = it.control.wish == "pause"
        if is_wanted and not dispatcher.is_held:
            dispatcher.hold()
        elif not is_wanted and dispatcher.is_held:
            dispatcher.release()
        is_paused = is_wanted and not dispatcher.in_flight_count
        if is_paused != is_told:
            it.pause(is_paused)
            is_told = is_paused
        await asyncio.sleep(LOOK_EVERY_S)


async def tell_progress(ledger: RunLedgerPort, run_id: int, progress: RunProgress) -> None:
    """Until cancelled: what the run is at, and its counters, once a second."""
    teller = progress_teller(ledger, run_id, progress)
    while True:
        teller()
        await asyncio.sleep(TELL_EVERY_S)


def progress_teller(
    ledger: RunLedgerPort, run_id: int, progress: RunProgress, clock: Callable[[], float] = time.monotonic
) -> Callable[[], None]:
    """Tells at most once a second."""
    told_s = float("-inf")

    def tell() -> None:
        nonlocal told_s
        if clock() - told_s < TELL_EVERY_S * 0.9:
            return
        told_s = clock()
        ledger.note_progress(run_id, progress.counters())
        if not progress.is_paused and not progress.hold_up:
            ledger.set_run_state(run_id, progress.run_state, "")

    return tell
