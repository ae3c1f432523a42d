"""`knowledge index`: one run from walk to report. Synchronous until there is something to queue."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from app.approving import approved_removals
from app.assignment import PipelinePlan, VectorPlan
from app.index_request import Announce, IndexRequest
from app.left_alone import count_refused, failures_below, follows_a_death, given_up_records, refused_for_now
from app.outcomes import IndexReport, Outcomes, VectorReport
from app.planning import RootRun, merged_tally, plan_roots
from app.progress import RunProgress, Stage
from app.queue_password import queue_url
from app.removing import RemovalReport, settle_removals
from app.roots import scopes_of_run
from app.run_control import RunControl, controlled, uncontrolled
from app.run_ending import ROOT_UNREADABLE, EndedRun, record_end, recorded_failure
from app.unreadable_roots import unreadable_of_run
from app.vectors_wanted import bytes_per_page_of, settled_vectors, vector_plan_of
from app.wiring import RunBase, WritableBase, writable_base
from domain.errors import EmbeddingsUnavailableError, UsageError
from domain.files import FileFailure, Outcome, Page
from domain.settings import Settings
from scheduler.plan import PlanPolicy, take_batch
from store import files as store_files
from store.run_port import RunRecord, RunState
from store.sqlite import SqliteSnapshot, SqliteStore
from store.state_port import PageOutcome, RemovalCandidate

if TYPE_CHECKING:
    from app.pipeline import Phase
    from workers.checking import FinishedPage

CANDIDATES_AT_A_TIME = 1000
VECTOR_NUMBERS = 500_000_000  # pages of the second phase get numbers above every one of the first
PROCESSES_FROM_PAGES = 12  # below, a worker process costs more to start than it saves


def run_index(
    settings: Settings,
    request: IndexRequest,
    progress: RunProgress,
    clock_ns: Callable[[], int] = time.time_ns,
    announce: Announce = lambda notice: None,
) -> IndexReport:
    """Index what the request names and report how every file met has ended. `announce` is told before the first text
    goes to an embeddings server.

    Raises LockedError, UsageError, FormatError, StorageError, QueueError, EmbeddingsUnavailableError,
    EmbeddingsChangedError, InterruptedRunError.
    """
    if request.re_embed and not request.reindex:
        raise UsageError("--re-embed goes with --reindex", hint="run `knowledge index --reindex --re-embed`")
    with writable_base(settings, "knowledge index") as base:
        roots = [RootRun(scope) for scope in scopes_of_run(settings, base.state.roots(), request.paths)]

        def told(host: str, model: str) -> None:
            from app.embedding_notice import embedding_notice

            announce(embedding_notice(base, settings, request, [root.scope for root in roots], host, model))

        vectors = vector_plan_of(base, settings, request, told)
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
        with recorded_failure(base.state, run, outcomes), controlled(base.layout, run.id) as control:
            ended = carry_out(Running(base, settings, request, run, roots, vectors, outcomes, control))
            record_end(base.state, ended)
    if ended.report.stopped_by is not None:
        raise ended.report.stopped_by
    return ended.report


def _new_run(request: IndexRequest, roots: Sequence[RootRun], started_ns: int) -> RunRecord:
    """A run as it is asked for; state.db gives it its id and generation."""
    return RunRecord(
        id=0,
        generation=0,
        kind="reindex" if request.reindex else "index",
        trigger=request.trigger,
        roots=tuple(root.scope.record.name for root in roots),
        state="walking",
        started_ns=started_ns,
        ended_ns=None,
        counts={},
        full=not request.approve and all(root.scope.is_full for root in roots),
    )


class Running(Struct, frozen=True):
    """A run under way."""

    base: RunBase
    settings: Settings
    request: IndexRequest
    run: RunRecord
    roots: Sequence[RootRun]
    vectors: VectorPlan | None
    outcomes: Outcomes
    control: RunControl = field(default_factory=uncontrolled)
    work_off: "WorkOff | None" = None  # None: everything that the queue's way needs is started, and stopped
    number_base: int = 0  # above every page number that the run has given before another process took it over

    @property
    def progress(self) -> RunProgress:
        return self.outcomes.progress

    def enter(self, stage: Stage, pages: "Phase") -> Iterator[Page | RemovalCandidate]:
        """Plan a phase as it begins."""
        self.outcomes.progress.stage = stage
        return pages()

    def pause(self, is_paused: bool) -> None:
        """The run stands still because somebody asked for it, or goes on."""
        progress = self.outcomes.progress
        progress.is_paused = is_paused
        self.base.state.set_run_state(self.run.id, progress.run_state, "paused" if is_paused else "")

    def await_permission(self) -> None:
        """Between two steps of the run's own thread: stand still while it is paused. Raises CancelledRunError."""
        self.control.await_permission(self.pause)

    def hold_up(self, cause: str) -> None:
        """The run waits for something outside of it, or goes on."""
        progress = self.outcomes.progress
        if cause != progress.hold_up:
            progress.hold_up = cause
            self.base.state.set_run_state(self.run.id, progress.run_state, cause)

    def observe(self, page: "FinishedPage", outcome: PageOutcome) -> None:
        self.outcomes.observe(page, outcome)

    def record_given_up(self, failures: Sequence[FileFailure]) -> None:
        """Files that no worker could read without dying."""
        _record_given_up(self.base, failures, self.outcomes)


def carry_out(it: Running) -> EndedRun:
    """Walk, index, embed and remove, into whichever knowledge.db the base's layout names."""
    base, settings, progress = it.base, it.settings, it.outcomes.progress
    reader = SqliteStore(base.layout.database, base_id=None)
    try:
        snapshot = reader.reader()
        for root in it.roots:
            root.documents_before = snapshot.document_count(root.scope.prefix)
            root.heeding, root.await_permission = it.control.heeding, it.await_permission
            root.report.heed = it.control.heed
            root.failures = failures_below(base.state)
        if it.request.approve:
            return _close(it, approved_removals(it, snapshot), None, (), None)
        policy = PlanPolicy(
            now_ns=it.run.started_ns,
            max_file_bytes=settings.max_file_bytes,
            trust_stat=settings.change_detection == "stat" and not it.request.rehash,
            force=it.request.reindex,
            generation=it.run.generation,
            retry_failed=it.request.rehash or it.request.reindex,
            is_taken_over=it.number_base > 0,
        )
        planned = plan_roots(
            settings,
            policy,
            it.roots,
            snapshot,
            progress,
            bytes_per_page=bytes_per_page_of(it.vectors),
            first_number=it.number_base + 1,
        )
        holds_s, stopped_by = _indexed(it, planned, snapshot)
        progress.stage = "removing"
        base.state.set_run_state(it.run.id, progress.run_state, "")
        it.await_permission()
        removals = settle_removals(
            base, snapshot, settings, it.run, it.roots, allow_mass=it.request.allow_mass_delete, vectors=it.vectors
        )
        vectors = settled_vectors(base, snapshot, it.vectors, it.run, it.outcomes)
    finally:
        reader.close()
    return _close(it, removals, vectors, holds_s, stopped_by)


def _indexed(
    it: Running, planned: Iterator[Page | RemovalCandidate], snapshot: SqliteSnapshot
) -> tuple[tuple[float, ...], EmbeddingsUnavailableError | None]:
    """How long each group held the lock, in seconds; and what kept vectors from following, where words do not wait for
    them: every file was read by then, so removals are settled and the run is closed before that is told (R31)."""
    try:
        return _index(it, planned, snapshot), None
    except EmbeddingsUnavailableError as error:
        if it.vectors is None or it.vectors.settings.commit != "words_first":
            raise
        return (), error


def _index(it: Running, planned: Iterator[Page | RemovalCandidate], snapshot: SqliteSnapshot) -> tuple[float, ...]:
    """Queue the planned pages, then those of documents that lack vectors; a run without a page starts nothing."""
    first_pages = _first_pages(it.base, it.run, planned)
    phases: list[Phase] = [lambda: chain(first_pages, planned)] if first_pages else []
    if it.vectors is not None:
        lacking = _vector_phase(it, it.vectors, snapshot)
        if first_pages or next(lacking(), None) is not None:
            phases.append(partial(it.enter, "embedding", lacking))
    if not phases:
        return ()
    it.outcomes.progress.stage = "indexing"
    return (it.work_off or _work_off)(it, phases, processes=_processes(it, first_pages))


def _processes(it: Running, first_pages: Sequence[Page]) -> int:
    """How many worker processes: as asked for, as configured, or by the size of the run; never more than there may be
    requests to an embeddings server at a time."""
    processes = it.request.worker_processes
    if processes is None:
        processes = it.settings.queue.workers or default_processes(len(first_pages))
        processes = processes or int(follows_a_death(it.base.state))
    return processes if it.vectors is None else min(processes, it.vectors.settings.concurrency)


def _vector_phase(it: Running, plan: VectorPlan, snapshot: SqliteSnapshot) -> "Phase":
    from app.vector_pages import chunks_per_page, vector_pages

    def pages() -> Iterator[Page]:
        if not (it.request.rehash or it.request.reindex):
            it.outcomes.put_back = refused_for_now(it.base.state, snapshot, it.run.started_ns)
        return vector_pages(
            snapshot,
            plan.target.id,
            [record.name for record in it.base.state.roots()],
            files_per_page=it.settings.queue.files_per_job,
            chunks_per_page=chunks_per_page(plan.target.identity.dimension),
            first_number=it.number_base + VECTOR_NUMBERS,
            without=it.outcomes.refused_keys.union(failure.key for failure in it.outcomes.put_back),
        )

    return pages


class WorkOff(Protocol):
    """Queues the pages of phases, one phase after the other, and returns when all are in the store: how long each
    group held the lock, in seconds, where that can be seen."""

    def __call__(self, it: "Running", phases: "Sequence[Phase]", *, processes: int) -> tuple[float, ...]: ...


def _work_off(it: Running, phases: "Sequence[Phase]", *, processes: int) -> tuple[float, ...]:
    """Start what the queue's way needs, and stop it; how long each group held the lock, in seconds."""
    base, settings = it.base, it.settings
    assert isinstance(base, WritableBase)
    url = it.request.queue_url or queue_url(settings.queue)
    from scheduler.queue.embedded import EmbeddedValkey  # what follows is imported only now that there is work

    server = None if url else EmbeddedValkey()
    try:
        if server is not None:
            server.launch()  # it comes up while asyncio, arq and redis are imported: a quarter of a second each
        from app.event_loop import run_interruptibly
        from app.pipeline_start import run_with_workers

        plan = PipelinePlan(
            layout=base.layout,
            base_id=base.state.base_id(),
            run=it.run,
            roots={record.name: record.path for record in base.state.roots()},
            max_file_bytes=settings.max_file_bytes,
            substring_index=settings.substring_index,
            queue_url=url,
            worker_processes=processes,
            vectors=it.vectors,
        )
        result = run_interruptibly(run_with_workers(plan, base.writer, phases, it, server))
    finally:
        if server is not None:
            server.stop()
    _record_given_up(base, result.gave_up, it.outcomes)
    return result.holds_s


def _first_pages(base: RunBase, run: RunRecord, planned: Iterator[Page | RemovalCandidate]) -> list[Page]:
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


def _record_given_up(base: RunBase, failures: Sequence[FileFailure], outcomes: Outcomes) -> None:
    base.state.record_failures(given_up_records(failures, base.state.roots(), time.time_ns()))
    for failure in failures:
        outcomes.fail(failure.reason.value, failure.key, failure.detail)
    outcomes.add(Outcome.FAILED, len(failures))


def _close(
    it: Running,
    removals: RemovalReport,
    vectors: VectorReport | None,
    holds_s: tuple[float, ...],
    stopped_by: EmbeddingsUnavailableError | None,
) -> EndedRun:
    """What the run has come to; knowledge.db says what it holds before state.db says that the run is over."""
    base, run, roots, outcomes = it.base, it.run, it.roots, it.outcomes
    tally = merged_tally(roots)
    count_refused(tally, outcomes.put_back, roots)
    outcomes.add(Outcome.UNCHANGED, tally.unchanged)
    outcomes.add(Outcome.SKIPPED, tally.skipped)
    outcomes.add(Outcome.FAILED, tally.failed)
    for reason, count in tally.skips.items():
        outcomes.skip(reason.value, tally.first_skips[reason], count)
    for failure in removals.failures:
        outcomes.fail(failure.reason, failure.key, failure.detail)
    counts = removals.settled(outcomes.counts)
    problems = tuple(problem for root in roots for problem in root.report.problems)
    is_partial = outcomes.failures or tally.failed or problems or removals.held or stopped_by is not None
    state: RunState = "partial" if is_partial else "done"
    base.writer.close_generation(run.generation, complete=run.full and not problems)
    unreadable = unreadable_of_run(roots, [*outcomes.failures, *(reason for reason, _ in tally.not_tried)])
    cause = removals.cause or ("directory_unreadable" if problems else stopped_by.code if stopped_by else "")
    if unreadable and cause in ("", "directory_unreadable", "source_unreadable"):
        cause = ROOT_UNREADABLE  # says more: who cannot read what
    totals = base.writer.counts()
    outcomes.progress.stage = "done"
    report = IndexReport(
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
        vectors=vectors,
        vector_status=base.writer.vector_status(),
        stopped_by=stopped_by,
        not_tried=tally.not_tried,
        unreadable=unreadable,
    )
    return EndedRun(report, cause, tuple(roots))
