"""The queue's way of one run: Valkey, workers, the writer and the dispatcher, started together and stopped together.

Imported only when there is work to queue: asyncio, arq and redis cost a quarter of a second.
"""

import asyncio
import contextlib
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import aiosqlite
from arq.connections import ArqRedis
from arq.worker import Worker
from msgspec import Struct

from app.assignment import PipelinePlan, assignment_of
from app.page_embedder import page_embedder
from app.progress import RunProgress
from app.run_control import RunControl
from app.run_following import follow_wishes, tell_progress
from app.worker_pool import WorkerPool
from app.worker_process import Jobs, build_check_worker, build_worker
from domain.errors import QueueError, StorageError
from domain.files import FileFailure, Page
from scheduler.dispatch import Dispatcher, Listening
from scheduler.queue.address import QueueAddress, parse_queue_url
from scheduler.queue.client import PageQueue, open_pool, queue_errors
from scheduler.queue.embedded import EmbeddedValkey
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import WRITE_PAGE
from store import files
from store.documents import SqliteStoreWriter
from store.state import SqliteStateStore
from store.state_port import PageOutcome, RemovalCandidate
from workers.checking import FinishedPage
from workers.context import WorkerContext
from workers.embedding import PageEmbedder
from workers.writer.inbox import AwaitsMore, DocumentWriter
from workers.writer.jobs import WriterContext, park_payload, write_page

POLL_DELAY_S = 0.02
# every step of the writer's statements gives the interpreter lock away, and waits this long to have it back
SWITCH_INTERVAL_S = 0.001
WRITE_TIMEOUT_S = 600
PAGES_IN_HAND = 12  # of the spool, waiting for their commit
WRITE_POLL_DELAY_S = 0.1
PAGES_HERE = 8  # in this process a page keeps its place until it is committed: enough of them to make a group
JOBS_END_S = 5  # what a job may take to end when the run is over

Phase = Callable[[], Iterator[Page | RemovalCandidate]]
"""Plans a part of a run, once the parts before it are in the store."""


class Watching(Protocol):
    """Who is told how a run gets on."""

    @property
    def control(self) -> RunControl: ...

    @property
    def progress(self) -> RunProgress: ...

    def pause(self, is_paused: bool) -> None: ...

    def observe(self, page: FinishedPage, outcome: PageOutcome) -> None: ...

    def hold_up(self, cause: str) -> None:
        """Why nothing moves now, in a few words; "" when it does."""
        ...


class PipelineResult(Struct, frozen=True):
    """What the caller cannot see through `observe`."""

    gave_up: tuple[FileFailure, ...]
    holds_s: tuple[float, ...]


async def run_pipeline(
    plan: PipelinePlan,
    store: SqliteStoreWriter,
    phases: Sequence[Phase],
    watching: Watching,
    server: EmbeddedValkey | None,
    started: list[Process],
) -> PipelineResult:
    """Queue every planned page and return when all are in the store; a phase is planned when the one before is.

    `server` has been launched by the caller, who stops it; None: the queue is the configured one. `started` are worker
    processes that wait for their assignment already.

    Raises what stopped it (StorageError, QueueError, ...); everything started here has ended then.
    """
    names = QueueNames(plan.base_id)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(files.clear_spool, plan.layout)  # of pages whose job was ended before it dropped their file
        address = parse_queue_url(plan.queue_url) if server is None else server.wait()
        pool = await stack.enter_async_context(open_pool(address))
        queue = PageQueue(pool, names, address)
        await queue.drop_everything()
        scheduler_state = stack.enter_context(contextlib.closing(SqliteStateStore(plan.layout.state)))
        writer_state = stack.enter_context(contextlib.closing(SqliteStateStore(plan.layout.state)))
        dispatcher = Dispatcher(queue, names, plan.run, scheduler_state, listening=Listening(watching.hold_up))

        def observed(page: FinishedPage, outcome: PageOutcome) -> None:
            if dispatcher.done(page.number):  # a page that was queued twice counts once
                watching.observe(page, outcome)

        in_hand = PAGES_IN_HAND if plan.worker_processes else PAGES_HERE

        def awaits_more(waiting: int) -> bool:
            return waiting < min(in_hand, dispatcher.in_flight_count)

        writer = await stack.enter_async_context(
            _document_writer(store, writer_state, plan.run.id, observed, awaits_more)
        )
        wiring = _Wiring(plan, names, pool, queue, address, writer, started, asyncio.get_running_loop().create_future())
        if plan.worker_processes:
            workers = wiring.processes(dispatcher)
        else:
            executor = stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix="check"))
            embedder = await stack.enter_async_context(
                page_embedder(plan.vectors, plan.layout.database, queue, executor, share=1.0)
            )
            context = wiring.check_context(executor, embedder)
            give_up = None if embedder is None else embedder.give_up
            workers = [_run_worker(build_check_worker(pool, context, pages=PAGES_HERE), give_up)]
        following = [
            follow_wishes(watching, dispatcher),
            tell_progress(scheduler_state, plan.run.id, watching.progress),
        ]
        others = [writer.run(), wiring.until_stopped(), *following, *workers]
        await _until_first(dispatch_phases(dispatcher, phases), others, address)
        if plan.queue_url:
            await queue.drop_everything()
        return PipelineResult(tuple(dispatcher.gave_up), tuple(writer.holds_s))


class _Wiring(Struct, frozen=True):
    """The parts of a run that its workers are built from."""

    plan: PipelinePlan
    names: QueueNames
    pool: ArqRedis
    queue: PageQueue
    address: QueueAddress
    writer: DocumentWriter
    started: list[Process]
    stopped: "asyncio.Future[None]"

    def stop(self, error: Exception) -> None:
        """End the run with the error of a job."""
        if isinstance(error, OSError):
            spool = self.plan.layout.spool
            error = StorageError(f"cannot use {spool}: {error.strerror}", hint="check the directory and the disk")
        if not self.stopped.done():
            self.stopped.set_exception(error)

    async def until_stopped(self) -> None:
        await self.stopped

    def processes(self, dispatcher: Dispatcher) -> list[Coroutine[Any, Any, None]]:
        """Pages are checked in processes of their own; the spool lies between them and the writer."""
        plan = self.plan
        spool = files.make_spool(plan.layout)
        mine = (plan.run.id, plan.run.generation)
        context = WriterContext(
            self.names, spool, self.writer, stop=self.stop, is_current=lambda run, generation: (run, generation) == mine
        )
        pool = WorkerPool(assignment_of(plan, spool, self.address), dispatcher, self.started)
        return [_run_worker(build_write_worker(self.pool, context)), *pool.tasks(plan.worker_processes)]

    def check_context(self, executor: ThreadPoolExecutor, embedder: PageEmbedder | None) -> WorkerContext:
        """Pages are checked in this process, and go straight into the inbox."""
        plan = self.plan
        return WorkerContext(
            names=self.names,
            run=plan.run.id,
            generation=plan.run.generation,
            roots={name: Path(path) for name, path in plan.roots.items()},
            max_file_bytes=plan.max_file_bytes,
            substring_index=plan.substring_index,
            sink=self.writer,
            executor=executor,
            stop=self.stop,
            embedder=embedder,
        )


async def dispatch_phases(dispatcher: Dispatcher, phases: Sequence[Phase]) -> None:
    for phase in phases:
        await dispatcher.dispatch(await asyncio.to_thread(phase))


async def _until_first(
    main: Coroutine[Any, Any, None], others: list[Coroutine[Any, Any, None]], address: QueueAddress
) -> None:
    """Run `main` to its end beside tasks that have none; whatever ends first with an error ends all."""
    leading = asyncio.create_task(main)
    followers = [asyncio.create_task(other) for other in others]
    try:
        await asyncio.wait([leading, *followers], return_when=asyncio.FIRST_COMPLETED)
        for task in (*followers, leading):
            if task.done() and not task.cancelled():
                with queue_errors(address):
                    task.result()
        if not leading.done():
            raise QueueError("a part of the run has ended before its work", hint="run the command again")
    finally:
        for task in (leading, *followers):
            task.cancel()
        await asyncio.gather(leading, *followers, return_exceptions=True)


def writing_thread() -> aiosqlite.Connection:
    """A thread for functions that use the store's own connection (store.connection.run_on_connection). It ends with
    the block of the answer, and the connection does not: aiosqlite is given something else to close."""

    class Borrowed:
        def close(self) -> None:
            return None

    return aiosqlite.Connection(Borrowed, 64)  # type: ignore[arg-type]


@asynccontextmanager
async def _document_writer(
    store: SqliteStoreWriter,
    state: SqliteStateStore,
    run_id: int,
    observe: Callable[[FinishedPage, PageOutcome], None],
    awaits_more: AwaitsMore,
) -> AsyncIterator[DocumentWriter]:
    """The writer over the store's own connection, moved to a thread of its own for the time of the run."""

    async with writing_thread() as connection:
        yield DocumentWriter(
            connection,
            store,
            record=lambda pages, outcomes: state.finish_pages(run_id, outcomes),
            observe=observe,
            awaits_more=awaits_more,
        )


def build_write_worker(pool: ArqRedis, context: WriterContext) -> Worker:
    """A worker on the write queue; enough pages at a time for groups to form. A poll asks the server about every job
    that runs, so it comes less often than where jobs are short."""
    jobs = Jobs(
        queue_name=context.names.writes,
        name=WRITE_PAGE,
        job=write_page,
        park=park_payload,
        at_a_time=PAGES_IN_HAND,
        timeout_s=WRITE_TIMEOUT_S,
        poll_delay_s=WRITE_POLL_DELAY_S,
    )
    return build_worker(pool, context, jobs)


async def _run_worker(worker: Worker, give_up: Callable[[], None] | None = None) -> None:
    """Run an arq worker until cancelled, then end it in order, also where it is cancelled once more meanwhile.
    `give_up` ends what its jobs wait for outside: a server that is away would keep them."""
    running = asyncio.create_task(worker.async_run())
    try:
        await asyncio.shield(running)
    finally:
        if give_up is not None:
            give_up()
        ending = asyncio.create_task(end_worker(worker, running, within_s=JOBS_END_S))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise


async def end_worker(worker: Worker, running: "asyncio.Task[None]", *, within_s: float) -> None:
    """It picks no more jobs, and those it has are let end: a cancelled one would leave its connection in the middle of
    an answer."""
    worker.allow_pick_jobs = False
    if not running.done():
        await asyncio.sleep(POLL_DELAY_S)  # the poll that may be going on
    jobs = list(worker.tasks.values())
    if jobs:
        await asyncio.wait(jobs, timeout=within_s)
    for task in (*jobs, running):
        task.cancel()
    await asyncio.gather(*jobs, running, return_exceptions=True)
