"""The health of a service for somebody who only reads: its index, its queue, its roles, what waits and failed."""

import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from app.index_numbers import IndexNumbers, IndexWatch
from domain.errors import KnowledgeError, StorageError
from domain.layout import BaseLayout
from domain.settings import Settings
from store.files import free_bytes, lstat_or_none
from store.lock import holder_of, is_held
from store.state import SqliteStateStore

if TYPE_CHECKING:
    from scheduler.queue.numbers import QueueNumbers


class ServiceHealth(Struct, frozen=True):
    """What cannot be known is None, never 0."""

    index: IndexNumbers | None = None  # None: there is none yet, or `problem` says why it cannot be looked at
    problem: KnowledgeError | None = None
    disk_free_bytes: int | None = None
    queue: "QueueNumbers | None" = None
    scheduler: str = ""  # who leads the runs, in words; "" = nobody
    writer: str = ""  # who has the lock of the index, in words; "" = nobody
    run: int | None = None  # the one that goes on
    queued_runs: int | None = None
    failures: dict[str, int] = field(default_factory=dict)  # files by standing


class HealthLook:
    """Looks again and again; several threads may ask."""

    def __init__(self) -> None:
        self._looking = threading.Lock()
        self._watches: dict[Path, IndexWatch] = {}

    def look(self, settings: Settings, queue: "QueueNumbers | None") -> ServiceHealth:
        """Raises nothing of ours."""
        layout = BaseLayout(settings.home)
        with self._looking:
            index, problem = self._index(layout)
        return ServiceHealth(
            index=index,
            problem=problem,
            disk_free_bytes=_free(layout.home),
            queue=queue,
            scheduler=_holder(layout.scheduler_lock),
            writer=_holder(layout.lock),
            **_recorded(layout),
        )

    def _index(self, layout: BaseLayout) -> tuple[IndexNumbers | None, KnowledgeError | None]:
        watch = self._watches.setdefault(layout.database, IndexWatch(layout.database))
        try:
            return watch.look(), None
        except KnowledgeError as error:
            return None, error
        except OSError as error:
            return None, StorageError(f"the index cannot be looked at: {error.strerror}", hint="see `knowledge doctor`")


def _recorded(layout: BaseLayout) -> dict[str, Any]:
    """What state.db knows; nothing where it cannot be asked."""
    try:
        if lstat_or_none(layout.state) is None:
            return {}
        with closing(SqliteStateStore(layout.state, read_only=True)) as state:
            open_run = state.open_run()
            failures = dict.fromkeys(("open", "quarantined", "ignored"), 0)
            for count in state.failure_counts():
                failures[count.standing] += count.files
            return {
                "run": open_run.id if open_run is not None else None,
                "queued_runs": len(state.queued_runs()),
                "failures": failures,
            }
    except KnowledgeError:
        return {}


def _holder(lock: Path) -> str:
    if not is_held(lock):
        return ""
    return holder_of(lock) or "another process"


def _free(home: Path) -> int | None:
    try:
        return free_bytes(home)
    except (KnowledgeError, OSError):
        return None
