"""A worker: reads, cuts and embeds the files of whichever run goes on. Any number of them work side by side."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from typing import Any

from arq.connections import ArqRedis
from arq.worker import Worker
from redis.exceptions import RedisError

from app.roles.disk_brake import FullDisk
from app.roles.job_service import JobService
from app.roles.queue_fitness import clock_worries, watch_queue_fitness
from app.roles.queue_place import queue_place
from app.roles.role_log import fault_of
from app.roles.run_contexts import RunContexts
from app.roles.runtime import TRY_AGAIN_S, Runtime, beside
from app.roles.standby import known_base_id
from app.worker_process import EMBEDDING_TIMEOUT_S, PAGES_AT_A_TIME, POLL_DELAY_S, JobHooks, Jobs, build_worker
from domain.errors import DiskFullError, KnowledgeError
from domain.settings import Settings
from scheduler.queue.client import PageQueue, lazy_pool
from scheduler.queue.leases import DeadWorker, Lease, forget_worker, hold, let_go
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import CHECK_PAGE
from scheduler.queue.troubles import Trouble, say_trouble
from workers.context import WorkerHost
from workers.jobs import check_page, park_payload


async def worker_role(runtime: Runtime) -> None:
    """Until the runtime is told to end."""
    address = queue_place(runtime.settings, runtime.layout)  # refused at once where there can be none
    base_id = await known_base(runtime)
    if not base_id:
        return
    names = QueueNames(base_id)
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(max_workers=1, thread_name_prefix="check"))
        pool = await stack.enter_async_context(lazy_pool(address))
        queue = PageQueue(pool, names, address, runtime.patience)
        troubles = Troubles(pool, names, runtime)
        contexts = RunContexts(runtime, pool, names, queue, executor, troubles.tell)
        stack.push_async_callback(contexts.aclose)
        host = WorkerHost(names, contexts.context_of)
        lease = Lease(pool, names, runtime.lease_note)

        async def before() -> None:
            await lease.say()
            await _let_all_go(pool, names, runtime.holder)
            await lease.say()  # to be let go is to be forgotten

        pages = JobService(runtime, lambda: _build(runtime, pool, names, host), before)

        async def until_drained() -> None:
            await runtime.stopping.wait()
            runtime.log.info("drains", in_hand=pages.in_hand)
            await pages.drain()

        runtime.status.is_active = True
        try:
            await beside(
                until_drained,
                {
                    "pages": pages.run,
                    "lease": lease.run,
                    "troubles": troubles.run,
                    "fitness": lambda: watch_queue_fitness(runtime, address, clock_worries),
                },
            )
        finally:
            runtime.status.is_active = False
            contexts.give_up()
            await lease.end()
            await _leave(pool, names, runtime.holder)


async def known_base(runtime: Runtime) -> str:
    """The base's id, once there is a base; "" where the role is told to end before. What is waited for is logged once,
    and again when it is something else."""
    told = ""
    while not runtime.stopping.is_set():
        awaited = f"there is no index at {runtime.layout.home} yet: the first start of a scheduler or writer makes it"
        try:
            if base_id := known_base_id(runtime):
                return base_id
        except KnowledgeError as error:  # it is being made
            awaited = error.message
        if awaited != told:
            runtime.log.info("waits", message=awaited)
            told = awaited
        runtime.status.wait_for("the scheduler's or the writer's first start")
        await runtime.pause(TRY_AGAIN_S)
    return ""


def pages_at_a_time(settings: Settings) -> int:
    """How many pages a worker takes: one is read while others are embedded, as many as it may ask for at a time.

    What it has taken no other worker can do, however idle that one is.
    """
    if settings.embeddings is None:
        return PAGES_AT_A_TIME
    return min(PAGES_AT_A_TIME, 1 + settings.embeddings.concurrency)


async def _let_all_go(pool: ArqRedis, names: QueueNames, holder: str) -> None:
    """Before it takes any job: give back those that this process had when the queue went away, and could not give back
    then. It lives, so no reaper would. Raises RedisError, OSError."""
    held = [item.decode() for item in await pool.smembers(names.held(holder))]  # type: ignore[misc]
    await forget_worker(pool, names, DeadWorker(holder, tuple(held), ""))


def _build(runtime: Runtime, pool: ArqRedis, names: QueueNames, host: WorkerHost) -> Worker:
    """An arq worker that says which jobs it has: should its process die, they are freed at once."""

    async def began(ctx: dict[Any, Any]) -> None:
        with suppress(RedisError, OSError):
            await hold(pool, names, runtime.holder, str(ctx["job_id"]))

    async def ended(ctx: dict[Any, Any]) -> None:
        with suppress(RedisError, OSError):
            await let_go(pool, names, runtime.holder, str(ctx["job_id"]))

    pages = pages_at_a_time(runtime.settings)
    jobs = Jobs(names.checks, CHECK_PAGE, check_page, park_payload, pages, EMBEDDING_TIMEOUT_S, POLL_DELAY_S)
    return build_worker(pool, host, jobs, JobHooks(began, ended))


async def _leave(pool: ArqRedis, names: QueueNames, holder: str) -> None:
    """Give back at once what is still in hand: no file is to blame for that."""
    with suppress(RedisError, OSError):
        await _let_all_go(pool, names, holder)


def _unexpected(error: Exception) -> KnowledgeError:
    """Without the words of the error, which may be those of a document."""
    why = f": {error.strerror}" if isinstance(error, OSError) else ""
    return KnowledgeError(
        f"{type(error).__name__} in a worker{why}", hint="the log of that worker says where (job_failed)"
    )


class Troubles:
    """Errors of jobs on their way to the scheduler, which ends the run or lets it wait."""

    def __init__(self, pool: ArqRedis, names: QueueNames, runtime: Runtime) -> None:
        self._pool = pool
        self._names = names
        self._runtime = runtime
        self._full_disk = FullDisk(runtime)
        self._arrived: asyncio.Queue[Trouble] = asyncio.Queue()

    def tell(self, error: Exception) -> None:
        """Of a job that was not done (workers.context.Stop)."""
        ours = error if isinstance(error, KnowledgeError) else _unexpected(error)
        if isinstance(ours, DiskFullError):
            self._full_disk.tell(ours)
        else:
            said = fault_of(error) if ours is not error else {"message": ours.message}
            self._runtime.log.error("job_failed", code=ours.code, **said)
        self._arrived.put_nowait(Trouble("", ours.code, ours.message, ours.hint))

    async def run(self) -> None:
        while True:
            trouble = await self._arrived.get()
            while True:
                try:
                    await say_trouble(self._pool, self._names, trouble)
                    break
                except (RedisError, OSError):
                    await asyncio.sleep(TRY_AGAIN_S)
