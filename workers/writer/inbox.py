"""The one writer: an inbox, one task, one connection (C-03).

Waiting pages are committed as one group, a page that waits alone is committed alone (R24). Every group runs whole
as one function on the connection's thread, so that no await stands between BEGIN and COMMIT (S2-44).
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from domain.errors import DiskFullError, StorageError
from domain.measures import (
    COMMITS,
    GROUP_BYTES,
    GROUP_DOCUMENTS,
    GROUP_PAGES,
    LOCK_HOLD_SECONDS,
    WRITE_WAIT_SECONDS,
)
from domain.telemetry import SILENCE, Telemetry
from store.connection import run_on_connection
from store.state_port import PageOutcome
from store.write_port import StoreWriter
from workers.checking import FinishedPage
from workers.writer.groups import (
    FIRST_GROUP_BYTES,
    apply_halving,
    group_length,
    group_of,
    next_group_bytes,
    page_outcomes,
    weight_bytes,
)

if TYPE_CHECKING:
    import aiosqlite

LINGER_S = 0.25  # at most this long does a page wait for others
REST_AFTER_S = 2.0
LATEST_HOLDS = 65_536  # a service's writer lives for months

RecordOutcomes = Callable[[Sequence[FinishedPage], Sequence[PageOutcome]], None]
"""Told of the pages of a group that is committed, and of what came of each, on the connection's thread."""

Observe = Callable[[FinishedPage, PageOutcome], None]
AwaitsMore = Callable[[int], bool]
"""Whether more pages will come by themselves while this many wait: the writer may then wait for them."""


class Brake(Protocol):
    """What keeps the writer from writing."""

    async def pass_by(self) -> None:
        """Waited for before each group: returns when writing is permitted."""
        ...

    async def await_room(self, error: DiskFullError) -> None:
        """Told that a group found no room on the disk: returns when it is to be tried again, or raises."""
        ...


class Unbraked:
    """Of a run on a command line, which ends where its disk is full."""

    async def pass_by(self) -> None:
        return

    async def await_room(self, error: DiskFullError) -> None:
        raise error


class Waiting(NamedTuple):
    """A page, who is told what came of it, and when it arrived (monotonic seconds)."""

    page: FinishedPage
    answer: "asyncio.Future[PageOutcome]"
    since_s: float


class DocumentWriter:
    """Commits finished pages. `run` owns the loop; `submit` waits until the page is in the store."""

    def __init__(
        self,
        connection: "aiosqlite.Connection",
        store: StoreWriter,
        *,
        record: RecordOutcomes,
        observe: Observe,
        awaits_more: AwaitsMore = lambda waiting: False,
        brake: Brake | None = None,
        telemetry: Telemetry = SILENCE,
    ) -> None:
        self._connection = connection
        self._store = store
        self._record = record
        self._observe = observe
        self._awaits_more = awaits_more
        self._brake: Brake = brake or Unbraked()
        self._telemetry = telemetry
        self._waiting: deque[Waiting] = deque()
        self._committing: Sequence[Waiting] = ()
        self._arrived = asyncio.Event()
        self._group_bytes = FIRST_GROUP_BYTES
        self._broken: Exception | None = None
        self.rest: Callable[[], None] | None = None
        """Called on the connection's thread, once, where no page has come for REST_AFTER_S; of a service's writer."""
        self.holds_s: deque[float] = deque(maxlen=LATEST_HOLDS)

    async def submit(self, page: FinishedPage) -> PageOutcome:
        """Wait until a page is committed, and how it ended. Raises the error that stopped the writer."""
        if self._broken is not None:
            raise self._broken
        answer: asyncio.Future[PageOutcome] = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(page, answer, time.monotonic()))
        self._arrived.set()
        return await answer

    async def commit(self, page: FinishedPage, *, attempt: int) -> None:
        """The inbox as a sink of workers in the same process (workers.sink.DocumentSink)."""
        await self.submit(page)

    async def run(self) -> None:
        """Commit groups until cancelled; a storage error stops the writer and is raised to everyone waiting."""
        try:
            while True:
                await self._page_arrives()
                self._arrived.clear()
                while self._waiting:
                    await self._linger()
                    await self._brake.pass_by()
                    await self._commit_group(self._next_group())
        except Exception as error:
            self._broken = error
            raise
        finally:
            self._abandon()

    async def _page_arrives(self) -> None:
        if self.rest is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(REST_AFTER_S):
                    await self._arrived.wait()
                    return
            await run_on_connection(self._connection, self.rest)
        await self._arrived.wait()

    async def _linger(self) -> None:
        """Wait a little for a group to fill while more pages are sure to come: full text costs a third less in
        groups than page by page, and nobody waits for a page of a long run."""
        latest = time.monotonic() + LINGER_S
        while self._awaits_more(len(self._waiting)) and not self._is_group_full():
            self._arrived.clear()
            try:
                async with asyncio.timeout(latest - time.monotonic()):  # wait_for may swallow a cancellation (3.11)
                    await self._arrived.wait()
            except TimeoutError:
                return

    def _is_group_full(self) -> bool:
        pages = [one.page for one in self._waiting]
        waiting_bytes = sum(weight_bytes(page) for page in pages)
        return waiting_bytes >= self._group_bytes or group_length(pages, self._group_bytes) < len(pages)

    def _next_group(self) -> list[Waiting]:
        length = group_length((one.page for one in self._waiting), self._group_bytes)
        return [self._waiting.popleft() for _ in range(length)]

    async def _commit_group(self, waiting: Sequence[Waiting]) -> None:
        pages = [one.page for one in waiting]
        began_s = time.monotonic()
        self._committing = waiting
        outcomes, hold_s = await self._committed(pages)
        self._committing = ()
        self.holds_s.append(hold_s)
        self._group_bytes = next_group_bytes(self._group_bytes, hold_s)
        self._tell(waiting, began_s, hold_s)
        for (page, answer, _), outcome in zip(waiting, outcomes, strict=True):
            self._observe(page, outcome)
            if not answer.done():
                answer.set_result(outcome)

    async def _committed(self, pages: Sequence[FinishedPage]) -> tuple[list[PageOutcome], float]:
        """Tried again after a full disk: what was in the store all the same is met as the same pages once more."""
        while True:
            try:
                return await run_on_connection(self._connection, self._commit_pages, pages)
            except DiskFullError as error:
                await self._brake.await_room(error)

    def _tell(self, group: Sequence[Waiting], began_s: float, hold_s: float) -> None:
        told = self._telemetry
        told.count(COMMITS)
        told.observe(LOCK_HOLD_SECONDS, hold_s)
        told.observe(GROUP_PAGES, len(group))
        told.observe(GROUP_DOCUMENTS, sum(len(one.page.documents) for one in group))
        told.observe(GROUP_BYTES, sum(one.page.text_bytes for one in group))
        for one in group:
            told.observe(WRITE_WAIT_SECONDS, began_s - one.since_s)

    def _commit_pages(self, pages: Sequence[FinishedPage]) -> tuple[list[PageOutcome], float]:
        """On the connection's thread: the group to knowledge.db first, then what came of it to state.db (R35)."""
        began = time.monotonic()
        committed = apply_halving(self._store, group_of(pages))
        hold_s = time.monotonic() - began
        outcomes = page_outcomes(pages, committed)
        self._record(pages, outcomes)
        return outcomes, hold_s

    def _abandon(self) -> None:
        """Nobody waits for a writer that has stopped, now or later."""
        if self._broken is None:
            self._broken = StorageError("the writer has stopped", hint="run the command again")
        for one in (*self._committing, *self._waiting):
            if not one.answer.done():
                one.answer.set_exception(self._broken)
        self._committing = ()
        self._waiting.clear()
