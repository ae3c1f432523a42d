"""The last step of a restore: two renames that nothing can come between for good. An upgrade ends in the same way.

A restore lays a whole pair of databases out in a directory of its own and renames that directory: this is the moment
at which the new pair takes over. What is left to do can be repeated, and every command that opens the base does it
first; so nobody meets one file of the old pair beside one of the new. An upgrade lays out knowledge.db alone.
"""

import os
import stat
import time
from pathlib import Path

from domain.errors import LockedError, StorageError, UnsafePlaceError
from domain.layout import BaseLayout
from store import files
from store.lock import WriteLock, is_held

WAIT_S = 5.0  # for a restore that is at its last step in another process
_LOOK_AGAIN_S = 0.02


def is_restore_pending(layout: BaseLayout) -> bool:
    return files.lstat_or_none(layout.restore_ready) is not None


def settle_restore(layout: BaseLayout) -> bool:
    """Finish a restore that was cut short at its last step; says whether there was one. Takes the lock for it.

    Raises LockedError where another process keeps the lock, StorageError where it cannot be finished.
    """
    if not is_restore_pending(layout):
        return False
    latest_s = time.monotonic() + WAIT_S
    while is_restore_pending(layout):
        try:
            with WriteLock(layout.lock, purpose="knowledge restore"):
                finish_restore(layout)
        except LockedError:
            if time.monotonic() >= latest_s:
                raise
            time.sleep(_LOOK_AGAIN_S)
        except StorageError as error:
            raise StorageError(
                f"a restore or an upgrade of {layout.home} was cut short, and its last step cannot be done:"
                f" {error.message}",
                hint=error.hint,
            ) from error
    return True


def await_restore(layout: BaseLayout) -> None:
    """For whoever may write nothing: wait while another process is at the last step of a restore or an upgrade.

    Raises StorageError where nobody is at it, LockedError where it takes longer than WAIT_S.
    """
    latest_s = time.monotonic() + WAIT_S
    is_left = False
    while is_restore_pending(layout):
        if is_held(layout.lock):
            is_left = False
        elif is_left:  # seen twice: the first may have come between its end and the freeing of the lock
            raise StorageError(
                f"a restore or an upgrade of {layout.home} was cut short before its last step, which is not done here:"
                " nothing is written",
                hint="run `knowledge status`: it does that step first, as every command does that opens the index",
            )
        else:
            is_left = True
        if time.monotonic() >= latest_s:
            raise LockedError(f"{layout.home} is being restored", hint="try again in a moment")
        time.sleep(_LOOK_AGAIN_S)


def finish_restore(layout: BaseLayout) -> bool:
    """Put what is ready in its place, and drop a pair that never became ready; says whether one was ready.

    The caller holds the lock and has no connection to the base open. state.db goes first: knowledge.db may hold more
    than state.db knows, never less (R2).
    """
    remove_staging(layout.restore_staging)
    ready = layout.restore_ready
    if not is_restore_pending(layout):
        return False
    require_directory(ready)
    for place in (layout.state, layout.database):
        new = ready / place.name
        if files.refuse_unsafe(new) is None:
            continue  # it was put in place before, or is no part of an upgrade
        files.remove_database(place)  # with its log, which would be replayed into the new file
        with files.storage_errors(place, "put in place"):
            new.rename(place)
        sync_directory(layout.home)
    remove_staging(ready)
    sync_directory(layout.home)
    return True


def make_ready(layout: BaseLayout, staging: Path | None = None) -> None:
    """Let what lies in a directory of the home, that of a restore or `staging`, take over: one rename decides. Its
    databases are written through to the disk, and nothing of them is in a log."""
    staging = staging or layout.restore_staging
    sync_directory(staging)
    with files.storage_errors(layout.restore_ready, "make"):
        staging.rename(layout.restore_ready)
    sync_directory(layout.home)


def fold_log_in(database: Path) -> None:
    """Bring a database whole into its file, and that through to the disk: the file alone is put in place.

    No connection to it may be open in this process. Raises LockedError where another process has it open.
    """
    from store.connection import open_writer, translated

    connection = open_writer(database, synchronous="FULL")
    try:
        with translated(database):
            is_busy = bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
    finally:
        connection.close()
    if is_busy:
        raise LockedError(f"{database} is open in another process", hint="end it, then run the command again")
    sync_file(database)


def remove_staging(directory: Path) -> None:
    """Remove a directory of ours with what is in it; a link is refused, not followed."""
    if files.lstat_or_none(directory) is None:
        return
    import shutil  # only here: every search imports this module

    require_directory(directory)
    with files.storage_errors(directory, "remove"):
        shutil.rmtree(directory)


def require_directory(directory: Path) -> None:
    """Raises UnsafePlaceError for a link and for what is no directory."""
    status = files.lstat_or_none(directory)
    if status is None or not stat.S_ISDIR(status.st_mode):
        raise UnsafePlaceError(f"{directory} is a link or no directory", hint="remove it: the name is the store's own")


def sync_directory(directory: Path) -> None:
    """Write a directory's names through to the disk, where the system can."""
    if os.name == "nt":
        return
    with files.storage_errors(directory, "write"):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sync_file(path: Path) -> None:
    """Write a file through to the disk. No connection of this process may have it open (store.files)."""
    with files.storage_errors(path, "write"):
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
