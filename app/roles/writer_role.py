"""The writer: the one process that holds a base's lock and commits what the workers have made (C-03, R24).

A second one stands by, and takes over when the kernel frees the lock of the first. It serves two ways in: pages, by
name, from the queue; and calls (app.roles.calls), from the base's home, which work without the queue.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import aiosqlite
from arq.connections import ArqRedis
from msgspec import Struct
from redis.exceptions import RedisError

from app.beside_service import WRITER_PURPOSE
from app.heap import give_back_free_memory
from app.last_room import with_last_room
from app.pipeline import PAGES_IN_HAND, build_write_worker, writing_thread
from app.roles.calls import Answer, answer_call, failed, forget_old_calls, is_called, read_call, waiting_calls
from app.roles.disk_brake import LOOK_EVERY_S, DiskBrake, FullDisk
from app.roles.job_service import JobService
from app.roles.measures import CALLS_ANSWERED
from app.roles.queue_place import queue_place
from app.roles.runtime import Runtime, beside
from app.roles.standby import locked
from app.roles.writer_calls import answer_to
from app.wiring import WritableBase, opened_base
from domain.errors import KnowledgeError
from domain.measures import CHUNKS_WRITTEN, FILES_WRITTEN, PAGES_WRITTEN
from scheduler.queue.client import PageQueue, lazy_pool
from scheduler.queue.done_notes import DoneNote, FailedFile, say_done
from scheduler.queue.leases import Lease, free_writes
from scheduler.queue.names import QueueNames
from store import files
from store.connection import forget_pages, run_on_connection
from store.lock import WriteLock
from store.pending_restore import finish_restore
from store.state_port import PageOutcome
from workers.checking import FinishedPage
from workers.writer.inbox import DocumentWriter
from workers.writer.jobs import WriterContext

CALLS_LOOKED_FOR_EVERY_S = 0.05


async def writer_role(runtime: Runtime) -> None:
    """Until the runtime is told to end. Raises what a writer cannot go on with: a damaged file, a disk that fails."""
    layout = runtime.layout
    files.make_home(layout, allow_network_filesystem=runtime.settings.allow_network_filesystem)
    spool, calls = files.make_spool(layout), files.make_calls(layout)
    lock = WriteLock(layout.lock, purpose=WRITER_PURPOSE)
    address = queue_place(runtime.settings, layout)
    async with lazy_pool(address) as pool, locked(runtime, lock, pool) as is_ours:
        if not is_ours:
            return
        finish_restore(layout)
        with opened_base(layout, runtime.settings) as base:
            names = QueueNames(base.state.base_id())
            brake = DiskBrake(runtime, PageQueue(pool, names, address))
            async with _document_writer(runtime, base, pool, names, brake) as it:
                context = WriterContext(names, spool, it.writer, stop=it.stop, is_current=it.is_current)
                await _write(it, pool, context, calls, brake)


async def _write(it: "Writing", pool: ArqRedis, context: WriterContext, calls: Path, brake: DiskBrake) -> None:
    runtime, names = it.runtime, context.names
    lease = Lease(pool, names, runtime.lease_note)
    pages = JobService(runtime, lambda: build_write_worker(pool, context), lambda: free_writes(pool, names))

    async def until_drained() -> None:
        await runtime.stopping.wait()
        runtime.log.info("drains", in_hand=pages.in_hand)
        await pages.drain()

    runtime.status.is_active = True
    runtime.log.info("active")
    try:
        await beside(
            until_drained,
            {
                "writing": it.run,
                "stopped": it.until_stopped,
                "pages": pages.run,
                "notes": lambda: _say_notes(it.notes, pool, names),
                "calls": lambda: _answer_calls(it, calls),
                "brake": brake.run,
                "lease": lease.run,
            },
        )
    finally:
        runtime.status.is_active = False
        await lease.end()


class Writing(Struct):
    """The writer's parts while it has the lock. Made and used in one event loop."""

    runtime: Runtime
    base: WritableBase
    connection: aiosqlite.Connection
    notes: "deque[DoneNote]"
    writer: DocumentWriter
    stopped: "asyncio.Future[None]"

    async def run(self) -> None:
        await self.writer.run()

    async def until_stopped(self) -> None:
        await self.stopped

    def stop(self, error: Exception) -> None:
        """End the role with the error of a job."""
        if not self.stopped.done():
            self.stopped.set_exception(error)

    def is_current(self, run_id: int, generation: int) -> bool:
        """Whether a page is of a run that goes on."""
        run = self.base.state.run(run_id)
        return run is not None and run.is_open and run.generation == generation


@asynccontextmanager
async def _document_writer(
    runtime: Runtime, base: WritableBase, pool: ArqRedis, names: QueueNames, brake: DiskBrake
) -> AsyncIterator[Writing]:
    notes: deque[DoneNote] = deque()
    queued = [0]

    def record(pages: Sequence[FinishedPage], outcomes: Sequence[PageOutcome]) -> None:
        for run in {page.run for page in pages}:
            mine = [outcome for page, outcome in zip(pages, outcomes, strict=True) if page.run == run]
            base.state.finish_pages(run, mine)

    def observe(page: FinishedPage, outcome: PageOutcome) -> None:
        notes.append(done_note(page, outcome))
        runtime.telemetry.count(PAGES_WRITTEN)
        runtime.telemetry.count(CHUNKS_WRITTEN, sum(len(document.chunks) for document in page.documents))
        for ending, number in outcome.counts.items():
            runtime.telemetry.count(FILES_WRITTEN, number, ending)

    def awaits_more(waiting: int) -> bool:
        return waiting < min(PAGES_IN_HAND, queued[0])

    async def count_queued() -> None:
        while True:
            with suppress(RedisError, OSError):
                queued[0] = int(await pool.zcard(names.checks)) + int(await pool.zcard(names.writes))
            await asyncio.sleep(0.1)

    def rest() -> None:
        forget_pages(base.writer.connection)
        give_back_free_memory()

    async with writing_thread() as connection:
        writer = DocumentWriter(
            connection,
            base.writer,
            record=record,
            observe=observe,
            awaits_more=awaits_more,
            brake=brake,
            telemetry=runtime.telemetry,
        )
        writer.rest = rest
        counting = asyncio.create_task(count_queued())
        try:
            yield Writing(runtime, base, connection, notes, writer, asyncio.get_running_loop().create_future())
        finally:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)


def done_note(page: FinishedPage, outcome: PageOutcome) -> DoneNote:
    """A committed page in numbers."""
    skips: dict[str, tuple[int, str]] = {}
    for skip in page.skips:
        count, first = skips.get(skip.reason.value, (0, skip.key))
        skips[skip.reason.value] = (count + 1, first)
    return DoneNote(
        run=page.run,
        page=page.number,
        kind=page.kind,
        counts=outcome.counts,
        skips=skips,
        failures=tuple(FailedFile(failure.key, failure.reason, failure.detail) for failure in outcome.failures),
        documents=len(page.documents),
        chunks=sum(len(document.chunks) for document in page.documents),
        text_bytes=page.text_bytes,
        embedded=page.texts.embedded,
        reused=page.texts.reused,
        from_parts=page.texts.from_parts,
    )


async def _say_notes(notes: "deque[DoneNote]", pool: ArqRedis, names: QueueNames) -> None:
    """What is in the store is told once; a scheduler that misses a note looks into state.db."""
    while True:
        told = list(notes)
        if told:
            with suppress(RedisError, OSError):
                await say_done(pool, names, told)
            for _ in told:
                notes.popleft()
        await asyncio.sleep(0.01 if told else 0.02)


async def _answer_calls(it: Writing, directory: Path) -> None:
    """Answer what other processes ask, one call after the other, between two groups."""
    forget_old_calls(directory)
    while True:
        for call_id in waiting_calls(directory):
            try:
                call = read_call(directory, call_id)
            except FileNotFoundError:  # taken back
                continue
            except (OSError, ValueError) as error:
                refusal = KnowledgeError(f"the call cannot be read: {type(error).__name__}")
                await _say_answer(it, directory, call_id, failed(refusal))
                continue

            def is_wanted(call_id: str = call_id) -> bool:
                return is_called(directory, call_id) and not it.runtime.stopping.is_set()

            answer = await run_on_connection(it.connection, answer_to, call, it.base, it.runtime.settings, is_wanted)
            if answer.failed is not None and it.runtime.stopping.is_set():
                await asyncio.Event().wait()  # broken off: the next writer does it
            await _say_answer(it, directory, call_id, answer)
            it.runtime.telemetry.count(CALLS_ANSWERED)
        await asyncio.sleep(CALLS_LOOKED_FOR_EVERY_S)


async def _say_answer(it: Writing, directory: Path, call_id: str, answer: Answer) -> None:
    """Once there is room for it, and for as long as somebody waits for it."""
    full_disk = FullDisk(it.runtime)
    while is_called(directory, call_id):
        with full_disk.passed_over():
            with_last_room(it.runtime.layout, partial(answer_call, directory, call_id, answer))
            return
        await asyncio.sleep(LOOK_EVERY_S)
