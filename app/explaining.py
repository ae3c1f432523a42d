"""`knowledge explain PATH`: what the index knows of one file, why, and what the next run would do with it.

The file is looked at, and read where a run would read it; nothing is written.
"""

import os
import time
from pathlib import Path
from typing import Literal

from msgspec import Struct

from app.consistency import standing_of
from app.file_places import AskedBy, FilePlace, path_of, place_of
from app.planning import walk_rules
from app.wiring import ReadableBase
from domain.files import FileCheck, FileFailure, FileStat, Reason
from domain.settings import Settings
from domain.status import Standing
from scheduler.path_rules import LeftOut, what_leaves_out
from scheduler.plan import PlanPolicy, PlanTally, plan
from scheduler.walk import WalkedFile, file_stat
from store.failure_port import FailureRecord
from store.port import FileTrace, Snapshot, StoreCounts, StoredDocument, StoredFile, Visibility
from store.run_port import RunRecord
from store.state_port import RemovalCandidate, RootRecord
from store.write_port import RecheckWrite, SkipWrite

_EVERYTHING = Visibility.everything()
_KEPT_RUNS = 30

FileState = Literal["indexed", "stale", "skipped", "failed", "not_indexed", "absent", "outside", "folder"]
"""`stale`: indexed, and the last check failed; `absent`: neither there nor indexed."""

NextAction = Literal[
    "unchanged", "check", "add", "update", "embed", "skip", "fail", "leave", "remove", "keep", "walk", "nothing"
]
"""`check`: read, and found the same; `leave`: it failed before and is not tried yet; `keep`: nothing of the root can be
told now; `walk`: of a folder."""


class NextStep(Struct, frozen=True):
    """What the next run would do with the file, as far as can be told now."""

    action: NextAction
    reason: Reason | None = None
    detail: str = ""  # what the system, or another module, says of it
    chunks: int | None = None  # of a document that would be written


class Explanation(Struct, frozen=True):
    """All that is known of a file. `key` is "" outside of every root."""

    target: str  # as it was asked for
    state: FileState
    next: NextStep
    key: str = ""
    file: str = ""  # its path on this machine
    reason: Reason | None = None  # why it is not, or not freshly, in the index
    stat: FileStat | None = None  # None: not there, or not to be looked at
    root: RootRecord | None = None
    is_left_root: bool = False  # recorded, but no longer in the configuration
    left_out: LeftOut | None = None
    document: StoredDocument | None = None
    trace: FileTrace | None = None
    failure: FailureRecord | None = None
    run: RunRecord | None = None  # the one that wrote it last, if it is still remembered
    below: StoreCounts | None = None  # of a folder
    standing: Standing = Standing.COMPLETE  # of the index as a whole

    @property
    def exit_status(self) -> int:
        return 4 if self.state == "absent" else 0


class _Stored(Struct, frozen=True):
    """What is on record of a place."""

    document: StoredDocument | None
    trace: FileTrace | None
    file: StoredFile | None  # as a plan is told of it
    below: StoreCounts | None  # of a folder
    failure: FailureRecord | None


def explain(base: ReadableBase, settings: Settings, target: str, asked_by: AskedBy) -> Explanation:
    """Raises what the store raises; of a file that nobody knows it says so."""
    standing = standing_of(base)
    with base.store.snapshot() as snapshot:
        place = place_of(target, settings, snapshot, base, asked_by)
        if place is None:
            path = path_of(target, asked_by)
            is_there = os.path.lexists(path)
            state: FileState = "outside" if is_there else "absent"
            return Explanation(target, state, NextStep("nothing"), file=path, standing=standing)
        failure = base.state.failure(place.key)
        stored = _stored(snapshot, place, failure)
    left_out = _left_out(settings, place, is_folder=stored.below is not None)
    status = _lstat(place.path)
    stat = file_stat(status) if isinstance(status, os.stat_result) else None
    state = _state(stored, failure, left_out, stat)
    return Explanation(
        target=target,
        state=state,
        next=_next_step(settings, place, left_out, status, stored),
        key=place.key,
        file=str(place.path),
        reason=_reason(state, stored.trace, failure, left_out),
        stat=stat,
        root=place.record,
        is_left_root=place.scope is None,
        left_out=left_out,
        document=stored.document,
        trace=stored.trace,
        failure=failure,
        run=_run_of(base, stored.trace),
        below=stored.below,
        standing=standing,
    )


def _stored(snapshot: Snapshot, place: FilePlace, failure: FailureRecord | None) -> _Stored:
    document = snapshot.document(place.key, visibility=_EVERYTHING)
    below = None
    if document is None and _is_real_folder(place.path):
        below = snapshot.counts(f"{place.key}/", visibility=_EVERYTHING)
    file = next((one for one in snapshot.stored_files(place.key) if one.key == place.key), None)
    return _Stored(document, snapshot.file_trace(place.key), file, below, failure)


def _lstat(path: Path) -> os.stat_result | OSError | None:
    """None: it is not there. An error: nobody can say."""
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        return error


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() if os.path.lexists(path) else False


def _left_out(settings: Settings, place: FilePlace, *, is_folder: bool) -> LeftOut | None:
    if place.scope is None or not place.relative:
        return None
    if place.scope.files and place.relative not in place.scope.files and not is_folder:
        return LeftOut("named_files", Reason.EXCLUDED, place.relative)
    return what_leaves_out(walk_rules(settings, place.scope), place.relative, is_folder=is_folder)


def _next_step(
    settings: Settings,
    place: FilePlace,
    left_out: LeftOut | None,
    status: os.stat_result | OSError | None,
    stored: _Stored,
) -> NextStep:
    if stored.below is not None:
        return NextStep("walk" if left_out is None and place.scope is not None else "nothing")
    is_indexed = stored.document is not None
    if place.scope is None:
        return NextStep("keep" if is_indexed else "nothing", detail="left")
    root = place.record.path
    if os.path.realpath(root) != root or not os.path.isdir(root):  # noqa: PTH112 - as the walk asks
        return NextStep("keep" if is_indexed else "nothing", Reason.DIRECTORY_UNREADABLE, f"{root} is not there")
    if isinstance(status, OSError):
        action: NextAction = "keep" if is_indexed else "nothing"
        return NextStep(action, Reason.DIRECTORY_UNREADABLE, status.strerror or "")
    if status is None:
        return NextStep("remove", Reason.GONE) if is_indexed else NextStep("nothing", Reason.GONE)
    if left_out is not None:
        return NextStep("remove" if is_indexed else "skip", left_out.reason)
    step = _planned(settings, place, file_stat(status), stored)
    awaits_vectors = stored.trace is not None and stored.trace.vector_state == "pending"
    if step.action in ("unchanged", "check") and awaits_vectors and settings.embeddings is not None:
        return NextStep("embed")
    return step


def _planned(settings: Settings, place: FilePlace, stat: FileStat, stored: _Stored) -> NextStep:
    """By the plan that a run makes, over this one file."""
    policy = PlanPolicy(
        now_ns=time.time_ns(),
        max_file_bytes=settings.max_file_bytes,
        trust_stat=settings.change_detection == "stat",
    )
    tally = PlanTally()
    walked = WalkedFile(place.key, stat, None)
    known = [stored.file] if stored.file is not None else []
    failures = [stored.failure] if stored.failure is not None else []
    for item in plan([walked], known, policy, tally, failures):
        if not isinstance(item, RemovalCandidate):
            check, _ = item
            return _checked(settings, place, check, is_indexed=bool(check.stored_hash))
    if tally.unchanged:
        return NextStep("unchanged")
    if tally.kept_failures:
        return NextStep("leave")
    return NextStep("skip", next(iter(tally.skips), None))


def _checked(settings: Settings, place: FilePlace, check: FileCheck, *, is_indexed: bool) -> NextStep:
    """What a worker would make of it: the file is read as a worker reads it."""
    from workers.checking import CheckRules, check_file
    from workers.limited_check import check_suspect
    from workers.reading import RootReader

    root = Path(place.record.path)
    rules = CheckRules(root, 0, settings.max_file_bytes, settings.substring_index)
    if check.is_suspect:
        checked = check_suspect(check, place.record.name, rules)
    else:
        with RootReader(root, max_file_bytes=settings.max_file_bytes) as reader:
            checked = check_file(check, place.record.name, reader, rules, time.monotonic)
    match checked:
        case RecheckWrite():
            return NextStep("check")
        case SkipWrite(reason=reason):
            return NextStep("remove" if is_indexed else "skip", reason)
        case FileFailure(reason=reason, detail=detail):
            return NextStep("fail", reason, detail)
        case _:
            return NextStep("update" if is_indexed else "add", chunks=len(checked.chunks))


def _state(
    stored: _Stored, failure: FailureRecord | None, left_out: LeftOut | None, stat: FileStat | None
) -> FileState:
    if stored.below is not None:
        return "folder"
    if stored.document is not None:
        return "stale" if failure is not None else "indexed"
    if failure is not None:
        return "failed"
    if stored.trace is not None or (left_out is not None and stat is not None):
        return "skipped"
    return "not_indexed" if stat is not None else "absent"


def _reason(
    state: FileState, trace: FileTrace | None, failure: FailureRecord | None, left_out: LeftOut | None
) -> Reason | None:
    if failure is not None:
        return _reason_of(failure.reason)
    if left_out is not None and state in ("skipped", "folder"):
        return left_out.reason
    return _reason_of(trace.reason) if trace is not None and trace.reason else None


def _reason_of(code: str) -> Reason:
    try:
        return Reason(code)
    except ValueError:  # of a later version
        return Reason.UNEXPECTED


def _run_of(base: ReadableBase, trace: FileTrace | None) -> RunRecord | None:
    if trace is None:
        return None
    return next((run for run in base.state.runs(limit=_KEPT_RUNS) if run.generation == trace.generation), None)
