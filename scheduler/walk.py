"""The walk over a root: a stream of its files in key order, with what stat says of each. Reads names, never text.

Entries of a directory are sorted with `/` appended to directory names, so the stream's order is the byte-wise order
of the keys, and it can be merged with the stored keys without holding either. Memory is bounded by the largest
directory on the way down.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from domain.files import FileStat, Reason, fold_signed_64
from domain.keys import is_utf8, printable
from domain.layout import DATABASE_NAME, LOCK_NAME, STATE_NAME, is_home
from scheduler.ignore_rules import IGNORE_FILE_NAME, IgnoreScope, read_ignore_file

_NO_STAT = FileStat(0, 0, 0, 0, 0)
_FILE_KIND, _REGULAR, _LINK = 0o170000, 0o100000, 0o120000
_SIGNED_MAX = 2**63 - 1


class WalkedFile(Struct, frozen=True, gc=False):
    """A file with an indexed extension. `skip` says why the walk itself leaves it out, else None."""

    key: str
    stat: FileStat
    skip: Reason | None


class WalkRules(Struct, frozen=True):
    """What of a root is met at all."""

    root: Path  # absolute, links resolved
    prefix: str  # `<root name>/`
    extensions: tuple[str, ...]  # lower case, with the dot
    exclude_dirs: frozenset[str]
    home: Path  # the base's own directory, skipped wherever it lies
    scope: IgnoreScope


def _unheeded() -> None:
    """Nobody ends this walk."""


class WalkReport(Struct):
    """What the walk met beside files; filled while it goes on. Notes name what was left out for a reason of its own."""

    directories: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)  # (key of a directory, what the system said)
    notes: list[str] = field(default_factory=list)
    heed: Callable[[], None] = _unheeded  # called at each directory; what it raises ends the walk

    @property
    def ended_well(self) -> bool:
        """Whether absence means absence: no directory stayed unread."""
        return not self.problems


class _Level(NamedTuple):
    """A directory on the way down, with its entries still to come."""

    entries: Iterator[tuple[str, "os.DirEntry[str]"]]
    relative: str  # "" or ends in `/`
    key_prefix: str
    scope: IgnoreScope
    is_open: bool  # no rule leaves a file out here: asked once a directory, not once a file
    identity: tuple[int, int]  # device, inode: a mount that repeats an ancestor is not entered


def walk(rules: WalkRules, report: WalkReport, *, start: str = "") -> Iterator[WalkedFile]:
    """Files below the root, or below `start` (a directory of it, posix, ending in `/`), in key order.

    A directory that cannot be read is a problem of the report, and the walk goes on; a directory that vanished
    meanwhile is empty.
    """
    scope = _scope_down_to(rules, report, start) if _is_in_place(rules, report) else None
    if scope is None:
        return
    first = _enter(rules, report, rules.root / start, start, scope, is_start=True)
    stack = [first] if first is not None else []
    while stack:
        entered = None
        for name, entry in stack[-1].entries:
            if name[-1] != "/":
                walked = _file(rules, report, stack[-1], name, entry)
                if walked is not None:
                    yield walked
            elif (entered := _descend(rules, report, stack, name, entry)) is not None:
                break
        if entered is not None:
            stack.append(entered)
        else:
            stack.pop()


def walk_files(rules: WalkRules, report: WalkReport, relative_paths: tuple[str, ...]) -> Iterator[WalkedFile]:
    """The named files of a root, in key order; those that are not there are not met, those that a walk from the root
    would not meet are skipped."""
    if not _is_in_place(rules, report):
        return
    for relative in sorted(relative_paths):
        directory, _, name = relative.rpartition("/")
        try:
            status = (rules.root / relative).lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            report.problems.append((rules.prefix + printable(relative), error.strerror or "unreadable"))
            continue
        if not is_utf8(relative):
            yield WalkedFile(rules.prefix + printable(relative), _NO_STAT, Reason.NAME_NOT_UTF8)
            continue
        scope = _scope_down_to(rules, report, f"{directory}/" if directory else "", up_to_end=True)
        skip: Reason | None = Reason.EXCLUDED
        if scope is not None and name.lower().endswith(rules.extensions):
            skip = _skip_of(status.st_mode, scope, relative)
        yield WalkedFile(rules.prefix + relative, file_stat(status), skip)


def file_stat(status: os.stat_result) -> FileStat:
    inode, device = status.st_ino, status.st_dev
    if inode > _SIGNED_MAX or device > _SIGNED_MAX:
        inode, device = fold_signed_64(inode), fold_signed_64(device)
    return FileStat(status.st_size, status.st_mtime_ns, status.st_ctime_ns, inode, device)


def _skip_of(mode: int, scope: IgnoreScope, relative: str) -> Reason | None:
    if not scope.is_open and (scope.leaves_out(relative) or not scope.takes_in(relative)):
        return Reason.EXCLUDED
    kind = mode & _FILE_KIND
    if kind == _LINK:
        return Reason.SYMLINK
    return None if kind == _REGULAR else Reason.NOT_A_FILE


def _is_in_place(rules: WalkRules, report: WalkReport) -> bool:
    """Whether the root is the folder that was recorded: one that is gone, or now reached over a link, is a problem."""
    if os.path.realpath(rules.root) != str(rules.root):
        report.problems.append((rules.prefix, "a symbolic link stands in the way to it now"))
        return False
    if not os.path.isdir(rules.root):  # noqa: PTH112 - Path.is_dir raises where a folder above may not be looked into
        report.problems.append((rules.prefix, "the folder is not there"))
        return False
    return True


def _scope_down_to(rules: WalkRules, report: WalkReport, start: str, *, up_to_end: bool = False) -> IgnoreScope | None:
    """The ignore rules of the directories above `start`, and of itself with `up_to_end`; None, with a note, where a
    rule leaves one of them out: a part of a root is met as a walk from the root would meet it."""
    scope = rules.scope
    relative = ""
    for part in start.split("/")[:-1]:
        scope = _scope_within(rules, report, relative, scope)
        relative = f"{relative}{part}/"
        if _is_left_out(rules, scope, part, relative) or _holds_a_store(rules.root / relative):
            report.notes.append(f"{rules.prefix}{printable(relative)}: left out by a rule")
            return None
    return _scope_within(rules, report, relative, scope) if up_to_end else scope


def _scope_within(rules: WalkRules, report: WalkReport, relative: str, scope: IgnoreScope) -> IgnoreScope:
    if not os.path.lexists(rules.root / relative / IGNORE_FILE_NAME):
        return scope
    return scope.within(relative, read_ignore_file(rules.root / relative, report.notes.append))


def _is_left_out(rules: WalkRules, scope: IgnoreScope, name: str, relative: str) -> bool:
    """Whether a rule leaves a sub-directory out (S0-14..16)."""
    return (
        name[0] == "."
        or name in rules.exclude_dirs
        or rules.root / relative == rules.home
        or not is_utf8(name)
        or (not scope.is_open and scope.leaves_out(relative))
    )


def _holds_a_store(directory: Path) -> bool:
    names = (LOCK_NAME, DATABASE_NAME, STATE_NAME)
    return is_home({name for name in names if os.path.lexists(directory / name)})


def _enter(
    rules: WalkRules,
    report: WalkReport,
    path: Path | str,
    relative: str,
    scope: IgnoreScope,
    *,
    is_start: bool,
) -> _Level | None:
    """A directory's entries in key order, or None where there is nothing to walk."""
    report.heed()
    try:
        with os.scandir(path) as listing:
            entries = [(e.name + "/" if e.is_dir(follow_symlinks=False) else e.name, e) for e in listing]
        status = Path(path).lstat()
    except OSError as error:
        if is_start or error.errno not in (errno.ENOENT, errno.ENOTDIR):
            report.problems.append((rules.prefix + relative, error.strerror or "unreadable"))
        return None
    if stat.S_ISLNK(status.st_mode):  # it has become one since it was met: what was listed is not ours
        return None
    report.directories += 1
    names = {name for name, _ in entries}
    if is_home(names):
        return None
    if IGNORE_FILE_NAME in names:
        scope = scope.within(relative, read_ignore_file(Path(path), report.notes.append))
    entries.sort()
    identity = (status.st_dev, status.st_ino)
    return _Level(iter(entries), relative, rules.prefix + relative, scope, scope.is_open, identity)


def _descend(
    rules: WalkRules, report: WalkReport, stack: list[_Level], name: str, entry: "os.DirEntry[str]"
) -> _Level | None:
    """Enter a sub-directory, unless a rule leaves it out."""
    level = stack[-1]
    relative = level.relative + name
    if _is_left_out(rules, level.scope, name[:-1], relative):
        if not is_utf8(name):
            report.notes.append(f"{rules.prefix}{printable(relative)}: its name is no UTF-8, not entered")
        return None
    below = _enter(rules, report, entry.path, relative, level.scope, is_start=False)
    if below is not None and any(below.identity == ancestor.identity for ancestor in stack):
        report.notes.append(f"{rules.prefix}{relative}: the same directory again, not entered")
        return None
    return below


def _file(
    rules: WalkRules, report: WalkReport, level: _Level, name: str, entry: "os.DirEntry[str]"
) -> WalkedFile | None:
    """What is met of one entry that is no directory. The hot path of a run that changes nothing."""
    if not name.endswith(rules.extensions) and not name.lower().endswith(rules.extensions):
        return None
    if not name.isascii() and not is_utf8(name):
        return WalkedFile(printable(level.key_prefix + name), _NO_STAT, Reason.NAME_NOT_UTF8)
    try:
        status = entry.stat(follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):  # vanished since the directory was read: not met
        return None
    except OSError as error:  # a directory that may be listed, but not entered: absence would mean nothing
        problem = (level.key_prefix, error.strerror or "unreadable")
        if problem not in report.problems[-1:]:
            report.problems.append(problem)
        return None
    skip = None
    if status.st_mode & _FILE_KIND != _REGULAR or not level.is_open:
        skip = _skip_of(status.st_mode, level.scope, level.relative + name)
    return WalkedFile(level.key_prefix + name, file_stat(status), skip)
