"""The last step of a restore: two renames that nothing can come between for good.

A restore lays a whole pair of databases out in a directory of its own and renames that directory: this is the moment
at which the new pair takes over. What is left to do can be repeated, and every command that opens the base does it
first; so nobody meets one file of the old pair beside one of the new.
"""

import os
import stat
import time
from pathlib import Path

from domain.errors import LockedError, StorageError, UnsafePlaceError
from domain.layout import BaseLayout
from store import files
from store.lock import WriteLock

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
                f"a restore of {layout.home} was cut short, and its last step cannot be done: {error.message}",
                hint=error.hint,
            ) from error
    return True


def finish_restore(layout: BaseLayout) -> bool:
    """Put the pair that is ready in its place, and drop one that never became ready; says whether one was ready.

    The caller holds the lock and has no connection to the base open. state.db goes first: knowledge.db may hold more
    than state.db knows, never less (R2).
    """
    remove_staging(layout.restore_staging)
    ready = layout.restore_ready
    if not is_restore_pending(layout):
        return False
    _require_directory(ready)
    for place in (layout.state, layout.database):
        new = ready / place.name
        if files.refuse_unsafe(new) is None:
            continue  # it was put in place before
        files.remove_database(place)  # with its log, which would be replayed into the new file
        with files.storage_errors(place, "put in place"):
            new.rename(place)
        sync_directory(layout.home)
    remove_staging(ready)
    sync_directory(layout.home)
    return True


def make_ready(layout: BaseLayout) -> None:
    """Let the pair that lies in the staging directory, written through to the disk, take over."""
    sync_directory(layout.restore_staging)
    with files.storage_errors(layout.restore_ready, "make"):
        layout.restore_staging.rename(layout.restore_ready)
    sync_directory(layout.home)


def remove_staging(directory: Path) -> None:
    """Remove a directory of ours with what is in it; a link is refused, not followed."""
    if files.lstat_or_none(directory) is None:
        return
    import shutil  # only here: every search imports this module

    _require_directory(directory)
    with files.storage_errors(directory, "remove"):
        shutil.rmtree(directory)


def _require_directory(directory: Path) -> None:
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
