"""Runs of `index` as the command makes them, and what they leave: in the store, on the disk, among the processes."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.index_request import IndexRequest
from app.indexing import run_index
from app.outcomes import IndexReport
from app.progress import RunProgress
from domain.layout import BaseLayout
from domain.settings import RootSettings, Settings
from scheduler.queue.embedded import OWNER_NAME, RUNTIME_PREFIX
from store import driver
from store.state import SqliteStateStore

SETTLED_NS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Base:
    """A base in a private place, with the roots of its configuration, if any."""

    settings: Settings

    @property
    def layout(self) -> BaseLayout:
        return BaseLayout(self.settings.home)

    def index(
        self, *paths: Path, worker_processes: int = 0, progress: RunProgress | None = None, **request: Any
    ) -> IndexReport:
        """One run; no process of its own for the workers unless asked for."""
        wanted = IndexRequest(paths=paths, worker_processes=worker_processes, **request)
        return run_index(self.settings, wanted, progress or RunProgress())

    def settle(self) -> None:
        """Let every check so far have happened long after the last change of its file (R26), without waiting."""
        with closing(driver.connect(str(self.layout.database), uri=False, timeout_s=5)) as connection:
            for table in ("documents", "skipped_files"):
                connection.execute(f"UPDATE {table} SET checked_ns = checked_ns + ?", (SETTLED_NS,))  # noqa: S608

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Rows of knowledge.db."""
        with closing(driver.connect(str(self.layout.database), uri=False, timeout_s=5)) as connection:
            return connection.execute(statement, parameters).fetchall()

    def execute(self, statement: str, *parameters: object) -> None:
        """Change knowledge.db behind the product's back."""
        with closing(driver.connect(str(self.layout.database), uri=False, timeout_s=5)) as connection:
            connection.execute(statement, parameters)

    def stored_keys(self) -> list[str]:
        return [key for (key,) in self.rows("SELECT key FROM documents ORDER BY key")]

    def skipped(self) -> dict[str, str]:
        return dict(self.rows("SELECT key, reason FROM skipped_files ORDER BY key"))

    def content(self) -> list[tuple[Any, ...]]:
        """All that a query can see of the documents, apart from ids and times."""
        return self.rows(
            "SELECT documents.key, root, title, hex(file_hash), hex(content_hash), warnings, tail,"
            " chunk_count, ordinal, heading_path, lead, body, names, start_line, end_line, hex(text_hash), in_tri"
            " FROM documents JOIN chunks ON chunks.document = documents.id ORDER BY documents.key, ordinal"
        )

    def found(self, words: str) -> list[str]:
        """Keys of the documents whose words the full-text table holds."""
        rows = self.rows(
            "SELECT DISTINCT documents.key FROM chunks_fts JOIN chunks ON chunks.id = chunks_fts.rowid"
            " JOIN documents ON documents.id = chunks.document WHERE chunks_fts MATCH ? ORDER BY 1",
            words,
        )
        return [key for (key,) in rows]

    @contextmanager
    def state(self) -> Iterator[SqliteStateStore]:
        with closing(SqliteStateStore(self.layout.state)) as state:
            yield state

    def last_run(self) -> tuple[str, str, dict[str, int]]:
        """State, cause and counts of the newest run."""
        with self.state() as state:
            run = state.runs(1)[0]
        return run.state, run.cause, run.counts

    def failures(self) -> dict[str, str]:
        with self.state() as state:
            return {failure.key: failure.reason for failure in state.failures()}


class Watched(RunProgress):
    """Calls a hook once, as soon as a run has got somewhere; in the thread of the run's loop."""

    def __init__(self, hook: Callable[[], None], field: str = "checked", value: object = None) -> None:
        self.hook: Callable[[], None] | None = None
        super().__init__()
        self.field, self.value = field, value
        self.hook = hook

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        hook = self.__dict__.get("hook")
        if hook is not None and name == self.field and value and self.value in (None, value):
            self.hook = None
            hook()


def base_in(where: Path, *roots: RootSettings, **changes: Any) -> Base:
    """A base below `where`; configured when it has roots."""
    settings = Settings(
        identity="default", home=where / "home", config_path=None, configured=bool(roots), roots=roots, **changes
    )
    return Base(settings)


def children(pid: int | None = None) -> list[int]:
    """The living processes that a process has started, this one by default; where there is no /proc, none are seen."""
    parent = os.getpid() if pid is None else pid
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def workers() -> list[int]:
    """The worker processes among the children of this one."""
    return [pid for pid in children() if b"app.worker_process" in _command_of(pid)]


def queue_servers() -> list[int]:
    """The queue servers among the children of this one."""
    return [pid for pid in children() if b"queue.sock" in _command_of(pid)]


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def runtime_directories() -> list[Path]:
    """The runtime directories of queue servers that this process has started."""
    found = []
    for directory in Path(tempfile.gettempdir()).glob(f"{RUNTIME_PREFIX}*"):
        try:
            owner = (directory / OWNER_NAME).read_text("ascii").split()
        except OSError:
            continue
        if owner and int(owner[0]) == os.getpid():
            found.append(directory)
    return found


@contextmanager
def nothing_left(base: Base) -> Iterator[None]:
    """What happens inside leaves no process, no runtime directory and no file in the spool."""
    before = set(children())
    yield
    assert set(children()) <= before
    assert runtime_directories() == []
    if base.layout.spool.exists():
        assert list(base.layout.spool.iterdir()) == []
