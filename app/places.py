"""Paths as people write them, and looks at the disk that never fail: what cannot be seen is not there."""

import os
import stat
from pathlib import Path


def absolute(written: str, *, below: Path, user_home: str) -> Path:
    """Absolute, `~` opened (a shell does not do it in a file, a variable or after `=`), `..` folded.

    Links are not followed: the path stays the one that was written.
    """
    if user_home and (written == "~" or written.startswith(("~/", f"~{os.sep}"))):
        written = user_home + written[1:]
    return Path(os.path.abspath(below / written))  # noqa: PTH100 - resolve() would follow links


def real(path: Path) -> Path:
    """Links followed as far as they lead; a circle of them, and what is no path, leads nowhere."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path))


def is_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path))


def exists(path: Path) -> bool:
    return _mode(path) != 0


def _mode(path: Path) -> int:
    """0 where there is nothing, or nothing that may be looked at."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0
