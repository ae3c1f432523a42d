"""A queue in memory and workers that die of some files: what a dispatcher sees of them."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import cast

from domain.files import Page
from domain.telemetry import SILENCE, Telemetry
from scheduler.dispatch import Dispatcher, Listening
from scheduler.queue.client import PageQueue
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import decode_check
from store.run_port import RunRecord
from store.state_port import RemovalCandidate, StateStore

RUN = RunRecord(
    id=4, generation=9, kind="index", trigger="test", roots=("docs",), state="walking", started_ns=0, ended_ns=None,
    counts={},
)  # fmt: skip
NAMES = QueueNames("base")


class FakeQueue(PageQueue):
    """Keeps jobs in the order in which they came; a job that was begun stays until it is finished."""

    def __init__(self) -> None:
        self.jobs: dict[str, Page] = {}
        self.begun: set[str] = set()
        self.sent: list[str] = []
        self.arrived = asyncio.Event()
        self.most = 0
        self.cause = ""  # why the workers wait, as they say

    async def enqueue_check(self, job_id: str, payload: bytes) -> None:
        await asyncio.sleep(0)
        if job_id in self.jobs:  # as arq does: the same id twice is refused
            return
        self.sent.append(job_id)
        self.jobs[job_id] = decode_check(payload).page()
        self.most = max(self.most, len(self.jobs))
        self.arrived.set()

    async def withdraw_checks(self, job_ids: Sequence[str]) -> None:
        await asyncio.sleep(0)
        for job_id in job_ids:
            self.jobs.pop(job_id, None)
            self.begun.discard(job_id)

    async def waiting(self) -> int:
        return len(self.jobs)

    async def hold_up(self) -> str:
        return self.cause

    async def begin(self) -> tuple[str, Page]:
        """The next job that nobody has begun."""
        while True:
            for job_id, page in self.jobs.items():
                if job_id not in self.begun:
                    self.begun.add(job_id)
                    return job_id, page
            self.arrived.clear()
            await self.arrived.wait()

    def finish(self, job_id: str) -> None:
        self.jobs.pop(job_id, None)
        self.begun.discard(job_id)

    def lose_everything(self) -> None:
        self.jobs.clear()
        self.begun.clear()


class FakeState:
    """What a dispatcher records."""

    def __init__(self) -> None:
        self.candidates: list[RemovalCandidate] = []
        self.pages: list[int] = []

    def add_candidates(self, run_id: int, candidates: Sequence[RemovalCandidate]) -> None:
        self.candidates.extend(candidates)

    def done_pages(self, run_id: int, numbers: Sequence[int]) -> dict[int, dict[str, int]]:
        return {}

    def plan_pages(self, run_id: int, pages: Sequence[tuple[int, bytes]]) -> None:
        self.pages.extend(number for number, _ in pages)


class Dispatching:
    """A dispatcher over a fake queue with workers, and the files that were counted."""

    def __init__(
        self,
        *,
        window_pages: int = 32,
        hold_up: Callable[[str], None] = lambda cause: None,
        telemetry: Telemetry = SILENCE,
    ) -> None:
        self.queue = FakeQueue()
        self.state = FakeState()
        state = cast(StateStore, self.state)
        self.dispatcher = Dispatcher(
            self.queue, NAMES, RUN, state, window_pages=window_pages, listening=Listening(hold_up, telemetry=telemetry)
        )
        self.counted: list[str] = []
        self.deaths = 0

    def commit(self, page: Page) -> None:
        if self.dispatcher.done(page.number):
            self.counted.extend(file.key for file in page.files)

    async def work(
        self, *, deadly: Collection[str] = (), at_a_time: int = 3, before: Callable[[Page], None] = lambda page: None
    ) -> None:
        """A worker process: some jobs begun at a time, one worked on; it dies of a deadly file and comes again."""
        mine: list[tuple[str, Page]] = []
        while True:
            mine.append(await self.queue.begin())
            while len(mine) < at_a_time and len(self.queue.begun) < len(self.queue.jobs):
                mine.append(await self.queue.begin())
            job_id, page = mine.pop(0)
            before(page)
            if any(file.key in deadly for file in page.files):
                self.deaths += 1
                mine.clear()  # they stay begun, and no other worker takes them
                await self.dispatcher.worker_died()
            else:
                await asyncio.sleep(0)
                self.commit(page)
                self.queue.finish(job_id)
