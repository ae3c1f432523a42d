"""The doctor's look at the store's files and at knowledge.db. Path calls and a reading connection only."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from domain.checks import CheckResult, failed, not_run, passed
from domain.errors import KnowledgeError
from domain.layout import BaseLayout, sidecars
from store import files, format_gate, integrity
from store.connection import open_reader, translated
from store.filesystems import file_system_kind, is_unsafe
from store.lock import holder_of, is_held
from store.port import StoreCounts, Visibility
from store.queries import counts

WAL_ALARM_BYTES = 64 * 1024 * 1024
LEAST_FREE_BYTES = 64 * 1024 * 1024  # beside twice the WAL: deletes and checkpoints need room too (P23)
_INDEX_HINT = "run `knowledge index YOUR_FOLDER`"


def check_files(layout: BaseLayout, located: str) -> Iterator[CheckResult]:
    """What lies in the home directory, and on what disk. A failed fatal one means: do not open it."""
    yield _check_links(layout)
    if not _is_there(layout.home):
        where = f" ({located})" if located else ""
        yield failed("store_present", f"there is no index at {layout.home}{where}", _INDEX_HINT)
        yield from (
            not_run(name, "there is no index yet", _INDEX_HINT)
            for name in ("store_private", "lock", "index_writable", "file_system", "free_disk")
        )
        return
    if _is_there(layout.database):
        yield passed("store_present", f"{layout.home}" + (f" ({located})" if located else ""))
    else:
        yield failed("store_present", f"there is no knowledge.db at {layout.home}", _INDEX_HINT)
    yield _check_modes(layout)
    yield _check_lock(layout)
    yield _check_writable(layout)
    yield _check_file_system(layout)
    yield _check_free_disk(layout)


def _store_files(layout: BaseLayout) -> tuple[Path, ...]:
    return (*sidecars(layout.database), *sidecars(layout.state), layout.lock)


def _is_there(path: Path) -> bool:
    try:
        return files.lstat_or_none(path) is not None
    except KnowledgeError:
        return False


def _check_links(layout: BaseLayout) -> CheckResult:
    """No symlink and nothing but regular files at any of the store's places (S0-07)."""
    try:
        status = files.lstat_or_none(layout.home)
        if status is not None and not stat.S_ISDIR(status.st_mode):
            return failed("store_links", f"{layout.home} is a link or no directory", "name the directory itself")
        for path in _store_files(layout):
            files.refuse_unsafe(path)
    except KnowledgeError as error:
        return failed("store_links", error.message, error.hint)
    return passed("store_links")


def _check_modes(layout: BaseLayout) -> CheckResult:
    """0700 for the directory, 0600 for its files: nobody else may read what is stored as plain text (S0-05)."""
    open_to_others = [
        str(path)
        for path in (layout.home, *_store_files(layout))
        if (status := _status(path)) is not None and status.st_mode & 0o077
    ]
    if not open_to_others:
        return passed("store_private")
    return failed(
        "store_private",
        f"others may look into {', '.join(open_to_others)}",
        f"chmod 700 {layout.home} && chmod 600 {layout.home}/*.db* (`knowledge index` does it too)",
        is_fatal=False,
    )


def _status(path: Path) -> os.stat_result | None:
    try:
        return files.lstat_or_none(path)
    except KnowledgeError:
        return None


def _check_lock(layout: BaseLayout) -> CheckResult:
    try:
        if is_held(layout.lock):
            return passed("lock", f"held by {holder_of(layout.lock) or 'another process'}")
    except (KnowledgeError, OSError) as error:
        return not_run("lock", f"{layout.lock} cannot be opened: {error}")
    return passed("lock", "free")


def _check_writable(layout: BaseLayout) -> CheckResult:
    """Not fatal: a reader needs no more than to read."""
    places = [layout.home, *(path for path in (layout.database, layout.state) if _is_there(path))]
    closed = [str(path) for path in places if not os.access(path, os.W_OK)]
    if not closed:
        return passed("index_writable")
    return failed(
        "index_writable",
        f"{', '.join(closed)} cannot be written; searches work all the same",
        f"chown -R {os.getuid() if hasattr(os, 'getuid') else 'YOU'} {layout.home}, or run as its owner",
        is_fatal=False,
    )


def _check_file_system(layout: BaseLayout) -> CheckResult:
    kind = file_system_kind(layout.home)
    if not kind:
        return not_run("file_system", "this system does not say which kind it is")
    if is_unsafe(kind):
        return failed(
            "file_system",
            f"{layout.home} lies on {kind}, where locks and shared memory are not to be relied on",
            "set `directory` to a local disk, then `knowledge index`",
            is_fatal=False,
        )
    return passed("file_system", kind)


def _check_free_disk(layout: BaseLayout) -> CheckResult:
    free = files.free_bytes(layout.home)
    wal = _status(sidecars(layout.database)[1])
    needed = LEAST_FREE_BYTES + 2 * (wal.st_size if wal is not None else 0)
    if free >= needed:
        return passed("free_disk", f"{free // 1024**2} MiB free")
    return failed(
        "free_disk",
        f"{free // 1024**2} MiB free, {needed // 1024**2} MiB are needed to write safely",
        "free some space on that disk",
        is_fatal=False,
    )


def check_database(layout: BaseLayout, base_id: str | None, *, is_safe: bool) -> Iterator[CheckResult]:
    """The format, the journal, and whether the full-text tables answer."""
    names = ("format", "journal", "index_searchable")
    if not is_safe or not _is_there(layout.database):
        reason = "there is no index yet" if is_safe else "it is not opened before the above is mended"
        yield from (not_run(name, reason) for name in names)
        return
    done = 0
    try:
        with translated(layout.database), closing(open_reader(layout.database)) as connection:
            format_gate.check(connection, layout.database, base_id=base_id)
            done += 1
            yield passed("format", f"format {format_gate.FORMAT_VERSION}")
            mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
            done += 1
            yield _check_journal(layout, mode)
            found = counts(connection, "", Visibility.everything())
            done += 1
            yield _searchable(found, integrity.check_searchable(connection, layout.database))
    except KnowledgeError as error:
        yield failed(names[done], error.message, error.hint)
        yield from (not_run(name, "the index cannot be read") for name in names[done + 1 :])


def _searchable(found: StoreCounts, result: CheckResult) -> CheckResult:
    if result.detail:
        return result
    return passed(result.name, f"{found.documents} documents, {found.chunks} chunks")


def _check_journal(layout: BaseLayout, mode: str) -> CheckResult:
    wal = _status(sidecars(layout.database)[1])
    wal_bytes = wal.st_size if wal is not None else 0
    if mode != "wal":
        return failed(
            "journal",
            f"journal mode is {mode}, not WAL: readers and the writer block each other",
            "run `knowledge index`",
        )
    if wal_bytes > WAL_ALARM_BYTES:
        return failed(
            "journal",
            f"the write-ahead log has {wal_bytes // 1024**2} MiB: a reader holds an old state open",
            "end readers that run for long; the next `knowledge index` folds it in",
            is_fatal=False,
        )
    return passed("journal", f"WAL, {wal_bytes // 1024} KiB")
