"""Finished pages on their way from a worker process to the writer: one file a page, written aside and renamed.

The queue carries only the name: the same bytes through Redis cost three times as much. A spool file that is gone
means that the page is done, or will be planned again (R35); nothing here is synced.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from domain.decoding import UNDECODABLE
from domain.errors import KnowledgeError
from store.files import storage_errors, write_private
from workers.checking import FinishedPage

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(FinishedPage)


class SpoolError(ValueError):
    """A spool file that is no finished page."""


def spool_name(run: int, page: int, attempt: int) -> str:
    return f"{run}-{page}-{attempt}.page"


def write_page(
    directory: Path, name: str, page: FinishedPage, require_room: Callable[[Path, int], None] | None = None
) -> None:
    """Raises DiskFullError where there is no room for it, and StorageError when the disk says no otherwise.

    `require_room(path, bytes)` may refuse it before.
    """
    aside = directory / f"{name}.part"
    encoded = _encoder.encode(page)
    if require_room is not None:
        require_room(aside, len(encoded))
    try:
        with storage_errors(aside, "write"):
            write_private(aside, encoded)
            aside.replace(directory / name)
    except KnowledgeError:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise


def read_page(directory: Path, name: str) -> FinishedPage | None:
    """The page, or None where the file is gone. Raises SpoolError for anything else than a finished page."""
    try:
        raw = (directory / name).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return _decoder.decode(raw)
    except UNDECODABLE as error:
        raise SpoolError(f"spool file {name} holds no finished page") from error


def drop_page(directory: Path, name: str) -> None:
    (directory / name).unlink(missing_ok=True)
