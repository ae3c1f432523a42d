"""A piece of the disk that a base holds for its operator: where a full disk takes no write any more it is given up, so
that a run can be ended and documents be removed all the same, and it is taken again when there is room (P23)."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from domain.errors import KnowledgeError
from domain.layout import BaseLayout
from store.files import PRIVATE_FILE_MODE, free_bytes, lstat_or_none, storage_errors

BALLAST_BYTES = 1024 * 1024  # a wish takes a page or two; a removal some for each document
_BLOCK_BYTES = 64 * 1024


def take_ballast(layout: BaseLayout) -> None:
    """Hold it, where it is not held. Raises DiskFullError, StorageError; nothing is left then."""
    if lstat_or_none(layout.ballast) is not None:
        return
    aside = layout.ballast.with_name(f"{layout.ballast.name}.part")
    try:
        with storage_errors(aside, "write"):
            descriptor = os.open(aside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
            try:
                _allocate(descriptor)
            finally:
                os.close(descriptor)
            aside.replace(layout.ballast)
    except KnowledgeError:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def give_up_ballast(layout: BaseLayout) -> bool:
    """Whether there is more room now: it was held, and it was needed."""
    try:
        if free_bytes(layout.home) > BALLAST_BYTES:
            return False
        layout.ballast.unlink()
    except OSError:
        return False
    return True


def withheld_bytes(layout: BaseLayout) -> int:
    """How much of the free space is the operator's: all of the ballast where it was given up, nothing where it is held.
    Whatever a service writes by itself leaves it alone, or what was given up for a removal would be a page's."""
    return 0 if lstat_or_none(layout.ballast) is not None else BALLAST_BYTES


def require_room(layout: BaseLayout, path: Path, size_bytes: int) -> None:
    """For a file that a service writes by itself. Raises DiskFullError where it would take the operator's room."""
    with storage_errors(path, "write"):
        if (withheld := withheld_bytes(layout)) and free_bytes(layout.home) < withheld + size_bytes:
            raise OSError(errno.ENOSPC, "what is free is kept for the operator")


def _allocate(descriptor: int) -> None:
    """Bytes that a file system can neither leave out nor press together, where it cannot be asked for room itself."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, BALLAST_BYTES)
        return
    for _ in range(BALLAST_BYTES // _BLOCK_BYTES):
        os.write(descriptor, os.urandom(_BLOCK_BYTES))
