"""What a worker's jobs work with: one frozen value, put into arq's context under one name and read back by type."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from arq.connections import ArqRedis

from scheduler.queue.names import QueueNames
from workers.checking import CheckRules
from workers.embedding import PageEmbedder
from workers.sink import DocumentSink

CONTEXT_KEY = "knowledge"

Stop = Callable[[Exception], None]
"""Ends the run or the worker with an error of a job: arq would log it, and the run wait for the page for ever."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
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

    def rules(self, root: str) -> CheckRules:
        """Raises KeyError for a root that this worker does not know."""
        return CheckRules(self.roots[root], self.generation, self.max_file_bytes, self.substring_index)


def worker_context(ctx: dict[Any, Any]) -> WorkerContext:
    """Our value out of arq's dictionary."""
    value = ctx[CONTEXT_KEY]
    if not isinstance(value, WorkerContext):
        raise TypeError("the worker was wired without its context")
    return value


def worker_pool(ctx: dict[Any, Any]) -> ArqRedis:
    pool = ctx["redis"]
    if not isinstance(pool, ArqRedis):
        raise TypeError("the worker was wired without its pool")
    return pool
