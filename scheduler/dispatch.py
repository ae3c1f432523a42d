"""Dispatch: planned pages go to the queue, as many at a time as may be in flight, and are ticked off when they
are in the store. The window is the back-pressure of the whole way (C-05): queue, spool and inbox hold no more.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from domain.files import FileFailure, Page, Reason
from scheduler.plan import take_batch
from scheduler.queue.client import PageQueue
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import encode_check
from store.state_port import RemovalCandidate, RunRecord, StateStore

WINDOW_PAGES = 32
BATCH_PAGES = 8  # planned in one thread hop, recorded in one transaction
BATCH_CANDIDATES = 512
PART_NUMBERS = 1_000_000_000  # pages that were split get numbers above every planned one
TRIES_OF_ONE_FILE = 2
LOOK_AFTER_S = 2.0  # without news, the queue is asked whether it still holds what is in flight


HoldUp = Callable[[str], None]
"""Told why the pages in flight make no progress, in a few words; "" when they do."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """A page that is queued or worked on. `deaths`: of workers, while it was the only one in flight."""

    page: Page
    attempt: int
    deaths: int = 0


@dataclass(frozen=True, slots=True)
class AfterDeath:
    """What becomes of the one page that was in flight when a worker died."""

    again: tuple[InFlight, ...]
    failed: tuple[FileFailure, ...]


def after_death(flight: InFlight, next_number: Callable[[], int]) -> AfterDeath:
    """Bisect: a page is tried again in halves, a single file once more by itself, then it fails (R23)."""
    files = flight.page.files
    if len(files) == 1:
        if flight.deaths + 1 < TRIES_OF_ONE_FILE:
            return AfterDeath((InFlight(flight.page, flight.attempt + 1, flight.deaths + 1),), ())
        failure = FileFailure(files[0].key, Reason.WORKER_DIED, "the worker that read it died, twice")
        return AfterDeath((), (failure,))
    middle = len(files) // 2
    halves = (files[:middle], files[middle:])
    return AfterDeath(tuple(InFlight(replace(flight.page, number=next_number(), files=half), 1) for half in halves), ())


class Dispatcher:
    """Owns what is in flight between plan and store, for one run. Not shared between threads."""

    def __init__(
        self,
        queue: PageQueue,
        names: QueueNames,
        run: RunRecord,
        state: StateStore,
        *,
        window_pages: int = WINDOW_PAGES,
        hold_up: HoldUp = lambda cause: None,
    ) -> None:
        self._queue = queue
        self._names = names
        self._run = run
        self._state = state
        self._window_pages = window_pages
        self._batch_pages = min(BATCH_PAGES, window_pages)
        self._in_flight: dict[int, InFlight] = {}
        self._suspects: deque[InFlight] = deque()
        self._gave_up: list[FileFailure] = []
        self._hold_up = hold_up
        self._changed = asyncio.Event()
        self._part_number = PART_NUMBERS

    @property
    def in_flight(self) -> Sequence[InFlight]:
        return list(self._in_flight.values())

    @property
    def in_flight_count(self) -> int:
        return len(self._in_flight)

    @property
    def gave_up(self) -> Sequence[FileFailure]:
        """The files that killed their worker whenever they were tried."""
        return list(self._gave_up)

    async def dispatch(self, planned: Iterator[Page | RemovalCandidate]) -> None:
        """Queue every page of the plan, then wait until the last one is done."""
        while True:
            await self._wait_below(self._window_pages - self._batch_pages + 1)
            pages, candidates = await asyncio.to_thread(self._next_batch, planned)
            if not pages and not candidates:
                break
            for page in pages:
                await self._send(InFlight(page, 1))
        await self._wait_below(1)

    def done(self, number: int) -> bool:
        """A page is in the store. False where that is no news: it was done before, or cut into halves meanwhile."""
        if self._in_flight.pop(number, None) is None:
            waiting = [flight for flight in self._suspects if flight.page.number == number]
            if not waiting:
                return False
            self._suspects.remove(waiting[0])
        self._changed.set()
        return True

    async def worker_died(self) -> tuple[FileFailure, ...]:
        """Withdraw what is in flight, to be tried again; answers the files that are given up.

        Nobody knows which of several pages was the guilty one: each is tried again alone. A page that was alone is
        bisected.
        """
        flights = self.in_flight
        self._in_flight.clear()
        failed: tuple[FileFailure, ...] = ()
        if len(flights) == 1:
            fate = after_death(flights[0], self._next_part)
            self._suspects.extendleft(reversed(fate.again))
            failed = fate.failed
        else:
            self._suspects.extend(replace(flight, attempt=flight.attempt + 1) for flight in flights)
        self._gave_up.extend(failed)
        await self._queue.withdraw_checks([self._job_id(flight) for flight in flights])
        self._changed.set()
        return failed

    def _next_part(self) -> int:
        self._part_number += 1
        return self._part_number

    def _next_batch(self, planned: Iterator[Page | RemovalCandidate]) -> tuple[list[Page], list[RemovalCandidate]]:
        """Up to a batch of pages with the candidates between them; both recorded in state.db."""
        pages, candidates = take_batch(planned, pages=self._batch_pages, candidates=BATCH_CANDIDATES)
        if candidates:
            self._state.add_candidates(self._run.id, candidates)
        if pages:
            self._state.plan_pages(self._run.id, [(page.number, self._payload(InFlight(page, 1))) for page in pages])
        return pages, candidates

    def _payload(self, flight: InFlight) -> bytes:
        return encode_check(self._names.base_id, self._run.generation, self._run.id, flight.attempt, flight.page)

    def _job_id(self, flight: InFlight) -> str:
        return self._names.check_job(self._run.id, flight.page.number, flight.attempt)

    async def _send(self, flight: InFlight) -> None:
        self._in_flight[flight.page.number] = flight
        await self._queue.enqueue_check(self._job_id(flight), self._payload(flight))

    async def _wait_below(self, count: int) -> None:
        """Until fewer than `count` pages are in flight and none is suspected: suspects are sent one at a time."""
        while self._suspects or len(self._in_flight) >= count:
            self._changed.clear()
            if self._suspects and not self._in_flight:
                await self._send(self._suspects.popleft())
            try:
                async with asyncio.timeout(LOOK_AFTER_S):  # wait_for may swallow a cancellation (Python 3.11)
                    await self._changed.wait()
                self._hold_up("")
            except TimeoutError:
                self._hold_up(await self._queue.hold_up())
                await self._look_for_lost()
        self._hold_up("")  # also where the last page came while the cause was asked for

    async def _look_for_lost(self) -> None:
        """Send again what the queue has lost (R35): in flight, while no job of the base waits or runs."""
        if self._in_flight and not await self._queue.waiting():
            await self.worker_died()
