"""What a worker's jobs work with: frozen values, put into arq's context under one name and read back by type."""

from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal

from arq.connections import ArqRedis
from msgspec import Struct

from domain.telemetry import SILENCE, Telemetry
from scheduler.queue.names import QueueNames
from workers.checking import CheckRules
from workers.embedding import PageEmbedder
from workers.sink import DocumentSink

CONTEXT_KEY = "knowledge"

Stop = Callable[[Exception], None]
"""Ends the run or the worker with an error of a job: arq would log it, and the run wait for the page for ever."""


Reading = Callable[[str], AbstractAsyncContextManager[None]]
"""Around the reading of a job's files, given the job's id: should a file end the process, somebody knows which."""


class WorkerContext(Struct, frozen=True):
    """A worker of one run. Roots come from here, never from a payload: a job cannot name a path of its own."""

    names: QueueNames
    run: int
    generation: int
    roots: dict[str, Path]  # by root name
    max_file_bytes: int
    substring_index: Literal["auto", "on", "off"]
    sink: DocumentSink
    executor: Executor  # one thread: pages are CPU work, two would fight for the interpreter lock
    stop: Stop
    embedder: PageEmbedder | None = None  # None: no vector tier
    check_limit_s: float = 0.0  # how long a page may be read before this process leaves; 0: it does not
    reading: Reading = lambda job_id: nullcontext()
    telemetry: Telemetry = SILENCE

    def rules(self, root: str) -> CheckRules:
        """Raises KeyError for a root that this worker does not know."""
        return CheckRules(self.roots[root], self.generation, self.max_file_bytes, self.substring_index)


ContextOf = Callable[[int, int], Awaitable[WorkerContext | None]]
"""The context of a run, given its id and generation; None where that run is not the one that goes on."""


class WorkerHost(Struct, frozen=True):
    """A worker that outlives a run: each job finds the context of its own one."""

    names: QueueNames
    context_of: ContextOf

    @classmethod
    def of_one_run(cls, context: WorkerContext) -> "WorkerHost":
        """A worker that is started for a run and ends with it."""

        async def context_of(run: int, generation: int) -> WorkerContext | None:
            return context if (run, generation) == (context.run, context.generation) else None

        return cls(context.names, context_of)


def worker_host(ctx: dict[Any, Any]) -> WorkerHost:
    """Our value out of arq's dictionary."""
    value = ctx[CONTEXT_KEY]
    if not isinstance(value, WorkerHost):
        raise TypeError("the worker was wired without its context")
    return value


def worker_pool(ctx: dict[Any, Any]) -> ArqRedis:
    pool = ctx["redis"]
    if not isinstance(pool, ArqRedis):
        raise TypeError("the worker was wired without its pool")
    return pool
