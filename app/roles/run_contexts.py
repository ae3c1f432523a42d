"""The run that goes on, as a worker of a service sees it: its roots, limits and vectors.

A job names a run and nothing else that is believed: roots come from state.db, everything else from the worker's own
configuration, and the vectors that the run makes from the plan that the scheduler has recorded (T26).
"""

import asyncio
from concurrent.futures import Executor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from arq.connections import ArqRedis
from msgspec import Struct
from msgspec.structs import replace
from redis.exceptions import RedisError

from app.assignment import VectorPlan
from app.page_embedder import page_embedder
from app.roles.runtime import Runtime
from domain.errors import ConfigurationError, KnowledgeError
from domain.settings import Settings
from scheduler.queue.client import PageQueue
from scheduler.queue.leases import live_leases, stand_at
from scheduler.queue.names import QueueNames
from store import files
from store.ballast import require_room
from store.run_port import RunRecord
from store.sqlite import SqliteStore
from store.state import SqliteStateStore
from workers.check_watch import CHECK_LIMIT_S
from workers.context import Stop, WorkerContext
from workers.writer.jobs import SpoolSink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONFIGURE_HINT = "give every role the same configuration"


class RunVectors(Struct, frozen=True):
    """What a run records for its workers (RunLedgerPort.record_plan): identities by their ids in knowledge.db."""

    target: int = 0  # 0: the run makes no vectors
    beside: int = 0
    requests_per_minute: int = 0  # 0: as configured

    def to_json(self) -> dict[str, object]:
        return {"target": self.target, "beside": self.beside, "requests_per_minute": self.requests_per_minute}

    @classmethod
    def from_json(cls, plan: dict[str, object]) -> "RunVectors":
        numbers = [plan.get(name, 0) for name in ("target", "beside", "requests_per_minute")]
        return cls(*(number if isinstance(number, int) else 0 for number in numbers))


class RunContexts:
    """The context of one run at a time; another run's takes its place once the jobs of the one before are over."""

    def __init__(
        self, runtime: Runtime, pool: ArqRedis, names: QueueNames, queue: PageQueue, executor: Executor, stop: Stop
    ) -> None:
        self._runtime = runtime
        self._pool = pool
        self._names = names
        self._queue = queue
        self._executor = executor
        self._stop = stop
        self._state: SqliteStateStore | None = None
        self._stack = AsyncExitStack()
        self._context: WorkerContext | None = None
        self._making = asyncio.Lock()
        self._reading = asyncio.Lock()

    async def context_of(self, run: int, generation: int) -> WorkerContext | None:
        """None where that run is over, or was never begun."""
        async with self._making:
            if self._context is None or (self._context.run, self._context.generation) != (run, generation):
                await self._leave()
                try:
                    self._context = await self._entered(run, generation)
                except KnowledgeError as error:  # the run cannot be worked for, and ends with it
                    self._stop(error)
            return self._context

    async def aclose(self) -> None:
        await self._leave()
        if self._state is not None:
            self._state.close()

    def give_up(self) -> None:
        """End what jobs wait for outside: the role ends."""
        if self._context is not None and self._context.embedder is not None:
            self._context.embedder.give_up()

    async def _leave(self) -> None:
        self.give_up()
        self._context = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def _entered(self, run_id: int, generation: int) -> WorkerContext | None:
        if self._state is None:
            self._state = SqliteStateStore(self._runtime.layout.state, read_only=True)
        run = self._state.run(run_id)
        if run is None or not run.is_open or run.generation != generation:
            return None
        settings, layout = self._runtime.settings, self._runtime.layout
        plan = vector_plan(settings, layout.database, RunVectors.from_json(self._state.plan_of(run_id)))
        share = 1 / await self._workers()
        embedder = await self._stack.enter_async_context(
            page_embedder(
                plan,
                layout.database,
                self._queue,
                self._executor,
                share=share,
                telemetry=self._runtime.telemetry,
                is_patient=True,
            )
        )
        spool = files.make_spool(layout)
        return WorkerContext(
            names=self._names,
            run=run_id,
            generation=generation,
            roots=self._roots(self._state, run),
            max_file_bytes=settings.max_file_bytes,
            substring_index=settings.substring_index,
            sink=SpoolSink(spool, self._queue, self._names, generation, partial(require_room, layout)),
            executor=self._executor,
            stop=self._stop,
            embedder=embedder,
            reading=self._read_by_one,
            telemetry=self._runtime.telemetry,
            check_limit_s=CHECK_LIMIT_S,
        )

    async def _workers(self) -> int:
        """How many workers share the limits of the embeddings server; 1 where the queue does not say."""
        with suppress(RedisError, OSError):
            leases = await live_leases(self._pool, self._names)
            return max(1, sum(note.role == "worker" for note in leases))
        return 1

    def _roots(self, state: SqliteStateStore, run: RunRecord) -> dict[str, Path]:
        """Every root on record: vectors are made for documents of all of them."""
        return {record.name: Path(record.path) for record in state.roots()}

    @asynccontextmanager
    async def _read_by_one(self, job_id: str) -> "AsyncIterator[None]":
        """One job's files at a time, and the queue knows whose."""
        async with self._reading:
            await self._stand_at(job_id)
            try:
                yield
            finally:
                await self._stand_at("")

    async def _stand_at(self, job_id: str) -> None:
        """As far as the queue answers: a file that ends this process meanwhile ends another one, and is found then."""
        with suppress(RedisError, OSError):
            await stand_at(self._pool, self._names, self._runtime.holder, job_id)


def vector_plan(settings: Settings, database: Path, vectors: RunVectors) -> VectorPlan | None:
    """What a worker embeds for. Raises ConfigurationError where the run makes vectors and this worker cannot."""
    if not vectors.target:
        return None
    if settings.embeddings is None:
        raise ConfigurationError("the run makes vectors, and this worker has no embeddings", hint=CONFIGURE_HINT)
    store = SqliteStore(database, base_id=None)
    try:
        status = store.reader().vector_status()
    finally:
        store.close()
    known = {one.id: one for one in (status.active, status.building) if one is not None}
    if vectors.target not in known:
        raise ConfigurationError("the run makes vectors of a kind that the index does not know", hint=CONFIGURE_HINT)
    wanted = settings.embeddings
    if vectors.requests_per_minute:
        wanted = replace(wanted, requests_per_minute=vectors.requests_per_minute)
    return VectorPlan(wanted, known[vectors.target], known.get(vectors.beside))
