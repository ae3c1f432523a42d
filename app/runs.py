"""`knowledge runs`: runs as they are now, and what is asked of one: to pause, to go on, to end, to be done again.

state.db says what a run has told of itself last; whether anybody still works on it, the locks say.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from app.approving import HELD, HeldList, held_list, why_not_approvable
from app.beside_service import is_service_up
from app.last_room import with_last_room
from app.receipts import not_built
from app.roles.calls import Failed, error_of
from app.run_request import RunRequest
from app.run_standstill import Standstill, standstill_of
from domain.errors import (
    CancelledRunError,
    InterruptedRunError,
    KnowledgeError,
    LockedError,
    NotFoundError,
    RefusedError,
)
from domain.layout import BaseLayout
from domain.settings import Settings
from store.files import lstat_or_none
from store.lock import WriteLock, holder_of, is_held
from store.run_port import Change, RunKind, RunRecord, Wish
from store.state import SqliteStateStore
from store.state_port import StateStore
from store.state_runs import KEPT_CHANGES_OF_RUNS, KEPT_RUNS, PROCESS_GONE

PARTIAL_STATUS = 3
CHANGES_AT_A_TIME = 20  # pages of up to some hundred keys
LOOK_AGAIN_S = 0.1
CHANGES: tuple[Change, ...] = get_args(Change)
_LIST_HINT = "`knowledge runs` lists them"


class ShownRun(Struct, frozen=True):
    """A run as it is now: `run.state` and `run.cause` are what the locks say too."""

    run: RunRecord
    awaits_scheduler: bool = False  # nobody goes on with it before a scheduler is back
    held: HeldList | None = None  # only where one run is looked at
    standstill: Standstill | None = None  # of a run that does not get on: who keeps it


@contextmanager
def recorded_runs(settings: Settings, *, writes: bool = False) -> Iterator[SqliteStateStore]:
    """state.db by itself: it can be asked whatever happens to the index. Raises NotBuiltError where there is none."""
    layout = BaseLayout(settings.home)
    if lstat_or_none(layout.state) is None:
        raise not_built(layout)
    with closing(SqliteStateStore(layout.state, read_only=not writes)) as state:
        yield state


def shown_runs(settings: Settings, limit: int, *, before: int = 0) -> list[ShownRun]:
    """The newest first, or those that were asked for before a run."""
    layout = BaseLayout(settings.home)
    with recorded_runs(settings) as state:
        runs = [run for run in state.runs(KEPT_RUNS) if run.id < before][:limit] if before else state.runs(limit)
        has_scheduler = is_service_up(layout)
        return [_shown(settings, state, run, has_scheduler=has_scheduler) for run in runs]


def shown_run(settings: Settings, run_id: int) -> ShownRun:
    """One run, with the list of what it holds. Raises NotFoundError."""
    layout = BaseLayout(settings.home)
    with recorded_runs(settings) as state:
        shown = _shown(settings, state, known_run(state, run_id), has_scheduler=is_service_up(layout))
        if shown.run.cause != HELD:
            return shown
        return replace(shown, held=held_list(state, run_id))


def known_run(state: StateStore, run_id: int) -> RunRecord:
    run = state.run(run_id)
    if run is None:
        raise NotFoundError(f"there is no run {run_id}", hint=_LIST_HINT)
    return run


def as_it_is(layout: BaseLayout, state: StateStore, run: RunRecord) -> RunRecord:
    """The same run, as interrupted where its process is gone, as waiting for approval where it can be approved."""
    if run.is_open and is_left_behind(layout, state, run):
        return replace(run, state="interrupted", cause=PROCESS_GONE)
    if run.state == "partial" and run.cause == HELD and not why_not_approvable(state, run):
        return replace(run, state="needs_approval")
    return run


def is_left_behind(layout: BaseLayout, state: StateStore, run: RunRecord) -> bool:
    """Whether a run of a command line has lost its process: its lock is free, or somebody else has it."""
    if state.request_of(run.id):  # of a service: whoever takes over goes on with it
        return False
    return not (is_held(layout.lock) and holder_of(layout.lock).endswith(f"process {run.pid}"))


def _shown(settings: Settings, state: SqliteStateStore, run: RunRecord, *, has_scheduler: bool) -> ShownRun:
    layout = BaseLayout(settings.home)
    run = as_it_is(layout, state, run)
    if run.ended_ns is not None or run.state == "interrupted" or not state.request_of(run.id):
        return ShownRun(run)
    if not has_scheduler:
        return ShownRun(run, awaits_scheduler=True)
    return ShownRun(run, standstill=standstill_of(settings, layout, state.base_id(), run, time.time_ns()))


def ask_run(settings: Settings, run_id: int, wish: Wish, *, within_s: float) -> RunRecord:
    """Ask a run to pause, to go on ("") or to end, and see what becomes of it for a while.

    A run that nobody works on any more is closed at once. On a full disk it is done with the room that is held for
    that. Raises NotFoundError, and RefusedError for a run that has ended or cannot be asked this.
    """
    return with_last_room(BaseLayout(settings.home), lambda: _asked(settings, run_id, wish, within_s))


def _asked(settings: Settings, run_id: int, wish: Wish, within_s: float) -> RunRecord:
    layout = BaseLayout(settings.home)
    with recorded_runs(settings, writes=True) as state:
        run = known_run(state, run_id)
        _require_askable(run, wish)
        if run.is_open and is_left_behind(layout, state, run):
            close_left_behind(layout, state, run)
        elif wish == "cancel" and _ended_for_absent_scheduler(layout, state, run):
            pass
        elif not state.ask(run_id, wish):
            raise _has_ended(known_run(state, run_id))
        return _after(state, run_id, _is_settled(wish), within_s)


def close_left_behind(layout: BaseLayout, state: SqliteStateStore, run: RunRecord) -> None:
    """Record the end of a run whose process is gone. Not where the lock is another's by now: a scheduler does it, and
    a command line at its own beginning."""
    try:
        with WriteLock(layout.lock, purpose="knowledge runs"):
            state.end_run(run.id, "interrupted", run.counts, PROCESS_GONE)
    except LockedError:
        state.ask(run.id, "cancel")


def _ended_for_absent_scheduler(layout: BaseLayout, state: SqliteStateStore, run: RunRecord) -> bool:
    """End a run of a service that has no scheduler now, in its place; False where there is one."""
    if run.state == "queued" or not state.request_of(run.id):
        return False
    try:
        with WriteLock(layout.scheduler_lock, purpose="knowledge runs cancel"):
            state.end_run(run.id, "cancelled", run.counts, CancelledRunError.code)
    except LockedError:
        return False
    return True


def _require_askable(run: RunRecord, wish: Wish) -> None:
    if run.ended_ns is not None:
        raise _has_ended(run)
    if wish == "pause" and run.kind in ("verify", "compact") and run.state != "queued":
        raise RefusedError(
            f"run {run.id} is a {run.kind}, which cannot stand still in its midst",
            hint=f"let it end, or end it: `knowledge runs cancel {run.id}`",
        )


def _has_ended(run: RunRecord) -> RefusedError:
    hint = f"`knowledge runs retry {run.id}` has it done again"
    return RefusedError(f"run {run.id} has ended ({run.state})", hint=hint)


def _is_settled(wish: Wish) -> Callable[[RunRecord], bool]:
    """Whether a run does what it was asked."""

    def is_settled(run: RunRecord) -> bool:
        if run.ended_ns is not None or run.state == "queued":
            return True
        return {"cancel": False, "pause": run.state == "paused", "": run.state != "paused"}[wish]

    return is_settled


def _after(state: StateStore, run_id: int, is_settled: Callable[[RunRecord], bool], within_s: float) -> RunRecord:
    latest_s = time.monotonic() + within_s
    while not is_settled(run := known_run(state, run_id)) and time.monotonic() < latest_s:
        time.sleep(LOOK_AGAIN_S)
    return run


def again(state: StateStore, run_id: int) -> RunRequest:
    """What asks for a run like one that has ended. Raises NotFoundError, RefusedError."""
    run = known_run(state, run_id)
    if run.kind not in get_args(RunKind):
        raise RefusedError(f"run {run_id} was a `knowledge {run.kind}`", hint="give the command again")
    recorded = state.request_of(run_id)
    if recorded:
        return RunRequest.from_json(recorded)
    kind: RunKind = next(kind for kind in get_args(RunKind) if kind == run.kind)
    # of a run on a command line only its roots are on record, not the paths in them
    roots = () if run.full and kind == "index" else run.roots
    return RunRequest(kind=kind, roots=roots, reindex=kind == "reindex")


def require_ended(layout: BaseLayout, state: StateStore, run_id: int) -> None:
    """Raises RefusedError for a run that goes on."""
    run = as_it_is(layout, state, known_run(state, run_id))
    if run.ended_ns is None and run.state != "interrupted":
        raise RefusedError(f"run {run_id} has not ended ({run.state})", hint=f"`knowledge runs show {run_id} --follow`")


def changes_of(state: StateStore, run_id: int, change: Change) -> Iterator[str]:
    """The keys of documents that ended one way, in the order in which that was recorded."""
    after = -1
    while pages := state.changes(run_id, change, after_page=after, limit=CHANGES_AT_A_TIME):
        after = pages[-1][0]
        for _, keys in pages:
            yield from keys


def changes_page(
    state: StateStore, run_id: int, change: Change, after: tuple[int, int], limit: int
) -> tuple[list[str], tuple[int, int] | None]:
    """The next `limit` keys behind a place, and the place where they end; None: nothing follows. A place is a page and
    how many of its keys were given, 0 for all of them; (-1, 0) is the beginning."""
    keys: list[str] = []
    page, given = after
    while pages := state.changes(run_id, change, after_page=page - 1 if given else page, limit=1):
        if len(keys) == limit:
            return keys, (page, given)
        page, found = pages[0]
        taken = found[given : given + limit - len(keys)]
        keys += taken
        given = given + len(taken) if given + len(taken) < len(found) else 0
    return keys, None


def are_changes_kept(state: StateStore, run_id: int) -> bool:
    """Whether what a run has changed is still on record: it is kept for the newest runs."""
    newest: Sequence[RunRecord] = state.runs(KEPT_CHANGES_OF_RUNS)
    return any(run.id == run_id for run in newest)


def exit_status_of(run: RunRecord) -> int:
    """Of whoever has followed a run to its end (R37)."""
    error = error_of_run(run)
    if error is not None:
        return error.exit_status
    return PARTIAL_STATUS if run.state in ("partial", "needs_approval") else 0


def error_of_run(run: RunRecord) -> KnowledgeError | None:
    """What has ended a run, as the error that it would have been on a command line; None where nothing has."""
    match run.state:
        case "cancelled":
            return CancelledRunError(f"run {run.id} was cancelled; what was committed stays", hint=_again_hint(run))
        case "interrupted":
            return InterruptedRunError(f"run {run.id} was interrupted; what was committed stays", hint=_again_hint(run))
        case "failed":
            code, _, detail = run.cause.partition(": ")
            if run.message:
                return error_of(Failed(code, f"run {run.id} failed: {run.message}", run.hint or _again_hint(run)))
            words = f"{code.replace('_', ' ')}{f' ({detail})' if detail else ''}"
            hint = f"`knowledge doctor` looks for the reason, the log of the service has it; {_again_hint(run)}"
            return error_of(Failed(code, f"run {run.id} failed: {words}", hint))
        case "partial" if run.cause in _STOPPED_BY:
            words = run.message or run.cause.replace("_", " ")
            return error_of(Failed(run.cause, f"run {run.id} ended early: {words}", run.hint))
    return None


_STOPPED_BY = ("embeddings_unavailable",)  # words are in the index, vectors did not follow (R31)


def _again_hint(run: RunRecord) -> str:
    return f"`knowledge runs retry {run.id}` does the rest"
