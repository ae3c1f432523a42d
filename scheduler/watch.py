"""What a watch knows between its passes: which paths to look at, and when. Pure: clock and disk are handed in.

An event means "look at this path", whatever it says has happened. More paths than are worth naming become their
folders, more folders become the root: memory is bounded, and nothing is forgotten.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

MOST_PATHS = 500  # of one root, named one by one
MOST_PARTS = 50  # folders, and paths that are gone: a run looks at each by itself
DEFAULT_DEBOUNCE_S = 2.0
LEAST_DEBOUNCE_S = 0.1
LONGEST_WAIT_DEBOUNCES = 5  # whoever never stops writing does not keep a pass waiting for ever
RESCAN_EVERY_S = 15 * 60.0
RESCAN_PARTLY_WATCHED_S = 60.0  # where some folders cannot be watched
RESCAN_SHARE = 10  # a rescan that takes long comes seldom: at most one tenth of the time is spent on it
FIRST_RETRY_S = 2.0
LONGEST_RETRY_S = 60.0

Cause = Literal["initial", "changes", "rescan"]


class WatchPass(NamedTuple):
    """What is to be looked at. A root among the paths, named exactly, is reconciled: absence means removal there."""

    cause: Cause
    paths: tuple[Path, ...]  # absolute


def is_gone(path: str) -> bool:
    """Whether there is nothing; what may not be looked at is there."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)  # noqa: PTH112, PTH114 - strings, of a hot path


class Disk(Struct, frozen=True):
    """The looks at the disk that deciding needs."""

    is_gone: Callable[[str], bool] = is_gone
    is_folder: Callable[[str], bool] = is_folder


class PendingChanges:
    """The paths that events have named since the last pass, by root."""

    def __init__(
        self,
        roots: Mapping[str, Sequence[str]],
        disk: Disk | None = None,
        *,
        most_paths: int = MOST_PATHS,
        most_parts: int = MOST_PARTS,
    ) -> None:
        """`roots`: what is watched, and the paths that a look at all of it names."""
        found = disk or Disk()
        self._roots = {
            root: _RootChanges(root, tuple(whole), found, most_paths, most_parts) for root, whole in roots.items()
        }

    def __bool__(self) -> bool:
        return any(changes.is_dirty for changes in self._roots.values())

    @property
    def held(self) -> int:
        """How many paths are kept in memory."""
        return sum(changes.held for changes in self._roots.values())

    def look_at(self, root: str, path: str) -> None:
        """An event has named a path below a root."""
        self._roots[root].look_at(path)

    def look_at_everything(self, root: str = "") -> None:
        """Events may have been lost, of one root or of all of them."""
        for name in (root,) if root else self._roots:
            self._roots[name].look_at_everything()

    def take(self) -> WatchPass:
        """What the next pass looks at; from here on new events count for the one after it."""
        is_whole = all(changes.is_whole for changes in self._roots.values())
        taken = [path for changes in self._roots.values() for path in changes.take()]
        return WatchPass("rescan" if is_whole else "changes", tuple(Path(path) for path in taken))

    def put_back(self, pass_: WatchPass) -> None:
        """A pass did not come about: its paths are looked at by the next one."""
        for path in map(str, pass_.paths):
            root = next((name for name in self._roots if path == name or _is_below(path, name)), None)
            if root is not None:
                self._roots[root].look_at(path)


class _RootChanges:
    def __init__(self, root: str, whole: tuple[str, ...], disk: Disk, most_paths: int, most_parts: int) -> None:
        self._root = root
        self._whole = whole
        self._disk = disk
        self._most_paths = most_paths
        self._most_parts = most_parts
        self._paths: set[str] = set()
        self._folders: set[str] = set()  # looked at as a whole; what is gone below them is named beside them
        self.is_whole = False

    @property
    def is_dirty(self) -> bool:
        return self.is_whole or bool(self._paths) or bool(self._folders)

    @property
    def held(self) -> int:
        return len(self._paths) + len(self._folders)

    def look_at(self, path: str) -> None:
        if self.is_whole or path in self._paths:
            return
        if path == self._root:
            self.look_at_everything()
            return
        if self._folders and _has_ancestor_in(path, self._folders) and not self._disk.is_gone(path):
            return  # a folder's pass meets what is there, and removes nothing
        self._paths.add(path)
        if len(self._paths) > self._most_paths:
            self._collapse()

    def look_at_everything(self) -> None:
        self.is_whole = True
        self._paths.clear()
        self._folders.clear()

    def take(self) -> list[str]:
        """The paths in order, none below another that covers it; the root alone where they are too many parts."""
        taken = list(self._whole) if self.is_whole else self._parts()
        self.is_whole = False
        self._paths.clear()
        self._folders.clear()
        return taken

    def _parts(self) -> list[str]:
        gone, there = self._split()
        folders = self._folders | {path for path in there if self._disk.is_folder(path)}
        folders = {path for path in folders if not _has_ancestor_in(path, folders)}
        if len(gone) + len(folders) > self._most_parts:
            return list(self._whole)
        files = {path for path in there if path not in folders and not _has_ancestor_in(path, folders)}
        return sorted(gone | folders | files)

    def _split(self) -> tuple[set[str], set[str]]:
        """Paths that are gone, without those below another one that is; and the others."""
        gone = {path for path in self._paths if self._disk.is_gone(path)}
        return {path for path in gone if not _has_ancestor_in(path, gone)}, self._paths - gone

    def _collapse(self) -> None:
        """Name the folders of what is there, and the root where those are too many."""
        gone, there = self._split()
        folders = self._folders | {os.path.dirname(path) for path in there}  # noqa: PTH120 - as above
        folders = {path for path in folders if not _has_ancestor_in(path, folders)}
        if len(gone) + len(folders) > self._most_parts or self._root in folders:
            self.look_at_everything()
        else:
            self._paths, self._folders = gone, folders


class PassTiming:
    """When the next pass is due. All times are of one monotonic clock, in seconds."""

    def __init__(self, now_s: float, *, debounce_s: float, rescan_every_s: float = RESCAN_EVERY_S) -> None:
        self._debounce_s = debounce_s
        self._rescan_every_s = rescan_every_s
        self._first_s: float | None = None  # event since the last pass began
        self._last_s = now_s
        self._not_before_s = now_s
        self._retry_s = 0.0
        self._rescanned_s = now_s  # when everything was last looked at
        self._rescan_took_s = 0.0

    def noticed(self, now_s: float) -> None:
        """An event has come."""
        self._last_s = now_s
        if self._first_s is None:
            self._first_s = now_s

    def wait_s(self, now_s: float) -> float | None:
        """Seconds until what is pending is looked at: 0.0 = now; None while nothing is pending."""
        if self._first_s is None:
            return None
        quiet_s = self._last_s + self._debounce_s
        latest_s = self._first_s + LONGEST_WAIT_DEBOUNCES * self._debounce_s
        return max(0.0, max(min(quiet_s, latest_s), self._not_before_s) - now_s)

    def rescan_wait_s(self, now_s: float, *, partly_watched: bool) -> float:
        """Seconds until everything is looked at, whatever was heard; sooner where not all can be watched."""
        every_s = RESCAN_PARTLY_WATCHED_S if partly_watched else self._rescan_every_s
        every_s = max(min(every_s, self._rescan_every_s), RESCAN_SHARE * self._rescan_took_s)
        return max(0.0, max(self._rescanned_s + every_s, self._not_before_s) - now_s)

    def began(self) -> None:
        """A pass has begun: what comes from now on is looked at by exactly one more."""
        self._first_s = None

    def ended(self, began_s: float, now_s: float, *, was_rescan: bool) -> None:
        self._retry_s = 0.0
        if was_rescan:
            self._rescanned_s, self._rescan_took_s = now_s, now_s - began_s

    def failed(self, now_s: float) -> float:
        """A pass did not come about; seconds until it is tried again, more from time to time."""
        self._retry_s = min(LONGEST_RETRY_S, max(FIRST_RETRY_S, 2 * self._retry_s))
        self._not_before_s = now_s + self._retry_s
        self._first_s = self._first_s if self._first_s is not None else now_s
        return self._retry_s


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _has_ancestor_in(path: str, folders: set[str] | Sequence[str]) -> bool:
    """Whether one of the folders lies above the path."""
    above = os.path.dirname(path)  # noqa: PTH120 - as above
    while above != path:
        if above in folders:
            return True
        path, above = above, os.path.dirname(above)  # noqa: PTH120
    return False
