"""One run of a service, from its request to its end: the part that blocks, in a thread of the scheduler."""

import time
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from app.assignment import VectorPlan
from app.index_request import IndexRequest
from app.indexing import Running, WorkOff, carry_out
from app.outcomes import Outcomes
from app.planning import RootRun
from app.progress import RunProgress
from app.roles.queued_writer import QueuedWriter
from app.roles.run_contexts import RunVectors
from app.roots import RootScope, scopes_of_run
from app.run_control import RunControl
from app.run_ending import EndedRun, record_end, recorded_failure
from app.run_request import RunRequest
from app.submitting import index_request_of
from app.vectors_wanted import vector_plan_of
from domain.errors import DiskFullError, EmbeddingsUnavailableError
from domain.files import Outcome
from domain.layout import BaseLayout
from domain.settings import Settings
from store import files
from store.run_port import RunRecord
from store.sqlite import SqliteStore
from store.state import SqliteStateStore

ASK_AGAIN_S = 1.0
NUMBERS_OF_ONE_PROCESS = 10_000_000_000  # pages of a run that another scheduler takes over get numbers above these
STORED_OUTCOMES = (Outcome.ADDED.value, Outcome.UPDATED.value, Outcome.UNCHANGED.value)


class ServiceBase(Struct, frozen=True):
    """A base whose writer is another process (app.wiring.RunBase)."""

    layout: BaseLayout
    state: SqliteStateStore
    writer: QueuedWriter


class ServiceRun(Struct, frozen=True):
    """A run that has begun, and what it is carried out with."""

    settings: Settings
    run: RunRecord
    request: RunRequest
    progress: RunProgress
    control: RunControl
    heed: Callable[[], None]  # called while the writer is waited for; raises to give up
    work_off: WorkOff
    told: Callable[[str, str], None] = lambda host, model: None  # before the first text goes to an embeddings server


def carry_out_service_run(it: ServiceRun) -> EndedRun:
    """Index what the request names; how the run has ended is recorded, also where it fails or is cancelled.

    Raises what has ended it. What `heed` raises beside CancelledRunError leaves the run open, for whoever takes over.
    """
    layout = BaseLayout(it.settings.home)
    state = SqliteStateStore(layout.state)
    try:
        store = SqliteStore(layout.database, base_id=state.base_id())
        try:
            base = ServiceBase(layout, state, QueuedWriter(files.make_calls(layout), store, it.heed))
            return _carried_out(it, base)
        finally:
            store.close()
    finally:
        state.close()


def _carried_out(it: ServiceRun, base: ServiceBase) -> EndedRun:
    carried, highest = base.state.take_over_pages(it.run.id)
    outcomes = Outcomes(it.progress)
    outcomes.counts.update(carried)
    with recorded_failure(base.state, it.run, outcomes, waits_for=(DiskFullError,)):
        request = index_request_of(it.request, base.state.roots())
        roots = [RootRun(scope) for scope in scopes_of_run(it.settings, base.state.roots(), request.paths)]
        vectors = _vector_plan(it, base, request)
        for root in roots:
            base.state.add_root(root.scope.record)
        run = _described(it, base, [root.scope for root in roots])
        if base.writer.identity().substring_index != it.settings.substring_index:
            base.writer.apply_substring_index(it.settings.substring_index)
        plan = RunVectors(
            target=vectors.target.id if vectors is not None else 0,
            beside=vectors.beside.id if vectors is not None and vectors.beside is not None else 0,
            requests_per_minute=it.request.requests_per_minute,
        )
        base.state.record_plan(run.id, plan.to_json())
        number_base = (highest // NUMBERS_OF_ONE_PROCESS + 1) * NUMBERS_OF_ONE_PROCESS if highest else 0
        ended = carry_out(
            Running(base, it.settings, request, run, roots, vectors, outcomes, it.control, it.work_off, number_base)
        )
        ended = _without_what_was_carried(ended, carried)
        record_end(base.state, ended)
        return ended


def _vector_plan(it: ServiceRun, base: ServiceBase, request: IndexRequest) -> VectorPlan | None:
    """What the run embeds for. Nobody attends a run of a service: a server that is away is waited for, and the run says
    so, as if it had gone away later (R18)."""
    from embedding.failures import is_away

    limit_s = it.settings.embeddings.outage_limit_s if it.settings.embeddings is not None else 0.0
    latest_s = time.monotonic() + limit_s
    while True:
        try:
            return vector_plan_of(base, it.settings, request, it.told, it.heed)
        except EmbeddingsUnavailableError as error:
            if not is_away(error) or time.monotonic() >= latest_s:
                raise
            base.state.set_run_state(it.run.id, "waiting", error.message)
            it.heed()
            time.sleep(ASK_AGAIN_S)


def _described(it: ServiceRun, base: ServiceBase, scopes: list[RootScope]) -> RunRecord:
    names = tuple(scope.record.name for scope in scopes)
    full = not it.request.approve and all(scope.is_full for scope in scopes)
    base.state.describe_run(it.run.id, names, full=full)
    return replace(it.run, roots=names, full=full)


def _without_what_was_carried(ended: EndedRun, carried: dict[str, int]) -> EndedRun:
    """What the process before had stored was met once more as unchanged: it is counted once."""
    stored = sum(carried.get(name, 0) for name in STORED_OUTCOMES)
    unchanged = ended.report.counts.get(Outcome.UNCHANGED.value, 0)
    if not stored or not unchanged:
        return ended
    left = max(0, unchanged - stored)
    counts = {name: count for name, count in ended.report.counts.items() if name != Outcome.UNCHANGED.value}
    if left:
        counts[Outcome.UNCHANGED.value] = left
    return replace(ended, report=replace(ended.report, counts=counts))
