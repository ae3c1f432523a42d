"""Dispatch: planned pages go to the queue, as many at a time as may be in flight, and are ticked off when they
are in the store. The window is the back-pressure of the whole way (C-05): queue, spool and inbox hold no more.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from domain.files import FileFailure, Page, Reason
from domain.measures import PAGE_SECONDS, PAGES_DONE
from domain.telemetry import SILENCE, Telemetry
from scheduler.plan import take_batch
from scheduler.queue.client import PageQueue
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import encode_check
from store.run_port import RunRecord
from store.state_port import RemovalCandidate, StateStore

WINDOW_PAGES = 32
BATCH_PAGES = 8  # planned in one thread hop, recorded in one transaction
BATCH_CANDIDATES = 512
PART_NUMBERS = 1_000_000_000  # pages that were split get numbers above every planned one
LOOK_AFTER_S = 2.0  # without news, the queue is asked whether it still holds what is in flight


HoldUp = Callable[[str], None]
"""Told why the pages in flight make no progress, in a few words; "" when they do."""

FoundDone = Callable[[int, Mapping[str, int]], None]
"""Told of a page that is in the store, with its counts by outcome, where nobody else has told it."""


class Listening(Struct, frozen=True):
    """Who is told what a dispatcher finds out."""

    hold_up: HoldUp = lambda cause: None
    found_done: FoundDone = lambda number, counts: None
    telemetry: Telemetry = SILENCE


class InFlight(Struct, frozen=True):
    """A page that is queued or worked on."""

    page: Page
    attempt: int
    queued_s: float = 0.0  # monotonic, when it was first queued; 0 = it was not


class AfterDeath(Struct, frozen=True):
    """What becomes of the one page that was in flight when a worker died."""

    again: tuple[InFlight, ...]
    failed: tuple[FileFailure, ...]


def after_death(flight: InFlight, next_number: Callable[[], int]) -> AfterDeath:
    """What becomes of a page that ended the worker which read it (R23).

    It is tried once more with a limited process for each of its files, which finds the guilty one at no further
    worker's cost. Should it end a worker all the same, it is bisected, and a single file has failed.
    """
    page = flight.page
    if not page.alone:
        return AfterDeath((InFlight(replace(page, alone=True), flight.attempt + 1),), ())
    if len(page.files) == 1:
        failure = FileFailure(page.files[0].key, Reason.WORKER_DIED, "the worker that had it died, twice")
        return AfterDeath((), (failure,))
    middle = len(page.files) // 2
    halves = (page.files[:middle], page.files[middle:])
    return AfterDeath(tuple(InFlight(replace(page, number=next_number(), files=half), 1) for half in halves), ())


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
        number_base: int = 0,
        listening: "Listening | None" = None,
    ) -> None:
        """`number_base`: above every number that pages of the run had when another process dispatched them."""
        listening = listening or Listening()
        self._queue = queue
        self._names = names
        self._run = run
        self._state = state
        self._window_pages = window_pages
        self._batch_pages = min(BATCH_PAGES, window_pages)
        self._in_flight: dict[int, InFlight] = {}
        self._suspects: deque[InFlight] = deque()
        self._gave_up: list[FileFailure] = []
        self._hold_up = listening.hold_up
        self._changed = asyncio.Event()
        self._part_number = number_base + PART_NUMBERS
        self._found_done = listening.found_done
        self._telemetry = listening.telemetry
        self._is_held = False
        self._done_count = 0

    @property
    def in_flight(self) -> Sequence[InFlight]:
        return list(self._in_flight.values())

    @property
    def in_flight_count(self) -> int:
        return len(self._in_flight)

    @property
    def done_count(self) -> int:
        """How many pages are in the store."""
        return self._done_count

    @property
    def gave_up(self) -> Sequence[FileFailure]:
        """The files that killed their worker whenever they were tried."""
        return list(self._gave_up)

    async def dispatch(self, planned: Iterator[Page | RemovalCandidate]) -> None:
        """Queue every page of the plan, then wait until the last one is done."""
        while True:
            await self._wait_below(self._window_pages - self._batch_pages + 1)
            await self._while_held()
            pages, candidates = await asyncio.to_thread(self._next_batch, planned)
            if not pages and not candidates:
                break
            for page in pages:
                await self._send(InFlight(page, 1))
        await self._wait_below(1)

    def hold(self) -> None:
        """Send no page until `release`; those in flight come to their end."""
        self._is_held = True

    def release(self) -> None:
        self._is_held = False
        self._changed.set()

    @property
    def is_held(self) -> bool:
        return self._is_held

    async def _while_held(self) -> None:
        while self._is_held:
            self._changed.clear()
            await self._changed.wait()

    def done(self, number: int) -> bool:
        """A page is in the store. False where that is no news: it was done before, or cut into halves meanwhile."""
        flight = self._in_flight.pop(number, None)
        if flight is None:
            flight = next((one for one in self._suspects if one.page.number == number), None)
            if flight is None:
                return False
            self._suspects.remove(flight)
        self._telemetry.count(PAGES_DONE)
        self._telemetry.observe(PAGE_SECONDS, time.monotonic() - flight.queued_s)
        self._changed.set()
        return True

    async def worker_died(self) -> tuple[FileFailure, ...]:
        """Withdraw what is in flight, to be tried again; answers the files that are given up.

        Nobody knows which of several pages was the guilty one: each is tried again alone. One that was alone is tried
        with care (`after_death`).
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

    async def blame(self, job_id: str) -> None:
        """A worker has died while it read the files of this job: its page is tried again with care (`after_death`), and
        no other is suspected."""
        flight = next((one for one in self._in_flight.values() if self._job_id(one) == job_id), None)
        if flight is None:
            return
        del self._in_flight[flight.page.number]
        fate = after_death(flight, self._next_part)
        self._gave_up.extend(fate.failed)
        await self._queue.withdraw_checks([job_id])
        for again in fate.again:
            await self._send(again)
        self._changed.set()

    async def withdraw(self) -> None:
        """Take back everything that is in flight: the run is over."""
        flights = self.in_flight
        self._in_flight.clear()
        await self._queue.withdraw_checks([self._job_id(flight) for flight in flights])

    async def send_again(self) -> None:
        """Queue what is in flight once more, under new ids: what came of the jobs is not known."""
        for flight in self.in_flight:
            await self._queue.withdraw_checks([self._job_id(flight)])
            await self._send(replace(flight, attempt=flight.attempt + 1))

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
        if not flight.queued_s:
            flight = replace(flight, queued_s=time.monotonic())
        self._in_flight[flight.page.number] = flight
        await self._queue.enqueue_check(self._job_id(flight), self._payload(flight))

    async def _wait_below(self, count: int) -> None:
        """Until fewer than `count` pages are in flight and none is suspected: suspects are sent one at a time."""
        while self._suspects or len(self._in_flight) >= count:
            self._changed.clear()
            if self._suspects and not self._in_flight and not self._is_held:
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
        """Send again what the queue has lost (R35): in flight, while no job of the base waits or runs. What is in the
        store by then, though nobody has said so, is done."""
        if not self._in_flight or await self._queue.waiting():
            return
        numbers = list(self._in_flight)
        for number, counts in (await asyncio.to_thread(self._state.done_pages, self._run.id, numbers)).items():
            if self.done(number):
                self._found_done(number, counts)
        if self._in_flight and not await self._queue.waiting():
            await self.send_again()
