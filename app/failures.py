"""`knowledge failures`, `retry` and `ignore`: the files that failed, looked at, tried again, left alone."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from app.file_places import AskedBy, place_of
from app.receipts import require_built
from app.roots import scopes_of_run
from app.wiring import ReadableBase
from domain.errors import NotFoundError, UsageError
from domain.keys import is_utf8, path_below_root, root_of
from domain.layout import BaseLayout
from domain.retry_rules import TRIES_BEFORE_QUARANTINE
from domain.settings import Settings
from store.failure_port import FailureLedgerPort, FailureRecord
from store.state import SqliteStateStore

PATHS_OF_ONE_RUN = 1000  # more files than these, and the run looks at their whole roots
_AT_A_TIME = 500

Ran = TypeVar("Ran")
RunPaths = Callable[[tuple[Path, ...]], Ran]
"""Begins a run over these files or folders, or has the service begin it; says what came of it."""


class ToRetry(Struct, frozen=True):
    """What is to be tried again. `gone`: their files are not there any more; `left`: their roots are in no
    configuration any more, so that no run looks at them."""

    files: tuple[FailureRecord, ...] = ()
    paths: tuple[Path, ...] = ()  # what the run is about: the files themselves, or their roots
    gone: tuple[FailureRecord, ...] = ()
    left: tuple[FailureRecord, ...] = ()


class Retried(Generic[Ran], Struct, frozen=True):
    """`ran` is None where no file was there to be tried."""

    tried: ToRetry
    ran: Ran | None


def of_reason(reason: str | None) -> str | None:
    """Raises UsageError for what is no reason of a failure."""
    if reason is not None and reason not in TRIES_BEFORE_QUARANTINE:
        known = ", ".join(sorted(TRIES_BEFORE_QUARANTINE))
        raise UsageError(f"{reason!r} is no reason for a failure", hint=f"there are: {known}")
    return reason


def listed(base: ReadableBase, reason: str | None = None) -> Iterator[FailureRecord]:
    """Every failure on record, or those of one reason, in key order."""
    return on_record(base.state, reason)


def on_record(ledger: FailureLedgerPort, reason: str | None = None, *, after: str = "") -> Iterator[FailureRecord]:
    """The same of a ledger, from behind the key `after` on."""
    while page := ledger.failures_page("", after=after, limit=_AT_A_TIME):
        yield from (row for row in page if reason is None or row.reason == reason)
        after = page[-1].key


def named(base: ReadableBase, settings: Settings, targets: Sequence[str], asked_by: AskedBy) -> list[FailureRecord]:
    """The failures of files, or of all files below folders, as keys or as paths of this machine.

    Raises NotFoundError for a target without one.
    """
    found: dict[str, FailureRecord] = {}
    with base.store.snapshot() as snapshot:
        for target in targets:
            place = place_of(target, settings, snapshot, base, asked_by)
            key = place.key if place is not None else target
            found |= {row.key: row for row in _on_record(base.state, key)}
    return [found[key] for key in sorted(found)]


def of_keys(ledger: FailureLedgerPort, keys: Sequence[str]) -> list[FailureRecord]:
    """The same by keys alone: nothing on this machine's disk is looked at. Raises NotFoundError."""
    found = {row.key: row for key in keys for row in _on_record(ledger, key.rstrip("/"))}
    return [found[key] for key in sorted(found)]


def _on_record(ledger: FailureLedgerPort, key: str) -> list[FailureRecord]:
    rows: list[FailureRecord] = []
    if is_utf8(key):  # what is none is never on record, and state.db cannot be asked for it
        exact = ledger.failure(key)
        rows = [exact] if exact is not None else list(ledger.failures(f"{key}/"))
    if not rows:
        raise NotFoundError(
            f"no failure of {key} is on record",
            hint="`knowledge failures` lists them; `knowledge explain PATH` says what is known of a file",
        )
    return rows


def to_retry(base: ReadableBase, settings: Settings, failures: Sequence[FailureRecord]) -> ToRetry:
    """Sort failures by what a run can do about them."""
    recorded = base.state.roots()
    try:
        walked = {scope.record.name: Path(scope.record.path) for scope in scopes_of_run(settings, recorded, ())}
    except UsageError:  # there is no root
        walked = {}
    files: list[FailureRecord] = []
    gone: list[FailureRecord] = []
    left: list[FailureRecord] = []
    for failure in failures:
        folder = walked.get(root_of(failure.key))
        if folder is None:
            left.append(failure)
        elif folder.is_dir() and not os.path.lexists(folder / path_below_root(failure.key)):
            gone.append(failure)
        else:
            files.append(failure)
    paths = [walked[root_of(failure.key)] / path_below_root(failure.key) for failure in files]
    if len(paths) > PATHS_OF_ONE_RUN:
        paths = sorted({walked[root_of(failure.key)] for failure in files})
    return ToRetry(tuple(files), tuple(paths), tuple(gone), tuple(left))


def retry(settings: Settings, asked: ToRetry, run: RunPaths[Ran]) -> Retried[Ran]:
    """Make files due, whatever they were put back for, and have a run look at them. Files that are gone have failed
    for the last time. Raises what the run raises; the files are due then all the same."""
    with _ledger(settings) as ledger:
        ledger.retry_failures([failure.key for failure in asked.files])
        ledger.forget_failures([failure.key for failure in asked.gone])
    return Retried(asked, run(asked.paths) if asked.paths else None)


def ignore(settings: Settings, failures: Sequence[FailureRecord], *, undo: bool) -> list[FailureRecord]:
    """Leave files alone from now on, or (`undo`) let the next run try them again; the rows that this changes."""
    changed = [failure for failure in failures if (failure.standing == "ignored") == undo]
    with _ledger(settings) as ledger:
        change = ledger.retry_failures if undo else ledger.ignore_failures
        change([failure.key for failure in changed])
    return changed


@contextmanager
def _ledger(settings: Settings) -> Iterator[SqliteStateStore]:
    """state.db beside a run that may be going on: each change is one short transaction, and needs no lock."""
    require_built(settings)
    state = SqliteStateStore(BaseLayout(settings.home).state)
    try:
        yield state
    finally:
        state.close()
