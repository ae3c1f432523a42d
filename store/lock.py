"""The writer's lock: one process holds a base's knowledge.lock for its lifetime (S0-60..62, R11).

On Unix it is a non-blocking flock, which the kernel frees when its holder dies; elsewhere the file's exclusive
creation, which a crash may leave behind.
"""

import contextlib
import errno
import json
import os
import sys
import time
from pathlib import Path
from types import TracebackType

from domain.errors import LockedError, UnsafePlaceError
from store.files import PRIVATE_FILE_MODE, lstat_or_none, refuse_unsafe, storage_errors

try:
    import fcntl
except ImportError:  # not Unix
    HAS_FLOCK = False
else:
    HAS_FLOCK = True

HOLDER_CAP_BYTES = 1024
# to look at a lock file: a link is not followed, and a named pipe does not keep the caller waiting
_LOOK_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))


class WriteLock:
    """Held from `acquire` to `release`; released by the kernel when the process dies."""

    def __init__(self, path: Path, *, purpose: str) -> None:
        self._path = path
        self._purpose = purpose
        self._descriptor: int | None = None

    @property
    def path(self) -> Path:
        return self._path

    def acquire(self) -> None:
        """Take the lock at once. Raises LockedError naming the holder, UnsafePlaceError for a link, StorageError."""
        refuse_unsafe(self._path)
        self._descriptor = self._take_flock() if HAS_FLOCK else self._take_by_creation()
        holder = json.dumps({"pid": os.getpid(), "command": self._purpose, "since": int(time.time())})
        with contextlib.suppress(OSError):  # a full disk takes no name; the lock is held all the same
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, holder.encode(), 0)

    def is_at_its_path(self) -> bool:
        """Whether the file that is locked is still the one at its path: one that was removed or replaced keeps nobody
        out any more. Only while it is held."""
        if self._descriptor is None:
            return False
        there = lstat_or_none(self._path)
        mine = os.fstat(self._descriptor)
        return there is not None and (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def release(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if not HAS_FLOCK:
            os.close(descriptor)
            self._path.unlink(missing_ok=True)
            return
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
        os.close(descriptor)

    def __enter__(self) -> "WriteLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _take_flock(self) -> int:
        flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        with storage_errors(self._path, "open"):
            try:
                descriptor = os.open(self._path, flags, PRIVATE_FILE_MODE)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                raise UnsafePlaceError(
                    f"{self._path} is a symbolic link", hint="remove the link; a store's files are its own"
                ) from error
        try:
            if os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, PRIVATE_FILE_MODE)
            _flock_soon(descriptor)
            # an unlinked and recreated file would give two holders of two inodes
            if os.fstat(descriptor).st_ino != self._path.stat().st_ino:
                raise BlockingIOError
        except OSError as error:
            os.close(descriptor)
            raise locked_error(self._path) from error
        return descriptor

    def _take_by_creation(self) -> int:
        try:
            return os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE_MODE)
        except FileExistsError as error:
            raise locked_error(self._path) from error


def _flock_soon(descriptor: int) -> None:
    """Lock without waiting for a holder; a look of `is_held`, gone in an instant, is no holder."""
    for _ in range(3):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def locked_error(path: Path) -> LockedError:
    """Who holds the lock, as far as the file says."""
    stale = "" if sys.platform != "win32" else f"; if that process is gone, remove {path}"
    return LockedError(
        f"the index is being written by {holder_of(path) or 'another process'}",
        hint=f"wait for it to end, or stop it{stale}",
    )


def holder_of(path: Path) -> str:
    """The holder in words (`knowledge index, process 4711`), "" when nobody has written a name."""
    if lstat_or_none(path) is None:
        return ""
    try:
        descriptor = os.open(path, _LOOK_FLAGS)
        try:
            raw = os.read(descriptor, HOLDER_CAP_BYTES)
        finally:
            os.close(descriptor)
        holder = json.loads(raw)
        return f"`{holder['command']}`, process {int(holder['pid'])}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def is_held(path: Path) -> bool:
    """Whether some process holds the lock now."""
    if lstat_or_none(path) is None or not HAS_FLOCK:
        return path.exists()
    with storage_errors(path, "open"):
        descriptor = os.open(path, _LOOK_FLAGS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
