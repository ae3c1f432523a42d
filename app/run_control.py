"""What is asked of a run that goes on: pause, go on, end. Looked at in the run's own pace, never forced upon it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from domain.errors import CancelledRunError
from domain.layout import BaseLayout
from store.run_port import Wish
from store.state import SqliteStateStore

LOOK_EVERY_S = 0.25
HEED_EVERY_ITEMS = 64  # of a walk: a fiftieth of a second
Item = TypeVar("Item")


class RunControl:
    """The wish for one run, asked for again after a little. May be used from several threads."""

    def __init__(
        self,
        look: Callable[[], Wish],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._look = look
        self._clock = clock
        self._sleep = sleep
        self._wish: Wish = ""
        self._looked_s = clock()
        self._looking = threading.Lock()

    @property
    def wish(self) -> Wish:
        if self._clock() - self._looked_s >= LOOK_EVERY_S:
            with self._looking:
                self._wish = self._look()
                self._looked_s = self._clock()
        return self._wish

    def heed(self) -> None:
        """Raises CancelledRunError where the run is to end."""
        if self.wish == "cancel":
            raise CancelledRunError("the run was cancelled; what was committed stays", hint=CANCELLED_HINT)

    def heeding(self, items: Iterator[Item]) -> Iterator[Item]:
        """The same items, for as long as the run is not cancelled."""
        for number, item in enumerate(items):
            if number % HEED_EVERY_ITEMS == 0:
                self.heed()
            yield item

    def await_permission(self, tell: Callable[[bool], None]) -> None:
        """Between two steps of a run: wait while it is paused; `tell` hears of it. Raises CancelledRunError."""
        self.heed()
        if self.wish != "pause":
            return
        tell(True)
        while self.wish == "pause":
            self._sleep(LOOK_EVERY_S)
            self.heed()
        tell(False)


@contextmanager
def controlled(layout: BaseLayout, run_id: int) -> Iterator[RunControl]:
    """A run's control, over a connection of its own that is opened when it is first needed."""
    opened: list[SqliteStateStore] = []

    def look() -> Wish:
        if not opened:
            opened.append(SqliteStateStore(layout.state, read_only=True))
        return opened[0].wish(run_id)

    try:
        yield RunControl(look)
    finally:
        for state in opened:
            state.close()


CANCELLED_HINT = "run `knowledge index` to do the rest"


def uncontrolled() -> RunControl:
    """Of a run that nobody can ask anything."""
    return RunControl(lambda: "")
