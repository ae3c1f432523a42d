"""Roots of which this process can read no file at all: who asks, and to whom they belong.

Asked only when a run or the doctor met something unreadable: the look ends at the first file that can be read.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from domain.files import Reason

if TYPE_CHECKING:
    from app.planning import RootRun

_REFUSED = (errno.EACCES, errno.EPERM)
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")  # of Docker, of Podman
_EFFECTIVE = os.access in os.supports_effective_ids


class UnreadableRoot(Struct, frozen=True):
    """A root without a readable file, and the first thing in it that was refused."""

    name: str
    path: str
    place: str  # the refused file or folder
    uid: int  # who asked
    gid: int
    owner_uid: int  # whose `place` is
    owner_gid: int
    mode: int  # the permission bits of `place`
    in_container: bool


def unreadable_of_run(roots: Sequence["RootRun"], reasons: Iterable[str]) -> tuple[UnreadableRoot, ...]:
    """Those of a run's roots of which nothing can be read. `reasons`: why files failed or were not tried again; unless
    one of them is `unreadable`, or a folder stayed unread, nothing is looked at. Roots of single files are left out.
    """
    if Reason.UNREADABLE not in set(reasons) and not any(root.report.problems for root in roots):
        return ()
    whole = [root.scope for root in roots if not root.scope.record.single_files]
    found = (unreadable_root(it.record.name, Path(it.record.path), it.settings.extensions) for it in whole)
    return tuple(root for root in found if root is not None)


def unreadable_root(name: str, path: Path, extensions: tuple[str, ...]) -> UnreadableRoot | None:
    """None where a file can be read, where nothing is refused, and where the system knows no owners."""
    if not hasattr(os, "geteuid"):
        return None
    place = _first_refused(str(path), extensions)
    if place is None:
        return None
    try:
        status = os.lstat(place)
    except OSError:  # gone meanwhile, or hidden: whose the root is says enough
        try:
            status, place = os.stat(path), str(path)  # noqa: PTH116 - beside the other look at the same thing
        except OSError:
            return None
    return UnreadableRoot(
        name=name,
        path=str(path),
        place=place,
        uid=os.geteuid(),
        gid=os.getegid(),
        owner_uid=status.st_uid,
        owner_gid=status.st_gid,
        mode=stat.S_IMODE(status.st_mode),
        in_container=any(map(os.path.exists, _CONTAINER_MARKS)),
    )


def _first_refused(path: str, extensions: tuple[str, ...]) -> str | None:
    """The first refused place, where no file that would be indexed can be read; else None."""
    refused: list[str] = []
    for place, can_be_read in _looks(path, extensions):
        if can_be_read:
            return None
        if not refused:
            refused.append(place)
    return refused[0] if refused else None


def _looks(path: str, extensions: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Files with whether they can be read, and the folders that cannot be looked into. Links are not followed."""
    folders = [path]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if error.errno in _REFUSED:
                yield folder, False
            continue
        if listed and not os.access(folder, os.X_OK, effective_ids=_EFFECTIVE):  # may be listed, but not entered
            yield folder, False
            continue
        folders += [entry.path for entry in reversed(listed) if entry.is_dir(follow_symlinks=False)]
        for entry in listed:
            if entry.name.lower().endswith(extensions) and entry.is_file(follow_symlinks=False):
                yield entry.path, os.access(entry.path, os.R_OK, effective_ids=_EFFECTIVE)
