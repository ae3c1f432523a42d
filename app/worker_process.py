"""A worker as a process of its own: started with its assignment on standard input, and gone when that closes.

Standard input stays open for as long as the starter lives, so a starter that is killed takes its workers along.
The address of the queue, with its password if any, comes that way too: never as an argument.
"""

import asyncio
import gc
import logging
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from arq.connections import ArqRedis
from arq.worker import Worker, func

from app.assignment import READY_LINE, Assignment, LastWords
from app.page_embedder import page_embedder
from app.tracing import end_tracing
from domain.errors import KnowledgeError, StorageError
from scheduler.queue.client import PageQueue, open_pool, queue_errors
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import CHECK_PAGE, PARK, WRITE_PAGE, deserialize_job, serialize_job
from workers.check_watch import CHECK_LIMIT_S
from workers.context import CONTEXT_KEY, WorkerContext, WorkerHost
from workers.jobs import check_page, park_payload
from workers.writer.jobs import SpoolSink

if TYPE_CHECKING:
    from arq.typing import WorkerCoroutine

POLL_DELAY_S = 0.02
PAGES_AT_A_TIME = 4  # one is worked on, the others wait beside it: a poll is never on the way
JOB_TIMEOUT_S = 300
MOST_TRIES = 1_000_000  # arq counts each time that a job is begun: workers that are stopped in order burn none
EMBEDDING_TIMEOUT_S = 7 * 24 * 3600  # a page may wait out its model's server; that it is alive, the process shows


class JobHooks(NamedTuple):
    """Called with arq's context around every job."""

    began: "WorkerCoroutine | None" = None
    ended: "WorkerCoroutine | None" = None


NO_HOOKS = JobHooks()


class Jobs(NamedTuple):
    """What one kind of worker does: its queue, its job by name, and how many of them at a time."""

    queue_name: str
    name: str
    job: "WorkerCoroutine"
    park: "WorkerCoroutine"  # what becomes of a job that another kind of worker should have got
    at_a_time: int
    timeout_s: int
    poll_delay_s: float


def build_worker(pool: ArqRedis, context: object, jobs: Jobs, hooks: JobHooks = NO_HOOKS) -> Worker:
    """An arq worker of one kind. Every option is a keyword here: arq drops a misspelt setting silently."""
    foreign = {CHECK_PAGE, WRITE_PAGE, PARK} - {jobs.name}
    return Worker(
        functions=[func(jobs.job, name=jobs.name), *(func(jobs.park, name=name) for name in sorted(foreign))],
        queue_name=jobs.queue_name,
        redis_pool=pool,
        ctx={CONTEXT_KEY: context},
        handle_signals=False,
        max_jobs=jobs.at_a_time,
        job_timeout=jobs.timeout_s,
        max_tries=MOST_TRIES,
        on_job_start=hooks.began,
        on_job_end=hooks.ended,
        keep_result=0,
        poll_delay=jobs.poll_delay_s,
        health_check_interval=3600,
        job_serializer=serialize_job,
        job_deserializer=deserialize_job,
        log_results=False,
    )


def build_check_worker(pool: ArqRedis, context: WorkerContext, *, pages: int = PAGES_AT_A_TIME) -> Worker:
    """A worker on the check queue, for one run."""
    timeout_s = JOB_TIMEOUT_S if context.embedder is None else EMBEDDING_TIMEOUT_S
    jobs = Jobs(context.names.checks, CHECK_PAGE, check_page, park_payload, pages, timeout_s, POLL_DELAY_S)
    return build_worker(pool, WorkerHost.of_one_run(context), jobs)


async def work(assignment: Assignment) -> None:
    """Work on the check queue until cancelled."""
    names = QueueNames(assignment.base_id)
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix="check"))
        pool = await stack.enter_async_context(open_pool(assignment.address))
        queue = PageQueue(pool, names, assignment.address)
        database = Path(assignment.database)
        embedder = await stack.enter_async_context(
            page_embedder(assignment.vectors, database, queue, executor, share=assignment.share)
        )
        context = WorkerContext(
            names=names,
            run=assignment.run,
            generation=assignment.generation,
            roots={name: Path(path) for name, path in assignment.roots.items()},
            max_file_bytes=assignment.max_file_bytes,
            substring_index=assignment.substring_index,
            sink=SpoolSink(Path(assignment.spool), queue, names, assignment.generation),
            executor=executor,
            stop=_leave,
            embedder=embedder,
            check_limit_s=CHECK_LIMIT_S,
        )
        sys.stdout.buffer.write(READY_LINE)
        sys.stdout.buffer.flush()
        with queue_errors(assignment.address):
            await build_check_worker(pool, context).async_run()


def _leave(error: Exception) -> None:
    """End this process with the status that tells its starter what has happened; the last line says the rest."""
    if isinstance(error, KnowledgeError):
        told, status = LastWords(error.code, error.message, error.hint), error.exit_status
    else:
        status = StorageError.exit_status if isinstance(error, OSError) else KnowledgeError.exit_status
        told = LastWords("", str(error), "")
    sys.stderr.buffer.write(msgspec.json.encode(told) + b"\n")
    sys.stderr.flush()
    os._exit(status)


def _die_with_starter() -> None:
    """End this process when standard input closes. Whatever it was at is redone: nothing here is the record."""
    while sys.stdin.buffer.read(4096):
        pass
    end_tracing()
    os._exit(0)


def main() -> None:
    # pages are made of values without cycles: looking for some among a million of them takes a tenth of the time
    logging.lastResort = None  # what arq has to say of a job is said by the run
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    assignment = msgspec.json.decode(sys.stdin.buffer.readline(), type=Assignment)
    threading.Thread(target=_die_with_starter, daemon=True).start()
    try:
        asyncio.run(work(assignment))
    except KnowledgeError as error:
        _leave(error)


if __name__ == "__main__":
    main()
