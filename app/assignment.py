"""What a run's queue is built from, and what its worker processes are told. Known before arq and redis are imported."""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from domain.layout import BaseLayout
from domain.settings import EmbeddingsSettings
from domain.vectors import PinnedIdentity
from scheduler.queue.address import QueueAddress
from store.run_port import RunRecord

READY_LINE = b"ready\n"  # what a worker process says when it has its assignment and the queue


class VectorPlan(Struct, frozen=True):
    """Which vectors a run makes, and with what. The key is no part of it: each process reads it by its name."""

    settings: EmbeddingsSettings
    target: PinnedIdentity
    beside: PinnedIdentity | None = None  # what answers while `target` is built
    verified: bool = False  # the server has answered as `target` says, in this run


class PipelinePlan(Struct, frozen=True):
    """What the pipeline is built from."""

    layout: BaseLayout
    base_id: str
    run: RunRecord
    roots: dict[str, str]
    max_file_bytes: int
    substring_index: Literal["auto", "on", "off"]
    queue_url: str
    worker_processes: int  # 0: the pages are checked in this process
    vectors: VectorPlan | None = None


class Assignment(msgspec.Struct, frozen=True):
    """All that a worker process is told."""

    base_id: str
    run: int
    generation: int
    roots: dict[str, str]
    max_file_bytes: int
    substring_index: Literal["auto", "on", "off"]
    spool: str
    address: QueueAddress
    database: str
    vectors: VectorPlan | None
    share: float  # of the embedding server's limits


class LastWords(msgspec.Struct, frozen=True):
    """The last line that a worker process writes before it ends itself for a reason."""

    code: str  # of the error; "" for what is none of ours
    message: str
    hint: str


def assignment_of(plan: PipelinePlan, spool: Path, address: QueueAddress) -> Assignment:
    return Assignment(
        base_id=plan.base_id,
        run=plan.run.id,
        generation=plan.run.generation,
        roots=plan.roots,
        max_file_bytes=plan.max_file_bytes,
        substring_index=plan.substring_index,
        spool=str(spool),
        address=address,
        database=str(plan.layout.database),
        vectors=plan.vectors,
        share=1 / max(1, plan.worker_processes),
    )
