"""The only place that makes or changes files of a base's home directory.

A store file is never opened and closed here while SQLite may have it open in this process: closing any
descriptor of a file drops every POSIX lock the process holds on it, SQLite's own included
(https://www.sqlite.org/howtocorrupt.html, section 2.2). Before SQLite opens, files are created; afterwards only
path calls (lstat, chmod) are made.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from domain.errors import DiskFullError, StorageError, UnsafePlaceError
from domain.layout import BaseLayout, sidecars
from store.filesystems import file_system_kind, is_unsafe

PRIVATE_FILE_MODE = 0o600
PRIVATE_DIRECTORY_MODE = 0o700
CACHEDIR_TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This directory holds a search index made by `knowledge`; it can be made again from the files.\n"
    "# About cache directory tags: https://bford.info/cachedir/\n"
)


@contextmanager
def storage_errors(path: Path, doing: str) -> Iterator[None]:
    """The system's refusal to touch a store file, as ours."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"no space left to {doing} {path}", hint="free some space, then run the command again"
            ) from error
        raise StorageError(
            f"cannot {doing} {path}: {error.strerror or error}",
            hint="check who owns the directory and its files, and that the disk is not read-only",
        ) from error


def lstat_or_none(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise UnsafePlaceError(f"a part of {path} is not a directory", hint="choose another place") from error
    except PermissionError as error:
        raise StorageError(f"cannot look at {path}: permission denied", hint="check who owns it") from error
    except OSError as error:  # a name that is too long, a circle of links
        raise UnsafePlaceError(f"cannot look at {path}: {error.strerror}", hint="choose another place") from error


def refuse_unsafe(path: Path) -> os.stat_result | None:
    """What lstat says of a store file, or None where there is none.

    Raises UnsafePlaceError for a symlink or anything that is not a regular file (S0-07).
    """
    status = lstat_or_none(path)
    if status is None:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise UnsafePlaceError(f"{path} is a symbolic link", hint="remove the link; a store's files are its own")
    if not stat.S_ISREG(status.st_mode):
        raise UnsafePlaceError(f"{path} is not a regular file", hint="move it away or choose another directory")
    return status


def make_home(layout: BaseLayout, *, allow_network_filesystem: bool = False) -> None:
    """Make the home directory with what belongs into it: 0700, a .gitignore of `*` and a CACHEDIR.TAG.

    Raises UnsafePlaceError for a link, for what is no directory, and for a new store on a network file system;
    StorageError and DiskFullError where the system refuses.
    """
    if not allow_network_filesystem and lstat_or_none(layout.database) is None:
        refuse_network_filesystem(layout.home)
    try:
        with storage_errors(layout.home, "make"):
            layout.home.mkdir(mode=PRIVATE_DIRECTORY_MODE, parents=True, exist_ok=True)
            status = layout.home.lstat()
    except StorageError as error:
        if isinstance(error.__cause__, FileExistsError | NotADirectoryError):
            raise UnsafePlaceError(f"{layout.home} is not a directory", hint="choose another directory") from error
        raise
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafePlaceError(
            f"{layout.home} is a symbolic link", hint="name the directory itself: links are refused here"
        )
    with storage_errors(layout.home, "make private"):
        if status.st_mode & 0o077:
            layout.home.chmod(PRIVATE_DIRECTORY_MODE)
    for path, text in ((layout.gitignore, "*\n"), (layout.cachedir_tag, CACHEDIR_TAG_TEXT)):
        with storage_errors(path, "write"):
            _write_once(path, text)


def refuse_network_filesystem(path: Path) -> None:
    """Raise UnsafePlaceError where SQLite's locks and shared memory are not to be relied on (P30)."""
    kind = file_system_kind(path)
    if is_unsafe(kind):
        raise UnsafePlaceError(
            f"{path} lies on a network or shared file system ({kind}), where an index can be damaged",
            hint="set `directory` to a local disk; `allow_network_filesystem: true` takes the risk",
        )


def _write_once(path: Path, text: str) -> None:
    """Write a small file where there is none, and again where a crash has cut it short; any other content stays."""
    if _is_other_content(path, text):
        return
    write_private(path, text.encode())


def _is_other_content(path: Path, text: str) -> bool:
    """Whether there is something else than nothing or a beginning of `text`."""
    status = lstat_or_none(path)
    if status is None:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_size >= len(text.encode()):
        return True
    return not text.encode().startswith(path.read_bytes())


def write_private(path: Path, content: bytes) -> None:
    """Write a file of ours that is none of SQLite's: 0600 from its first instant, whatever the umask; a link is
    refused. Raises OSError."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    with os.fdopen(os.open(path, flags, PRIVATE_FILE_MODE), "wb") as file:
        file.write(content)


def create_private(path: Path) -> bool:
    """Make an empty file with mode 0600 before SQLite opens it, and say whether it was made now (S0-05)."""
    status = refuse_unsafe(path)
    if status is not None:
        _make_private(path, status)
        return False
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    with storage_errors(path, "make"):
        try:
            os.close(os.open(path, flags, PRIVATE_FILE_MODE))
        except FileExistsError:
            refuse_unsafe(path)
            return False
    return True


def _make_private(path: Path, status: os.stat_result) -> None:
    if status.st_mode & 0o077:
        with storage_errors(path, "make private"):
            path.chmod(PRIVATE_FILE_MODE)


def reassert_private(database: Path) -> None:
    """Refuse symlinks and set mode 0600 on the database and its sidecars, by path calls alone (S0-06)."""
    for path in sidecars(database):
        status = refuse_unsafe(path)
        if status is not None:
            _make_private(path, status)


def refuse_unsafe_database(database: Path) -> None:
    """`refuse_unsafe` for a database and its sidecars: SQLite would follow a link at any of the three (S0-07)."""
    for path in sidecars(database):
        refuse_unsafe(path)


def rollback_journal(database: Path) -> Path:
    return database.with_name(f"{database.name}-journal")


def is_being_made(database: Path) -> bool:
    """Whether a rollback journal lies beside a database: these have one only while their first page is laid out."""
    return os.path.lexists(rollback_journal(database))


def remove_database(database: Path) -> None:
    """Remove a database and its sidecars. No connection to it may be open in this process.

    The database goes first: a sidecar that is left behind by a crash is dropped by SQLite when it finds an empty
    file, while a database without its WAL would be read in a state that never was.
    """
    paths = (*sidecars(database), rollback_journal(database))
    for path in paths:
        refuse_unsafe(path)
    for path in paths:
        with storage_errors(path, "remove"):
            path.unlink(missing_ok=True)


def inodes(layout: BaseLayout) -> tuple[int, int]:
    """Which files state.db and knowledge.db are now; 0 for one that is not there."""
    state, database = (lstat_or_none(path) for path in (layout.state, layout.database))
    return state.st_ino if state is not None else 0, database.st_ino if database is not None else 0


def make_spool(layout: BaseLayout) -> Path:
    """The spool directory, 0700."""
    layout.spool.mkdir(mode=PRIVATE_DIRECTORY_MODE, exist_ok=True)
    return layout.spool


def make_calls(layout: BaseLayout) -> Path:
    """The directory of what is asked of the writer, 0700."""
    layout.calls.mkdir(mode=PRIVATE_DIRECTORY_MODE, exist_ok=True)
    return layout.calls


def clear_spool(layout: BaseLayout) -> int:
    """Drop what earlier runs left in the spool; the files are read again where they matter."""
    if lstat_or_none(layout.spool) is None:
        return 0
    left = [path for path in layout.spool.iterdir() if path.suffix in (".page", ".part")]
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def free_bytes(directory: Path) -> int:
    """Bytes that an ordinary user may still write on the file system of a directory."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize
