"""`knowledge index`: one run from walk to report. Synchronous until there is something to queue."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from app.outcomes import IndexReport, Outcomes
from app.planning import RootRun, merged_tally, plan_roots
from app.progress import RunProgress
from app.removing import RemovalReport, settle_removals
from app.roots import scopes_of_run
from app.wiring import WritableBase, writable_base
from domain.errors import InterruptedRunError, KnowledgeError
from domain.files import FileFailure, Outcome, Page
from domain.settings import Settings
from scheduler.plan import PlanPolicy, take_batch
from store import files as store_files
from store.sqlite import SqliteStore
from store.state_port import FailureRecord, RemovalCandidate, RunRecord, RunState

CANDIDATES_AT_A_TIME = 1000
PROCESSES_FROM_PAGES = 12  # below, a worker process costs more to start than it saves


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """What the command line asks for."""

    paths: tuple[Path, ...] = ()
    reindex: bool = False
    rehash: bool = False
    allow_mass_delete: bool = False
    queue_url: str = ""
    worker_processes: int | None = None  # None: chosen by the size of the run


def run_index(
    settings: Settings,
    request: IndexRequest,
    progress: RunProgress,
    clock_ns: Callable[[], int] = time.time_ns,
) -> IndexReport:
    """Index what the request names and report how every file met has ended.

    Raises LockedError, UsageError, FormatError, StorageError, QueueError, InterruptedRunError.
    """
    with writable_base(settings, "knowledge index") as base:
        roots = [RootRun(scope) for scope in scopes_of_run(settings, base.state.roots(), request.paths)]
        for root in roots:
            base.state.add_root(root.scope.record)
        store_files.clear_spool(base.layout)
        if base.writer.identity().substring_index != settings.substring_index:
            from store.rebuilding import apply_substring_index

            apply_substring_index(base.writer.connection, base.layout.database, settings.substring_index)
        run = base.state.begin_run(
            _new_run(request, roots, clock_ns()), floor_generation=base.writer.highest_generation()
        )
        outcomes = Outcomes(progress)
        try:
            return _run(base, settings, request, run, roots, outcomes)
        except KeyboardInterrupt:
            base.state.end_run(run.id, "interrupted", outcomes.counts, "interrupted")
            raise InterruptedRunError(
                "interrupted; what was committed stays", hint="run the same command to do the rest"
            ) from None
        except Exception as error:
            code = error.code if isinstance(error, KnowledgeError) else KnowledgeError.code
            base.state.end_run(run.id, "failed", outcomes.counts, code)
            raise


def _new_run(request: IndexRequest, roots: Sequence[RootRun], started_ns: int) -> RunRecord:
    """A run as it is asked for; state.db gives it its id and generation."""
    return RunRecord(
        id=0,
        generation=0,
        kind="reindex" if request.reindex else "index",
        trigger="cli",
        roots=tuple(root.scope.record.name for root in roots),
        state="walking",
        started_ns=started_ns,
        ended_ns=None,
        counts={},
        full=all(root.scope.is_full for root in roots),
    )


def _run(
    base: WritableBase,
    settings: Settings,
    request: IndexRequest,
    run: RunRecord,
    roots: Sequence[RootRun],
    outcomes: Outcomes,
) -> IndexReport:
    progress = outcomes.progress
    reader = SqliteStore(base.layout.database, base_id=None)
    try:
        snapshot = reader.reader()
        for root in roots:
            root.documents_before = snapshot.document_count(root.scope.prefix)
        policy = PlanPolicy(
            now_ns=run.started_ns,
            max_file_bytes=settings.max_file_bytes,
            trust_stat=settings.change_detection == "stat" and not request.rehash,
            force=request.reindex,
        )
        planned = plan_roots(settings, policy, roots, snapshot, progress)
        holds_s = _index(base, settings, request, run, roots, planned, outcomes)
        progress.stage = "removing"
        removals = settle_removals(base, snapshot, settings, run, roots, allow_mass=request.allow_mass_delete)
    finally:
        reader.close()
    return _close(base, run, roots, outcomes, removals, holds_s)


def _index(
    base: WritableBase,
    settings: Settings,
    request: IndexRequest,
    run: RunRecord,
    roots: Sequence[RootRun],
    planned: Iterator[Page | RemovalCandidate],
    outcomes: Outcomes,
) -> tuple[float, ...]:
    """Queue the planned pages, if there are any; a run without one starts nothing."""
    first_pages = _first_pages(base, run, planned)
    if not first_pages:
        return ()
    outcomes.progress.stage = "indexing"
    processes = request.worker_processes
    if processes is None:
        processes = settings.queue.workers or default_processes(len(first_pages))
    url = request.queue_url or settings.queue.url
    from scheduler.queue.embedded import EmbeddedValkey  # what follows is imported only now that there is work

    server = None if url else EmbeddedValkey()
    try:
        if server is not None:
            server.launch()  # it comes up while asyncio, arq and redis are imported: a quarter of a second each
        import asyncio

        from app.assignment import PipelinePlan
        from app.worker_pool import run_with_workers

        plan = PipelinePlan(
            layout=base.layout,
            base_id=base.state.base_id(),
            run=run,
            roots={root.scope.record.name: root.scope.record.path for root in roots},
            max_file_bytes=settings.max_file_bytes,
            substring_index=settings.substring_index,
            queue_url=url,
            worker_processes=processes,
        )
        pages = chain(first_pages, planned)
        result = asyncio.run(run_with_workers(plan, base.writer, pages, outcomes.observe, server))
    finally:
        if server is not None:
            server.stop()
    _record_given_up(base, result.gave_up, outcomes)
    return result.holds_s


def _first_pages(base: WritableBase, run: RunRecord, planned: Iterator[Page | RemovalCandidate]) -> list[Page]:
    """The first pages of a plan, enough to tell a small run from a large one; candidates before them are recorded."""
    pages: list[Page] = []
    while len(pages) < PROCESSES_FROM_PAGES:
        more, candidates = take_batch(planned, pages=PROCESSES_FROM_PAGES - len(pages), candidates=CANDIDATES_AT_A_TIME)
        if not more and not candidates:
            break
        pages += more
        if candidates:
            base.state.add_candidates(run.id, candidates)
    return pages


def default_processes(pages_seen: int) -> int:
    """Worker processes for a run of at least this many pages: none for a small one, else one less than there are
    processors (the writer has one of its own), and at least one."""
    if pages_seen < PROCESSES_FROM_PAGES:
        return 0
    return max(1, min(8, (os.cpu_count() or 2) - 1))


def _record_given_up(base: WritableBase, failures: Sequence[FileFailure], outcomes: Outcomes) -> None:
    now_ns = time.time_ns()
    base.state.record_failures([FailureRecord(f.key, f.reason.value, f.detail, 1, now_ns, now_ns) for f in failures])
    for failure in failures:
        outcomes.fail(failure.reason.value, failure.key, failure.detail)
    outcomes.add(Outcome.FAILED, len(failures))


def _close(
    base: WritableBase,
    run: RunRecord,
    roots: Sequence[RootRun],
    outcomes: Outcomes,
    removals: RemovalReport,
    holds_s: tuple[float, ...],
) -> IndexReport:
    """Record how the run has ended: knowledge.db says what it holds before state.db says that the run is over."""
    tally = merged_tally(roots)
    outcomes.add(Outcome.UNCHANGED, tally.unchanged)
    outcomes.add(Outcome.SKIPPED, tally.skipped)
    for reason, count in tally.skips.items():
        outcomes.skip(reason.value, tally.first_skips[reason], count)
    for failure in removals.failures:
        outcomes.fail(failure.reason, failure.key, failure.detail)
    counts = removals.settled(outcomes.counts)
    problems = tuple(problem for root in roots for problem in root.report.problems)
    ended_well = not outcomes.failures and not problems and not removals.held
    state: RunState = "done" if ended_well else "partial"
    if run.full:
        names = [root.scope.record.name for root in roots if root.report.ended_well]
        base.state.mark_full(names, run.generation)
        base.state.forget_old_failures([root.scope.prefix for root in roots], run.started_ns)
    base.writer.close_generation(run.generation, complete=run.full and not problems)
    base.state.end_run(run.id, state, counts, removals.cause or ("directory_unreadable" if problems else ""))
    totals = base.writer.counts()
    outcomes.progress.stage = "done"
    return IndexReport(
        home=base.layout.home,
        run=run,
        state=state,
        counts=counts,
        skips=outcomes.skips,
        failures=tuple(outcomes.failures.values()),
        removals=removals,
        problems=problems,
        notes=tuple(note for root in roots for note in root.report.notes),
        documents=totals.documents,
        chunks=totals.chunks,
        chunks_written=outcomes.progress.chunks,
        text_bytes=outcomes.progress.text_bytes,
        elapsed_s=outcomes.progress.elapsed_s,
        holds_s=holds_s,
    )
