"""Asking a service for a run, and following it: what a command line does where the index is not its own (R11).

state.db is the way in: a run that is queued there is begun by the scheduler of the service, now or when it is back.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from app.beside_service import is_service_up
from app.index_request import IndexRequest
from app.run_request import RunRequest
from domain.errors import NotFoundError, UsageError
from domain.layout import BaseLayout
from domain.settings import Settings
from store.run_port import RunRecord, RunTrigger
from store.state import SqliteStateStore
from store.state_port import RootRecord

__all__ = ["follow", "index_request_of", "is_service_up", "queued_run", "submit"]
LOOK_EVERY_S = 0.25


def submit(settings: Settings, request: RunRequest, trigger: RunTrigger = "cli", schedule: str = "") -> RunRecord:
    """Queue a run for the service; it gets an id at once."""
    with closing(SqliteStateStore(BaseLayout(settings.home).state)) as state:
        return state.queue_run(queued_run(request, trigger, schedule), request.to_json())


def queued_run(request: RunRequest, trigger: RunTrigger, schedule: str = "") -> RunRecord:
    """A run as it is asked for; state.db gives it its id, and the scheduler its generation and roots."""
    return RunRecord(
        id=0,
        generation=0,
        kind="reindex" if request.reindex else request.kind,
        trigger=trigger,
        roots=request.roots,
        state="queued",
        started_ns=time.time_ns(),
        ended_ns=None,
        counts={},
        full=request.kind in ("index", "reindex") and not (request.paths or request.approve),
        schedule=schedule,
    )


def index_request_of(request: RunRequest, recorded: Sequence[RootRecord]) -> IndexRequest:
    """The request as a run takes it, with paths for the names of roots. Raises UsageError for a root that there is
    not."""
    by_name = {record.name: record.path for record in recorded}
    unknown = [name for name in request.roots if name not in by_name]
    if unknown:
        raise UsageError(f"there is no root {unknown[0]!r}", hint="`knowledge sources` lists the roots")
    return IndexRequest(
        paths=tuple(Path(path) for path in (*request.paths, *(by_name[name] for name in request.roots))),
        reindex=request.reindex or request.kind == "reindex",
        re_embed=request.re_embed,
        rehash=request.rehash,
        allow_mass_delete=request.allow_mass_delete,
        worker_processes=request.workers or None,
        approve=request.approve,
        digest=request.digest,
    )


def follow(settings: Settings, run_id: int, tell: Callable[[RunRecord], None]) -> RunRecord:
    """Look at a run until it has ended; `tell` hears of every look. Raises NotFoundError where there is no such run.

    Whoever follows is no part of the run: it goes on without him.
    """
    with closing(SqliteStateStore(BaseLayout(settings.home).state, read_only=True)) as state:
        while True:
            run = state.run(run_id)
            if run is None:
                raise NotFoundError(f"there is no run {run_id}", hint="`knowledge runs` lists them")
            tell(run)
            if run.ended_ns is not None:
                return run
            time.sleep(LOOK_EVERY_S)
