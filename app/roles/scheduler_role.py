"""The scheduler: carries out the runs that state.db holds, one at a time, and queues those that are due.

A second one stands by. What the first had under way when it died is gone on with: the run keeps its id and its
generation, what is in the store is met as unchanged, and the rest is planned again.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing, suppress
from typing import TYPE_CHECKING

from arq.connections import ArqRedis
from msgspec import Struct

from app.beside_service import WRITER_PURPOSE
from app.heap import give_back_free_memory
from app.last_room import with_last_room
from app.maintenance_run import MAINTENANCE_KINDS, carry_out_maintenance_run
from app.notifying import Notifier
from app.progress import RunProgress
from app.roles.disk_brake import FullDisk, room_of
from app.roles.measures import RUNS_ENDED
from app.roles.queue_fitness import watch_queue_fitness
from app.roles.queue_place import queue_place
from app.roles.role_log import fault_of
from app.roles.run_dispatch import RunDispatch, ServiceQueue
from app.roles.runtime import LeavingError, Runtime, beside
from app.roles.scheduler_telling import Telling
from app.roles.scheduler_ticks import Ticks
from app.roles.scheduler_watch import follow_roots
from app.roles.standby import locked
from app.run_control import RunControl
from app.run_ending import failure_words
from app.run_request import RunRequest
from app.service_run import ServiceRun, carry_out_service_run
from domain.errors import CancelledRunError, DiskFullError, KnowledgeError, NotBuiltError, StorageError
from scheduler.queue.client import lazy_pool
from scheduler.queue.leases import Lease
from scheduler.queue.names import QueueNames
from store import files
from store.lock import WriteLock, holder_of, is_held
from store.run_port import RunRecord, Wish
from store.state import SqliteStateStore
from store.state_runs import PROCESS_GONE

if TYPE_CHECKING:
    from app.indexing import Running
    from app.pipeline import Phase

LOOK_FOR_RUNS_EVERY_S = 0.2
TICK_EVERY_S = 1.0
ROOM_LOOKED_FOR_EVERY_S = 2.0
PURPOSE = "knowledge scheduler"


async def scheduler_role(runtime: Runtime) -> None:
    """Until the runtime is told to end."""
    layout = runtime.layout
    files.make_home(layout, allow_network_filesystem=runtime.settings.allow_network_filesystem)
    files.make_calls(layout)
    address = queue_place(runtime.settings, layout)
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(lazy_pool(address))
        lock = WriteLock(layout.scheduler_lock, purpose=PURPOSE)
        if not await stack.enter_async_context(locked(runtime, lock, pool)):
            return
        state = stack.enter_context(closing(SqliteStateStore(layout.state)))
        names = QueueNames(state.base_id())
        queue = ServiceQueue(pool, names, address, runtime.patience).watching(runtime)
        lease = Lease(pool, names, runtime.lease_note)
        it = Scheduling(
            runtime,
            pool,
            names,
            queue,
            state,
            Ticks(runtime, state),
            Telling(runtime, Notifier(runtime.settings)),
            FullDisk(runtime),
        )
        runtime.status.is_active = True
        runtime.log.info("active")
        try:
            await beside(
                it.until_stopped,
                {
                    "ticks": it.tick,
                    "watch": lambda: follow_roots(runtime, state),
                    "telling": it.telling.run,
                    "lease": lease.run,
                    "fitness": lambda: watch_queue_fitness(runtime, address),
                },
            )
        finally:
            runtime.status.is_active = False
            await lease.end()


class Scheduling(Struct, frozen=True):
    """The scheduler's work while it is the one that is active."""

    runtime: Runtime
    pool: ArqRedis
    names: QueueNames
    queue: ServiceQueue
    state: SqliteStateStore
    ticks: Ticks
    telling: Telling
    full_disk: FullDisk

    async def until_stopped(self) -> None:
        """Carry out one run after the other."""
        while not self.runtime.stopping.is_set():
            run = None
            with self.full_disk.passed_over():
                run = self._next_run() if self._has_writer() else None
                if run is not None:
                    await self._carry_out(run)
            if run is None:
                await self.runtime.pause(LOOK_FOR_RUNS_EVERY_S)

    async def tick(self) -> None:
        """Look at schedules and windows, whatever goes on."""
        is_begun = False
        while True:
            with self.full_disk.passed_over():
                if not is_begun and (first := self.ticks.queue_first_run()) is not None:
                    self.runtime.log.info("index_is_empty", run=first.id)
                is_begun = True
                self.telling.hear(self.ticks.look())
            await asyncio.sleep(TICK_EVERY_S)

    def _has_writer(self) -> bool:
        """Whether the base's lock is held by a service's writer: a command line that has it runs by itself."""
        lock = self.runtime.layout.lock
        holder = holder_of(lock) if is_held(lock) else ""
        is_there = WRITER_PURPOSE in holder
        self.runtime.status.wait_for("" if is_there else holder or "the writer")
        return is_there

    def _next_run(self) -> RunRecord | None:
        """The run that was under way, else the first that is queued, begun."""
        run = self.state.open_run()
        if run is not None and not self.state.request_of(run.id):  # of a command line that is gone
            self.state.end_run(run.id, "interrupted", run.counts, PROCESS_GONE)
            run = None
        if run is not None:
            self.runtime.log.info("goes_on_with", run=run.id)
            return run
        for queued in self.state.queued_runs():
            if not self.ticks.may_begin(queued):
                continue
            try:
                floor = self._floor_generation()
            except NotBuiltError:  # the writer makes the database: the very first time, that takes a moment
                return None
            begun = self.state.start_run(queued.id, floor_generation=floor)
            if begun is not None:
                return begun
        return None

    def _floor_generation(self) -> int:
        from store.sqlite import SqliteStore

        with closing(SqliteStore(self.runtime.layout.database, base_id=None)) as store, store.snapshot() as snapshot:
            return snapshot.highest_generation()

    async def _carry_out(self, run: RunRecord) -> None:
        log = self.runtime.log.bind(run=run.id, kind=run.kind)
        log.info("run_begins", trigger=run.trigger)
        self.runtime.status.doing = f"run {run.id}"
        try:
            carry_out = carry_out_maintenance_run if run.kind in MAINTENANCE_KINDS else carry_out_service_run
            with closing(SqliteStateStore(self.runtime.layout.state, read_only=True)) as looked_at:
                await asyncio.to_thread(carry_out, self._service_run(run, looked_at))
        except LeavingError:
            log.info("run_left_open")
            return
        except CancelledRunError:
            pass
        except DiskFullError as error:
            log.info("run_left_open")
            await self._await_room(run, error)
            raise
        except KnowledgeError as error:
            self._end_if_open(run, error)
            log.error("run_failed", code=error.code, message=error.message, hint=error.hint)
        except Exception as error:  # noqa: BLE001 - a fault of ours in one run is not the next one's
            self._end_if_open(run, error)
            log.error("run_failed", code=KnowledgeError.code, **fault_of(error))
        finally:
            self.runtime.status.doing = ""
        if (ended := self.state.run(run.id)) is not None:
            log.info("run_ended", state=ended.state, cause=ended.cause, **ended.counts)
            self.runtime.telemetry.count(RUNS_ENDED, 1, ended.state)
        self.telling.soon()
        give_back_free_memory()  # the plan of a large tree is the most that a scheduler ever holds

    async def _await_room(self, run: RunRecord, error: DiskFullError) -> None:
        """Until it is worth to go on with a run for which the disk had no room; it says so, as soon as that fits."""
        self.runtime.status.wait_for("room on the disk")
        is_told = False  # once: each telling takes some of the room that is left
        while True:
            if not is_told:
                with suppress(StorageError):
                    self._tell_waiting(run, error)
                    is_told = True
            await self.runtime.pause(ROOM_LOOKED_FOR_EVERY_S)
            if self.runtime.stopping.is_set() or self.state.wish(run.id) or not room_of(self.runtime).is_short:
                return

    def _tell_waiting(self, run: RunRecord, error: DiskFullError) -> None:
        """Raises StorageError where even the operator's room is used up."""
        with_last_room(
            self.runtime.layout,
            lambda: self.state.set_run_state(run.id, "waiting", f"room on the disk: {error.message}"),
        )

    def _end_if_open(self, run: RunRecord, error: Exception) -> None:
        """A run that could not even begin is not begun again and again."""
        known = self.state.run(run.id)
        if known is not None and known.ended_ns is None:
            self.state.end_run(run.id, "failed", known.counts, *failure_words(error))

    def _service_run(self, run: RunRecord, looked_at: SqliteStateStore) -> ServiceRun:
        progress = RunProgress()

        def look() -> Wish:
            if self.runtime.stopping.is_set():
                raise LeavingError
            return looked_at.wish(run.id)

        control = RunControl(look)
        loop = asyncio.get_running_loop()

        def work_off(it: "Running", phases: "Sequence[Phase]", *, processes: int) -> tuple[float, ...]:
            """From the run's thread: the loop dispatches."""
            with closing(SqliteStateStore(self.runtime.layout.state)) as state:
                dispatch = RunDispatch(self.runtime, self.pool, self.names, self.queue, state)
                holds_s = asyncio.run_coroutine_threadsafe(dispatch.run(it, phases), loop).result()
            it.record_given_up(dispatch.gave_up)
            return holds_s

        return ServiceRun(
            settings=self.runtime.settings,
            run=run,
            request=RunRequest.from_json(self.state.request_of(run.id)),
            progress=progress,
            control=control,
            heed=control.heed,
            work_off=work_off,
            told=lambda host, model: self.runtime.log.info("embedding_begins", host=host, model=model),
        )
