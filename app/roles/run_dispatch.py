"""The queue's way of a service's run, as its scheduler sees it: pages go out, notes of the writer come back."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from arq.connections import ArqRedis
from msgspec import Struct, field
from redis.exceptions import RedisError

from app.pipeline import dispatch_phases
from app.roles.calls import Failed, error_of
from app.roles.measures import WORKERS_DIED
from app.roles.runtime import TRY_AGAIN_S, Runtime, beside
from app.run_following import follow_wishes, tell_progress
from domain.errors import DiskFullError, QueueError, StorageError
from domain.files import FileFailure
from scheduler.dispatch import WINDOW_PAGES, Dispatcher, Listening
from scheduler.queue.client import PageQueue
from scheduler.queue.done_notes import DoneNote, take_done
from scheduler.queue.leases import dead_workers, forget_worker, free_jobs, live_leases, ownerless_checks
from scheduler.queue.names import QueueNames
from scheduler.queue.troubles import take_troubles
from store.lock import holder_of, is_held
from store.state import SqliteStateStore

if TYPE_CHECKING:
    from app.indexing import Running
    from app.pipeline import Phase

NOTES_LOOKED_FOR_EVERY_S = 0.02
REAP_EVERY_S = 0.4
OWNERLESS_EVERY_LOOKS = 5
SEND_AGAIN_AFTER_S = 5.0  # what could not be written for want of space
SILENT_WRITER = "the writer does not answer: it was stopped, or gets no processor"
PASSING = (DiskFullError.code, StorageError.code)  # a worker's disk may have room again


class ServiceQueue(PageQueue):
    """A queue that also knows why nothing comes back: nobody works on what it holds."""

    def watching(self, runtime: Runtime) -> "ServiceQueue":
        self._runtime = runtime
        return self

    async def hold_up(self) -> str:
        if said := await super().hold_up():
            return said
        await self.require_room()  # roles that cannot say that they live are not dead
        notes = await self._guard(lambda: live_leases(self._pool, self._names))
        if not any(note.role == "worker" for note in notes):
            return "no worker is alive"
        lock = self._runtime.layout.lock
        if not is_held(lock):
            return "no writer is alive"
        # it lives, since the kernel has not taken its lock back, and does nothing, since its lease has run out
        is_silent = not any(note.role == "writer" and note.is_active for note in notes)
        return f"{SILENT_WRITER} ({holder_of(lock) or 'its name is not known'})" if is_silent else ""


class RunDispatch(Struct):
    """Dispatches the phases of one run. Used in the scheduler's event loop."""

    runtime: Runtime
    pool: ArqRedis
    names: QueueNames
    queue: ServiceQueue
    state: SqliteStateStore  # of the loop's thread and of the planning one
    gave_up: Sequence[FileFailure] = field(default_factory=tuple)

    async def run(self, it: "Running", phases: "Sequence[Phase]") -> tuple[float, ...]:
        """Until every page is in the store. Raises what ends the run; what is queued is taken back then."""

        async def patience(error: QueueError) -> None:
            """The run says what it waits for, and may be cancelled meanwhile."""
            it.hold_up(error.message)
            it.control.heed()
            await self.runtime.patience(error)

        def hold_up(cause: str) -> None:
            it.hold_up(cause)
            if not cause:
                self.runtime.goes_on()

        queue = self.queue.patiently(patience)
        await queue.drop_jobs()

        def found_done(number: int, counts: Mapping[str, int]) -> None:
            it.outcomes.note(DoneNote(it.run.id, number, "check", dict(counts), {}, (), 0, 0, 0, 0, 0, 0))

        dispatcher = Dispatcher(
            queue,
            self.names,
            it.run,
            self.state,
            # a page is in the hands of one worker: with no more of them under way no more workers are at it
            window_pages=it.request.worker_processes or WINDOW_PAGES,
            number_base=it.number_base,
            listening=Listening(hold_up, found_done, self.runtime.telemetry),
        )
        try:
            await beside(
                lambda: dispatch_phases(dispatcher, phases),
                {
                    "notes": lambda: self._take_notes(it, dispatcher),
                    "troubles": lambda: self._take_troubles(it, dispatcher),
                    "reaper": lambda: self._reap(dispatcher),
                    "wishes": lambda: follow_wishes(it, dispatcher),
                    "progress": lambda: tell_progress(self.state, it.run.id, it.outcomes.progress),
                },
            )
        except BaseException:
            await self._taken_back(dispatcher)
            raise
        self.state.note_progress(it.run.id, it.progress.counters())
        self.gave_up = dispatcher.gave_up
        return ()

    async def _taken_back(self, dispatcher: Dispatcher) -> None:
        """As far as the queue answers now: whoever goes on drops what is left."""
        try:
            async with asyncio.timeout(TRY_AGAIN_S):
                await dispatcher.withdraw()
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - the run ends with the error it has
            return

    async def _take_notes(self, it: "Running", dispatcher: Dispatcher) -> None:
        while True:
            try:
                notes = await take_done(self.pool, self.names, wait_s=NOTES_LOOKED_FOR_EVERY_S)
            except (RedisError, OSError):
                await asyncio.sleep(TRY_AGAIN_S)
                continue
            for note in notes:
                if note.run == it.run.id and dispatcher.done(note.page):
                    it.outcomes.note(note)

    async def _take_troubles(self, it: "Running", dispatcher: Dispatcher) -> None:
        """Errors of workers: the run ends with them, or waits for room on a disk."""
        while True:
            await asyncio.sleep(REAP_EVERY_S)
            try:
                troubles = await take_troubles(self.pool, self.names)
            except (RedisError, OSError):
                continue
            for trouble in troubles:
                if trouble.code not in PASSING:
                    raise error_of(Failed(trouble.code, trouble.message, trouble.hint))
            if troubles:
                it.hold_up(troubles[-1].message)
                await asyncio.sleep(SEND_AGAIN_AFTER_S)
                await dispatcher.send_again()
                it.hold_up("")

    async def _reap(self, dispatcher: Dispatcher) -> None:
        """Free the jobs of workers that are dead, and bisect the page whose files one of them was reading."""
        ownerless: set[str] = set()
        for look in count(1):
            await asyncio.sleep(REAP_EVERY_S)
            try:
                await reap(self.runtime, self.pool, self.names, dispatcher)
                if look % OWNERLESS_EVERY_LOOKS == 0:
                    ownerless = await self._free_ownerless(ownerless)
            except (RedisError, OSError):
                continue

    async def _free_ownerless(self, before: set[str]) -> set[str]:
        """Free the checks that nobody had at the last look either; those that nobody has now."""
        now = await ownerless_checks(self.pool, self.names)
        if stuck := sorted(now & before):
            self.runtime.log.warning("jobs_freed", jobs=len(stuck))
            await free_jobs(self.pool, stuck)
        return now


async def reap(runtime: Runtime, pool: ArqRedis, names: QueueNames, dispatcher: Dispatcher | None) -> None:
    for dead in await dead_workers(pool, names):
        runtime.log.warning("worker_died", worker=dead.worker, held=len(dead.held), reading=bool(dead.at))
        runtime.telemetry.count(WORKERS_DIED)
        if dead.at and dispatcher is not None:
            await dispatcher.blame(dead.at)
        await forget_worker(pool, names, dead)
