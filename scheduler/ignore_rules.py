"""Which files a root leaves out: include and exclude globs and `.knowledgeignore` files, in gitignore syntax."""

import errno
import os
import re
import stat
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from domain.errors import ConfigurationError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE_NAME = ".knowledgeignore"
IGNORE_FILE_CAP_BYTES = 64 * 1024  # every line of it is asked about every path

_FILTERS = threading.Lock()  # the filters of warnings are those of all threads

Verdict = bool | None
"""True = left out, False = named again by a `!` line, None = no line speaks of it."""


class IgnoreScope(Struct, frozen=True):
    """The rules of one directory and of those above it. Paths are relative to the root, directories end in `/`."""

    rules: tuple[tuple[str, "GitIgnoreSpec"], ...] = ()  # (directory prefix, its lines), outermost first
    include: "GitIgnoreSpec | None" = None

    @property
    def is_open(self) -> bool:
        """Whether every file is taken in."""
        return not self.rules and self.include is None

    def leaves_out(self, path: str) -> bool:
        """Whether a file or directory is left out; the innermost file that speaks of it decides."""
        for prefix, spec in reversed(self.rules):
            verdict: Verdict = spec.check_file(path[len(prefix) :]).include
            if verdict is not None:
                return verdict
        return False

    def takes_in(self, path: str) -> bool:
        """Whether the include globs, if any, name this file."""
        return self.include is None or self.include.match_file(path)

    def within(self, prefix: str, lines: Sequence[str]) -> "IgnoreScope":
        """The scope of a directory that holds an ignore file."""
        return IgnoreScope((*self.rules, (prefix, _spec(lines))), self.include)


def scope_of_root(include: Sequence[str], exclude: Sequence[str]) -> IgnoreScope:
    """Raises ConfigurationError for a pattern that gitignore syntax does not know."""
    for pattern in (*include, *exclude):
        if not _are_patterns([pattern]):
            raise ConfigurationError(
                f"the pattern {pattern!r} cannot be read", hint="write include and exclude in gitignore syntax"
            )
    rules = (("", _spec(exclude)),) if exclude else ()
    return IgnoreScope(rules, _spec(include) if include else None)


def read_ignore_file(directory: Path, report: Callable[[str], None]) -> tuple[str, ...]:
    """The lines of a directory's ignore file; what cannot be read or is far too large is reported and left out."""
    path = directory / IGNORE_FILE_NAME
    try:
        raw = _read_regular(path)
    except OSError as error:
        report(f"{path}: {error.strerror}")
        return ()
    if len(raw) > IGNORE_FILE_CAP_BYTES:
        report(f"{path}: over {IGNORE_FILE_CAP_BYTES} bytes")
        return ()
    lines = raw.decode("utf-8-sig", "replace").splitlines()
    if _are_patterns(lines):
        return tuple(lines)
    usable = [line for line in lines if _are_patterns([line])]
    report(f"{path}: {len(lines) - len(usable)} of its lines cannot be read")
    return tuple(usable)


def _read_regular(path: Path) -> bytes:
    """Bytes up to one over the cap. A link is not followed, and a FIFO, which would block for ever, not read."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        return os.read(descriptor, IGNORE_FILE_CAP_BYTES + 1)
    finally:
        os.close(descriptor)


def _are_patterns(lines: Sequence[str]) -> bool:
    try:
        _spec(lines)
    except (ValueError, re.error):
        return False
    return True


def _spec(lines: Sequence[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec  # 40 ms that most runs need not spend

    with _FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what a later Python may read otherwise
        return GitIgnoreSpec.from_lines(lines)
