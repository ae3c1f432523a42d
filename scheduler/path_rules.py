"""What leaves one path out of a walk: the same rules as in scheduler.walk, asked about one file, with their names.

A test walks whole trees and compares: a file that the walk meets is left out by nothing here, and the other way round.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from domain.files import Reason
from domain.keys import is_utf8
from domain.layout import DATABASE_NAME, LOCK_NAME, STATE_NAME, is_home
from scheduler.ignore_rules import IGNORE_FILE_NAME, IgnoreScope, read_ignore_file
from scheduler.walk import WalkRules

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

RuleKind = Literal[
    "extension",  # the name does not end in one of the root's
    "hidden_folder",  # a folder whose name begins with a dot
    "exclude_dirs",  # a folder of such a name
    "index_folder",  # a folder that holds an index
    "include",  # the globs name other files
    "exclude",
    "ignore_file",
    "name",  # is no UTF-8
    "symlink",
    "not_a_file",
    "named_files",  # the root is of single files, and this is none of them
]


class LeftOut(NamedTuple):
    """A rule, and what it leaves out: the file itself or a folder above it."""

    kind: RuleKind
    reason: Reason
    path: str  # below the root; a folder ends in `/`
    pattern: str = ""  # as it is written, where one decides
    source: str = ""  # the ignore file that it stands in; "" = the configuration, or a rule of the program's own


class _Scope(NamedTuple):
    """The ignore rules of a folder, and where each of them stands."""

    rules: IgnoreScope
    sources: tuple[str, ...]

    def within(self, root: Path, relative: str) -> "_Scope":
        if not os.path.lexists(root / relative / IGNORE_FILE_NAME):
            return self
        lines = read_ignore_file(root / relative, lambda _: None)
        return _Scope(self.rules.within(relative, lines), (*self.sources, str(root / relative / IGNORE_FILE_NAME)))

    def leaving_out(self, path: str) -> LeftOut | None:
        """The innermost file that speaks of the path decides, and in it the last line that does."""
        for (prefix, spec), source in zip(reversed(self.rules.rules), reversed(self.sources), strict=True):
            found = spec.check_file(path[len(prefix) :])
            if found.include is None:
                continue
            if not found.include:
                return None
            pattern = _written(spec, found.index)
            return LeftOut("ignore_file" if source else "exclude", Reason.EXCLUDED, path, pattern, source)
        return None


def what_leaves_out(rules: WalkRules, relative: str, *, is_folder: bool = False) -> LeftOut | None:
    """What keeps a walk of the root from taking this file in, or this folder from being entered; None where nothing
    does. The path is posix, below the root, without a `/` at its end."""
    scope = _Scope(rules.scope, ("",) * len(rules.scope.rules))
    *folders, name = relative.split("/")
    if is_folder:
        folders, name = [*folders, name], ""
    above = ""
    if _holds_an_index(rules.root):
        return LeftOut("index_folder", Reason.EXCLUDED, "")
    for folder in folders:
        scope = scope.within(rules.root, above)
        above = f"{above}{folder}/"
        found = _folder_left_out(rules, scope, folder, above)
        if found is not None:
            return found
    return None if is_folder else _file_left_out(rules, scope.within(rules.root, above), name, relative)


def _folder_left_out(rules: WalkRules, scope: _Scope, name: str, relative: str) -> LeftOut | None:
    path = rules.root / relative
    if stat.S_ISLNK(_mode(path)):
        return LeftOut("symlink", Reason.SYMLINK, relative)
    if name.startswith("."):
        return LeftOut("hidden_folder", Reason.EXCLUDED, relative)
    if name in rules.exclude_dirs:
        return LeftOut("exclude_dirs", Reason.EXCLUDED, relative, name)
    if not is_utf8(name):
        return LeftOut("name", Reason.NAME_NOT_UTF8, relative)
    if path == rules.home or _holds_an_index(path):
        return LeftOut("index_folder", Reason.EXCLUDED, relative)
    return scope.leaving_out(relative)


def _file_left_out(rules: WalkRules, scope: _Scope, name: str, relative: str) -> LeftOut | None:
    if not name.lower().endswith(rules.extensions):
        return LeftOut("extension", Reason.EXCLUDED, relative, ", ".join(rules.extensions))
    if not is_utf8(relative):
        return LeftOut("name", Reason.NAME_NOT_UTF8, relative)
    found = scope.leaving_out(relative)
    if found is not None:
        return found
    if not scope.rules.takes_in(relative):
        return LeftOut("include", Reason.EXCLUDED, relative, ", ".join(_all_written(scope.rules.include)))
    mode = _mode(rules.root / relative)
    if stat.S_ISLNK(mode):
        return LeftOut("symlink", Reason.SYMLINK, relative)
    if mode and not stat.S_ISREG(mode):
        return LeftOut("not_a_file", Reason.NOT_A_FILE, relative)
    return None


def _written(spec: "GitIgnoreSpec", index: int | None) -> str:
    return "" if index is None else _all_written(spec)[index]


def _all_written(spec: "GitIgnoreSpec | None") -> Sequence[str]:
    return [str(getattr(pattern, "pattern", "")) for pattern in spec.patterns] if spec is not None else []


def _holds_an_index(folder: Path) -> bool:
    names = (LOCK_NAME, DATABASE_NAME, STATE_NAME)
    return is_home({name for name in names if os.path.lexists(folder / name)})


def _mode(path: Path) -> int:
    """0 where there is nothing, or nothing that may be looked at."""
    try:
        return path.lstat().st_mode
    except (OSError, ValueError):
        return 0
