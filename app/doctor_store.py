"""The doctor's look at a base's files and at the disk below them. Path calls only: nothing of SQLite's is opened."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from app.present import NO_INDEX
from domain.checks import CheckResult, failed, not_run, passed
from domain.errors import KnowledgeError
from domain.layout import BaseLayout, sidecars
from store import files
from store.filesystems import file_system_kind, is_unsafe
from store.lock import holder_of, is_held
from store.pending_restore import is_restore_pending

LEAST_FREE_BYTES = 64 * 1024 * 1024  # beside twice the WAL: deletes and checkpoints need room too (P23)
_INDEX_HINT = "run `knowledge index YOUR_FOLDER`"


def check_files(layout: BaseLayout, located: str) -> Iterator[CheckResult]:
    """What lies in the home directory, and on what disk. A failed fatal one means: do not open it."""
    yield _check_links(layout)
    if not _is_there(layout.home):
        where = f" ({located})" if located else ""
        yield failed("store_present", f"there is no index at {layout.home}{where}", _INDEX_HINT)
        yield from (
            not_run(name, NO_INDEX, _INDEX_HINT)
            for name in ("store_private", "lock", "restore", "upgrade", "index_writable", "file_system", "free_disk")
        )
        return
    if _is_there(layout.database):
        yield passed("store_present", f"{layout.home}" + (f" ({located})" if located else ""))
    else:
        yield failed("store_present", f"there is no knowledge.db at {layout.home}", _INDEX_HINT)
    yield _check_modes(layout)
    yield _check_lock(layout)
    yield _check_restore(layout)
    yield _check_upgrade(layout)
    yield _check_writable(layout)
    yield _check_file_system(layout)
    yield _check_free_disk(layout)


def _store_files(layout: BaseLayout) -> tuple[Path, ...]:
    databases = (layout.database, layout.state, layout.upgrading.database)
    return (*(path for database in databases for path in sidecars(database)), layout.lock)


def _store_folders(layout: BaseLayout) -> tuple[Path, ...]:
    return (layout.spool, layout.restore_staging, layout.restore_ready, layout.upgrade_staging)


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
        for path in _store_folders(layout):
            status = files.lstat_or_none(path)
            if status is not None and not stat.S_ISDIR(status.st_mode):
                return failed("store_links", f"{path} is a link or no folder", f"rm {path}")
    except KnowledgeError as error:
        return failed("store_links", error.message, error.hint)
    return passed("store_links")


def _check_modes(layout: BaseLayout) -> CheckResult:
    """0700 for the directory, 0600 for its files: nobody else may read what is stored as plain text (S0-05)."""
    open_to_others = [
        str(path)
        for path in (layout.home, *_store_files(layout), *_store_folders(layout))
        if (status := _status(path)) is not None and status.st_mode & 0o077
    ]
    if not open_to_others:
        return passed("store_private")
    return failed(
        "store_private",
        f"others may look into {', '.join(open_to_others)}",
        f"chmod -R go-rwx {layout.home}",
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


def _check_restore(layout: BaseLayout) -> CheckResult:
    """A restore that was killed: behind its decision the next command finishes it, before it nothing has changed."""
    try:
        if is_restore_pending(layout):
            hint = "run `knowledge status`: the next command that opens the index finishes it"
            return failed("restore", "a restore or an upgrade was cut short at its last step", hint)
        if not _is_there(layout.restore_staging):
            return passed("restore", "none was cut short")
        if is_held(layout.lock):
            return not_run("restore", f"one is going on: {holder_of(layout.lock) or 'another process'}")
    except (KnowledgeError, OSError) as error:
        return not_run("restore", f"{layout.home} cannot be looked into: {error}")
    detail = "a restore was cut short before it changed anything; its files take room"
    return failed("restore", detail, "run `knowledge index`: it drops them", is_fatal=False)


def _check_upgrade(layout: BaseLayout) -> CheckResult:
    """An upgrade that was killed, or held, before its decision: the old index stands, and the new one takes room."""
    try:
        if not _is_there(layout.upgrade_staging):
            return passed("upgrade", "none was cut short")
        if is_held(layout.lock):
            return not_run("upgrade", f"one may be going on: {holder_of(layout.lock) or 'another process'}")
    except (KnowledgeError, OSError) as error:
        return not_run("upgrade", f"{layout.home} cannot be looked into: {error}")
    taken = sum(status.st_size for path in sidecars(layout.upgrading.database) if (status := _status(path)) is not None)
    detail = f"an upgrade did not come to its end; what it has made so far takes {taken // 1024**2 + 1} MiB"
    hint = "run `knowledge upgrade`: it goes on, or drops them where they are not needed any more"
    return failed("upgrade", detail, hint, is_fatal=False)


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
