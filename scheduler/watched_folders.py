"""Which folders of a root are watched, and which names in them are worth a look: what a walk would meet."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from domain.keys import is_utf8
from domain.layout import is_home
from scheduler.ignore_rules import IGNORE_FILE_NAME, IgnoreScope, read_ignore_file, scope_of_root


class WatchedRoot(Struct, frozen=True):
    """A root, or the part of it that is watched."""

    path: str  # absolute, links resolved: the folder of the root
    home: str  # the base's own directory: never watched
    extensions: tuple[str, ...]  # lower case, with the dot
    exclude_dirs: frozenset[str] = frozenset()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    start: str = ""  # a folder below it, ending in `/`: only that is watched
    files: tuple[str, ...] = ()  # posix paths below it: only these, over the folders that hold them

    @property
    def top(self) -> str:
        """What a pass over all that is watched of it looks at."""
        return os.path.normpath(os.path.join(self.path, self.start))  # noqa: PTH118 - strings: keys of tables

    def tops(self) -> tuple[str, ...]:
        """The same as paths of their own: the named files, or the folder."""
        return tuple(f"{self.path}/{name}" for name in self.files) or (self.top,)


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """One folder; `relative` is "" or ends in `/`. Not a struct: they are compared without the scope."""

    root: WatchedRoot
    relative: str
    scope: IgnoreScope = field(compare=False)

    @property
    def path(self) -> str:
        return f"{self.root.path}/{self.relative}".rstrip("/")


def first_folders(root: WatchedRoot) -> Iterator[WatchedFolder]:
    """Where watching a root begins: its folder, the part of it, or the folders of its files."""
    if root.files:
        parts = {name.rpartition("/")[0] for name in root.files}
        starts = sorted(f"{part}/" if part else "" for part in parts)
    else:
        starts = [root.start]
    for start in starts:
        scope = scope_of_root(root.include, root.exclude)
        relative = ""
        for part in start.split("/")[:-1]:
            scope = _within(root, relative, scope)
            relative = f"{relative}{part}/"
        yield WatchedFolder(root, relative, scope)


def folders_below(folder: WatchedFolder) -> list[WatchedFolder] | None:
    """Its folders that a walk would enter; None where it is none to be watched: it holds an index, or is gone."""
    if folder.root.files:
        return []
    try:
        with os.scandir(folder.path) as listing:
            entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
    except OSError:
        return None
    if is_home({name for name, _ in entries}):
        return None
    scope = _within(folder.root, folder.relative, folder.scope)
    below = (_below(folder.root, f"{folder.relative}{name}/", name, scope) for name, is_dir in entries if is_dir)
    return [found for found in below if found is not None]


def folder_in(folder: WatchedFolder, name: str) -> WatchedFolder | None:
    """The folder of this name in it; None where a rule leaves it out."""
    if folder.root.files:
        return None
    scope = _within(folder.root, folder.relative, folder.scope)
    return _below(folder.root, f"{folder.relative}{name}/", name, scope)


def is_worth_a_look(folder: WatchedFolder, name: str) -> bool:
    """Whether a file of this name may be a document."""
    if folder.root.files:
        return f"{folder.relative}{name}" in folder.root.files
    return name.lower().endswith(folder.root.extensions)


def leads_out(root: WatchedRoot, relative: str) -> bool:
    """Whether a folder on the way to this path is one that is never entered; rules of ignore files apart."""
    folders = relative.split("/")[:-1]
    return any(part[:1] == "." or part in root.exclude_dirs for part in folders)


def _below(root: WatchedRoot, relative: str, name: str, scope: IgnoreScope) -> WatchedFolder | None:
    """As app's walk decides (scheduler.walk)."""
    if name[0] == "." or name in root.exclude_dirs or (not name.isprintable() and not is_utf8(name)):
        return None
    if f"{root.path}/{relative}" == f"{root.home}/" or (not scope.is_open and scope.leaves_out(relative)):
        return None
    return WatchedFolder(root, relative, scope)


def _within(root: WatchedRoot, relative: str, scope: IgnoreScope) -> IgnoreScope:
    folder = Path(root.path, relative)
    if not os.path.lexists(folder / IGNORE_FILE_NAME):
        return scope
    return scope.within(relative, read_ignore_file(folder, lambda _problem: None))
