"""`knowledge verify`: whether the index is what it says, with what could not be looked at named as such."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from domain.checks import CheckResult, failed, has_failed, not_run, was_left_out
from domain.errors import IntegrityError, LockedError, NotBuiltError, StorageError
from domain.layout import BaseLayout
from domain.settings import Settings
from store import driver, files, format_gate, integrity
from store.connection import open_reader, open_writer
from store.lock import WriteLock, holder_of
from store.pending_restore import settle_restore
from store.state import SqliteStateStore


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Every check with its state; nothing that was not run counts as passed."""

    home: Path
    is_deep: bool
    is_built: bool
    results: tuple[CheckResult, ...]
    elapsed_s: float

    @property
    def exit_status(self) -> int:
        """13 where something is wrong; else 10 without an index, 11 where a writer kept checks from running."""
        if has_failed(self.results):
            return IntegrityError.exit_status
        if not self.is_built:
            return NotBuiltError.exit_status
        return LockedError.exit_status if was_left_out(self.results) else 0


def verify(settings: Settings, deep: bool) -> VerifyReport:
    """Check the index without changing it or making anything.

    Takes the lock; where another process has it, what needs a store that stands still is not run, and says so.
    Raises FormatError, UnsafePlaceError, and StorageError where the file cannot be read at all.
    """
    began_s = time.monotonic()
    layout = BaseLayout(settings.home)
    files.refuse_unsafe(layout.lock)
    settle_restore(layout)
    files.refuse_unsafe_database(layout.database)
    status = files.lstat_or_none(layout.database)
    is_built = status is not None and status.st_size > 0
    if is_built:
        with _held_or_why_not(layout) as why_not:
            results = _checked(layout, deep, why_not)
    else:
        reason = f"there is no index at {layout.home}"
        results = (not_run("index", reason, "run `knowledge index YOUR_FOLDER`"),)
    return VerifyReport(layout.home, deep, is_built, results, time.monotonic() - began_s)


@contextmanager
def _held_or_why_not(layout: BaseLayout) -> Iterator[str]:
    """The lock for as long as the checks take; or, in words, why it cannot be had."""
    lock = WriteLock(layout.lock, purpose="knowledge verify")
    try:
        lock.acquire()
    except LockedError:
        yield f"the index is being written by {holder_of(layout.lock) or 'another process'}"
        return
    except StorageError as error:
        yield f"the index cannot be locked: {error.message}"
        return
    try:
        yield ""
    finally:
        lock.release()


def _checked(layout: BaseLayout, deep: bool, why_not: str) -> tuple[CheckResult, ...]:
    try:
        connection = _opened(layout, read_only=bool(why_not))
    except IntegrityError as error:
        return (failed("file_structure", error.message, format_gate.RESET_HINT),)
    try:
        return integrity.check(connection, layout.database, deep, not_exclusive_because=why_not)
    finally:
        connection.close()


def _opened(layout: BaseLayout, *, read_only: bool) -> driver.Connection:
    path = layout.database
    connection = open_reader(path) if read_only else open_writer(path, synchronous="NORMAL")
    try:
        format_gate.check_format(connection, path, base_id=_base_id(layout))  # the rest is a check of its own
    except BaseException:
        connection.close()
        raise
    return connection


def _base_id(layout: BaseLayout) -> str | None:
    """The id that state.db gives the base; None where there is no state.db to ask."""
    if files.lstat_or_none(layout.state) is None:
        return None
    state = SqliteStateStore(layout.state, read_only=True)
    try:
        return state.base_id()
    finally:
        state.close()
