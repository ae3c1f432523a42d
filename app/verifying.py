"""`knowledge verify`: whether the index is what it says, with what could not be looked at named as such."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from app.consistency_check import NAME, Recorded, check_consistent
from app.wiring import WritableBase
from domain.checks import CheckResult, failed, has_failed, not_run, was_left_out
from domain.errors import IntegrityError, KnowledgeError, LockedError, NotBuiltError, StorageError
from domain.layout import BaseLayout
from domain.settings import Settings
from store import driver, files, format_gate, integrity, lexical, queries
from store.connection import open_reader, open_writer, translated
from store.integrity import Watch
from store.lock import WriteLock, holder_of
from store.pending_restore import settle_restore
from store.state import SqliteStateStore
from store.state_connection import RECORD_LOST, RECORD_LOST_HINT, is_record_lost


class VerifyReport(Struct, frozen=True):
    """Every check with its state; nothing that was not run counts as passed."""

    home: Path
    is_deep: bool
    is_built: bool
    results: tuple[CheckResult, ...]
    elapsed_s: float

    @property
    def exit_status(self) -> int:
        """13 where something is wrong; else 10 without an index, 11 where a writer kept checks from running."""
        if has_failed(self.results, fatal_only=True):
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


def verify_base(base: WritableBase, deep: bool, watch: Watch = lambda connection: None) -> VerifyReport:
    """The same over a base that is held for writing, over its connection. `watch` is told of every other one that is
    opened: through it, whoever has asked may end the checks."""
    began_s = time.monotonic()
    layout = base.layout
    recorded = Recorded(base.state.base_id(), base.state.roots(), base.state.runs())
    consistent = _check_consistent(base.writer.connection, layout.database, recorded)
    results = integrity.check(base.writer.connection, layout.database, deep, watch=watch)
    return VerifyReport(layout.home, deep, True, (*results, consistent), time.monotonic() - began_s)


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
    recorded = _recorded(layout)
    try:
        connection = _opened(layout, recorded.base_id, read_only=bool(why_not))
    except IntegrityError as error:
        return (failed("file_structure", error.message, format_gate.RESET_HINT),)
    try:
        consistent = _check_consistent(connection, layout.database, recorded)
        return (*integrity.check(connection, layout.database, deep, not_exclusive_because=why_not), consistent)
    finally:
        connection.close()


def _recorded(layout: BaseLayout) -> Recorded:
    """Raises what a state.db raises that cannot be read."""
    if files.lstat_or_none(layout.state) is None or is_record_lost(layout.state):
        return Recorded(None, (), ())
    state = SqliteStateStore(layout.state, read_only=True)
    try:
        return Recorded(state.base_id(), state.roots(), state.runs())
    finally:
        state.close()


def _check_consistent(connection: driver.Connection, path: Path, recorded: Recorded) -> CheckResult:
    """Not by counts of the whole store: whether there is a document is enough."""
    if recorded.base_id is None:
        return failed(NAME, RECORD_LOST, RECORD_LOST_HINT)
    try:
        with translated(path):
            documents = int(lexical.has_documents(connection))
            return check_consistent(recorded, queries.identity(connection), documents)
    except (KeyError, ValueError, KnowledgeError):  # told by a check of its own
        return not_run(NAME, "what knowledge.db says of itself cannot be read")


def _opened(layout: BaseLayout, base_id: str | None, *, read_only: bool) -> driver.Connection:
    path = layout.database
    connection = open_reader(path) if read_only else open_writer(path, synchronous="NORMAL")
    try:
        format_gate.check_format(connection, path, base_id=base_id)  # the rest is a check of its own
    except BaseException:
        connection.close()
        raise
    return connection
