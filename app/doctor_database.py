"""The doctor's look into knowledge.db: its format, its log, who reads it, and whether it can be what the runs left."""

from collections.abc import Iterator, Sequence
from contextlib import closing

from app.consistency_check import Recorded, check_complete, check_consistent
from app.present import NO_INDEX
from domain.checks import CheckResult, failed, not_run, passed
from domain.errors import KnowledgeError
from domain.layout import BaseLayout, sidecars
from store import driver, files, format_gate, integrity
from store.connection import open_reader, translated
from store.log_state import LogFrames, log_frames, reading_processes
from store.port import StoreCounts, Visibility
from store.queries import counts, identity

WAL_ALARM_BYTES = 64 * 1024 * 1024
_NAMES = ("format", "journal", "checkpoint", "readers", "index_consistent", "index_complete", "index_searchable")
_MIB = 1024**2


def check_database(layout: BaseLayout, recorded: Recorded, *, is_safe: bool) -> Iterator[CheckResult]:
    """Every check of knowledge.db, over a reading connection."""
    if not is_safe or not _is_there(layout):
        reason = NO_INDEX if is_safe else "it is not opened before the above is mended"
        yield from (not_run(name, reason) for name in _NAMES)
        return
    done = 0
    try:
        with translated(layout.database), closing(open_reader(layout.database)) as connection:
            for result in _checks(layout, recorded, connection):
                done += 1
                yield result
    except KnowledgeError as error:
        yield failed(_NAMES[done], error.message, error.hint)
        yield from (not_run(name, "the index cannot be read") for name in _NAMES[done + 1 :])


def _is_there(layout: BaseLayout) -> bool:
    try:
        return files.lstat_or_none(layout.database) is not None
    except KnowledgeError:
        return False


def _checks(layout: BaseLayout, recorded: Recorded, connection: driver.Connection) -> Iterator[CheckResult]:
    format_gate.check(connection, layout.database, base_id=recorded.base_id)
    yield passed("format", f"format {format_gate.FORMAT_VERSION}")
    mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    yield _check_journal(layout, mode)
    readers = reading_processes(layout.database)
    page_bytes = int(connection.execute("PRAGMA page_size").fetchone()[0])
    yield check_log(log_frames(connection), page_bytes, readers)
    yield _check_readers(readers)
    found = counts(connection, "", Visibility.everything())
    yield check_consistent(recorded, identity(connection), found.documents)
    yield check_complete(identity(connection), found.documents)
    yield _searchable(found, integrity.check_searchable(connection, layout.database))


def _check_journal(layout: BaseLayout, mode: str) -> CheckResult:
    if mode != "wal":
        return failed(
            "journal",
            f"journal mode is {mode}, not WAL: readers and the writer block each other",
            "run `knowledge index`",
        )
    status = files.lstat_or_none(sidecars(layout.database)[1])
    log_bytes = status.st_size if status is not None else 0
    if log_bytes > WAL_ALARM_BYTES:
        detail = f"the write-ahead log takes {log_bytes // _MIB} MiB of the disk"
        return failed("journal", detail, "run `knowledge compact`: it gives them back", is_fatal=False)
    return passed("journal", f"WAL, {log_bytes // 1024} KiB")


def check_log(frames: LogFrames | None, page_bytes: int, readers: Sequence[int] | None) -> CheckResult:
    """How far the database file is behind its log (finding 11: of the two counts, never of the busy flag)."""
    if frames is None:
        return not_run("checkpoint", f"SQLite {driver.sqlite_version} cannot tell without writing; 3.51 can")
    words = f"{frames.folded_in:,} of {frames.in_log:,} frames are folded in"
    lag_bytes = frames.lag * page_bytes
    if lag_bytes <= WAL_ALARM_BYTES:
        return passed("checkpoint", words)
    if readers:
        hint = f"end what reads for so long ({_processes(readers)}), then run `knowledge compact`"
    else:
        hint = "run `knowledge compact` when nothing reads: readers that overlap keep the log from being folded in"
    return failed("checkpoint", f"{words}: {lag_bytes // _MIB} MiB wait in the log", hint, is_fatal=False)


def _check_readers(readers: Sequence[int] | None) -> CheckResult:
    """Who reads now. Since when is not told by anything, so nothing is said of it."""
    if readers is None:
        return not_run("readers", "this system does not tell who has the index open")
    if not readers:
        return passed("readers", "no other process reads at this moment")
    return passed("readers", f"reading at this moment: {_processes(readers)}; since when cannot be seen")


def _processes(pids: Sequence[int]) -> str:
    return ", ".join(f"process {pid}" if pid else "a process out of sight (of another container)" for pid in pids)


def _searchable(found: StoreCounts, result: CheckResult) -> CheckResult:
    if result.detail:
        return result
    return passed(result.name, f"{found.documents} documents, {found.chunks} chunks")
