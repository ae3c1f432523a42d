"""Held removals (R34): the list that a run has left behind, its digest, and the run that lets exactly this list go."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from app.removing import RemovalReport, settle_approved
from domain.errors import NotFoundError, RefusedError
from domain.files import Reason
from store.run_port import RunRecord
from store.state_port import RemovalCandidate, StateStore
from store.state_runs import KEPT_CHANGES_OF_RUNS

if TYPE_CHECKING:
    from app.indexing import Running
    from store.sqlite import SqliteSnapshot

HELD = "removals_held"
FIRST_SHOWN = 10
_AT_A_TIME = 1000
_INDEXING = ("index", "reindex")


class HeldList(Struct, frozen=True):
    """What a run has held: how many documents, the first keys in order, and the digest that names the whole list."""

    count: int
    first: tuple[str, ...]
    digest: str


def held_list(state: StateStore, run_id: int) -> HeldList:
    """Read in pages; the same list has the same digest, whoever reads it, and when."""
    digest, total = sha256(), 0
    first: list[str] = []
    for candidate in _held(state, run_id):
        digest.update(f"{candidate.key}\0{candidate.reason.value}\n".encode())
        total += 1
        if len(first) < FIRST_SHOWN:
            first.append(candidate.key)
    return HeldList(total, tuple(first), digest.hexdigest() if total else "")


def held_page(state: StateStore, run_id: int, *, after: str = "", limit: int) -> list[RemovalCandidate]:
    """The next of what a run holds behind the key `after`, in key order."""
    return list(islice(_held(state, run_id, after), limit))


def why_not_approvable(state: StateStore, run: RunRecord) -> str:
    """Why the removals of a run cannot be let go, in a few words; "" where they can."""
    if run.state != "partial" or run.cause != HELD:
        return "it holds no removals"
    newest = next((later.id for later in state.runs(1)), run.id)
    is_kept = newest - run.id < KEPT_CHANGES_OF_RUNS or next(_held(state, run.id), None) is not None
    for later in state.runs(newest - run.id) if is_kept else ():
        if is_approved_by(state, run, later):
            return f"run {later.id} has been asked to let them go"
        if later.kind in _INDEXING and later.full and _has_ended(later) and set(run.roots) <= set(later.roots):
            return f"run {later.id} has looked at these roots since, and has a list of its own"
    if not is_kept or next(_held(state, run.id), None) is None:
        return "its list is kept no more"
    return ""


def is_approved_by(state: StateStore, run: RunRecord, later: RunRecord) -> bool:
    """Whether a run lets the removals of another go: one that has done so, or is at it."""
    is_given_up = later.state in ("cancelled", "interrupted", "failed")
    if later.kind != "index" or is_given_up:
        return False
    return run.id in (state.request_of(later.id).get("approve"), state.plan_of(later.id).get("approve"))


def require_approvable(state: StateStore, run_id: int, digest: str) -> tuple[RunRecord, HeldList]:
    """The run and its list. Raises NotFoundError, and RefusedError where there is nothing to approve, or where
    `digest` ("": whatever is held) names another list."""
    run = state.run(run_id)
    if run is None:
        raise NotFoundError(f"there is no run {run_id}", hint="`knowledge runs` lists them")
    why_not = why_not_approvable(state, run)
    if why_not:
        raise RefusedError(f"run {run_id} cannot be approved: {why_not}", hint="`knowledge runs` says which one can")
    held = held_list(state, run_id)
    require_digest(held, digest, run_id)
    return run, held


def require_digest(held: HeldList, digest: str, run_id: int) -> None:
    if digest and not held.digest.startswith(digest):
        raise RefusedError(
            f"the list of run {run_id} is another one: its digest is {held.digest or 'none'}, not {digest}",
            hint=f"look at it again: `knowledge runs show {run_id}`",
        )


def approved_removals(it: "Running", snapshot: "SqliteSnapshot") -> RemovalReport:
    """The removals of a run that was asked to let a list go. Raises RefusedError where the list is another one."""
    request = it.request
    require_digest(held_list(it.base.state, request.approve), request.digest, request.approve)
    it.base.state.record_plan(it.run.id, {"approve": request.approve})
    it.progress.stage = "removing"
    it.base.state.set_run_state(it.run.id, it.progress.run_state, "")
    it.await_permission()
    return settle_approved(it.base, snapshot, it.settings, it.run, it.roots, request.approve)


def _held(state: StateStore, run_id: int, after: str = "") -> Iterator[RemovalCandidate]:
    while page := _page(state, run_id, after):
        after = page[-1].key
        yield from (candidate for candidate in page if candidate.reason is not Reason.FORGOTTEN)


def _page(state: StateStore, run_id: int, after: str) -> Sequence[RemovalCandidate]:
    return state.candidates(run_id, "", after=after, limit=_AT_A_TIME)


def _has_ended(run: RunRecord) -> bool:
    return run.state in ("done", "partial")
