"""Reading the files of a root without following a link, not even one that a directory was swapped for meanwhile.

Every directory on the way is opened relative to the one above with O_NOFOLLOW, the file with O_NONBLOCK beside it (a
FIFO would block for ever), and what was opened is asked what it is. Bytes read are counted, sizes are not believed.
"""

import errno
import os
import stat
import time
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from domain.files import FileStat, Reason, fold_signed_64

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
_FILE_FLAGS = (
    os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
_CAN_OPEN_AT = os.open in os.supports_dir_fd


NO_STAT = FileStat(0, 0, 0, 0, 0)


class FileRead(Struct, frozen=True):
    """A file's bytes with what fstat said before they were read."""

    raw: bytes
    stat: FileStat
    observed_ns: int


class NotRead(Struct, frozen=True):
    """Why a file was not read, and whether that makes it a skipped or a failed one (R33)."""

    reason: Reason
    is_failure: bool
    detail: str = ""
    stat: FileStat = NO_STAT
    observed_ns: int = 0


class RootReader:
    """Reads files below one root; keeps the directories of the last path open, since keys come in order."""

    def __init__(self, root: Path, *, max_file_bytes: int) -> None:
        self._root = root
        self._max_file_bytes = max_file_bytes
        self._names: list[str] = []  # of the open directories below the root
        self._descriptors: list[int] = []  # the root's, then one for each name

    def __enter__(self) -> "RootReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())
        self._names.clear()

    def read(self, relative: str) -> FileRead | NotRead:
        """The bytes of one file, by its posix path below the root."""
        try:
            descriptor = self._open(relative)
        except OSError as error:
            return _not_opened(error)
        try:
            return self._read_open(descriptor)
        except OSError as error:
            return NotRead(Reason.UNREADABLE, is_failure=True, detail=error.strerror or "")
        finally:
            os.close(descriptor)

    def stat(self, relative: str) -> FileStat | None:
        """What stat says of a file that need not be readable, as a walk would see it; None where it says nothing."""
        try:
            if not _CAN_OPEN_AT:
                return _stat_of(os.lstat(self._root / relative))
            *directories, name = relative.split("/")
            return _stat_of(os.stat(name, dir_fd=self._directory(directories), follow_symlinks=False))
        except (OSError, ValueError):
            return None

    def _open(self, relative: str) -> int:
        if not _CAN_OPEN_AT:  # no directory descriptors on this system: the walk's check has to do
            return os.open(self._root / relative, _FILE_FLAGS)
        *directories, name = relative.split("/")
        return os.open(name, _FILE_FLAGS, dir_fd=self._directory(directories))

    def _directory(self, names: list[str]) -> int:
        """The descriptor of a directory; what is open of its path already is kept."""
        if not self._descriptors:
            self._descriptors.append(self._open_root())
        shared = 0
        while shared < min(len(names), len(self._names)) and names[shared] == self._names[shared]:
            shared += 1
        while len(self._names) > shared:
            self._names.pop()
            os.close(self._descriptors.pop())
        for name in names[shared:]:
            self._descriptors.append(os.open(name, _DIRECTORY_FLAGS, dir_fd=self._descriptors[-1]))
            self._names.append(name)
        return self._descriptors[-1]

    def _open_root(self) -> int:
        """A root that is gone, or a link now, makes its files unreadable: none of them is gone or a link for it."""
        try:
            return os.open(self._root, _DIRECTORY_FLAGS)
        except OSError as error:
            raise OSError(errno.EIO, f"the folder {self._root} cannot be opened") from error

    def _read_open(self, descriptor: int) -> FileRead | NotRead:
        status = os.fstat(descriptor)
        observed_ns = time.time_ns()
        seen = _stat_of(status)
        if not stat.S_ISREG(status.st_mode):
            return NotRead(Reason.NOT_A_FILE, is_failure=False, stat=seen, observed_ns=observed_ns)
        cap = self._max_file_bytes
        if status.st_size > cap:
            return NotRead(Reason.TOO_LARGE, is_failure=False, stat=seen, observed_ns=observed_ns)
        raw = os.read(descriptor, min(status.st_size, cap) + 1)
        if len(raw) != status.st_size:
            raw = _read_on(descriptor, raw, cap)
        if len(raw) > cap:
            return NotRead(Reason.TOO_LARGE, is_failure=False, stat=seen, observed_ns=observed_ns)
        return FileRead(raw, seen, observed_ns)


def _stat_of(status: os.stat_result) -> FileStat:
    return FileStat(
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        fold_signed_64(status.st_ino),
        fold_signed_64(status.st_dev),
    )


def _read_on(descriptor: int, raw: bytes, cap: int) -> bytes:
    """The rest of a file that gave more or fewer bytes than its size said, up to one over the cap."""
    parts = [raw]
    total = len(raw)
    while total <= cap:
        part = os.read(descriptor, cap + 1 - total)
        if not part:
            break
        parts.append(part)
        total += len(part)
    return b"".join(parts)


def _not_opened(error: OSError) -> NotRead:
    if error.errno == errno.ENOENT:
        return NotRead(Reason.VANISHED, is_failure=True, detail="it was there when the folder was listed")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):  # a link, or a directory that became one
        return NotRead(Reason.SYMLINK, is_failure=False, observed_ns=time.time_ns())
    if error.errno == errno.ENXIO:  # a socket
        return NotRead(Reason.NOT_A_FILE, is_failure=False, observed_ns=time.time_ns())
    return NotRead(Reason.UNREADABLE, is_failure=True, detail=error.strerror or "")
