"""A directory for stores in memory where the system has one: tests that write much do not wait for a disk."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Removed at the end; readable by others, so that a command may be run as somebody else in it."""
    try:
        made = tempfile.mkdtemp(prefix="knowledge-test-", dir=MEMORY)
    except OSError:
        made = tempfile.mkdtemp(prefix="knowledge-test-")
    path = Path(made)
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)
