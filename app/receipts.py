"""What every operator's verb does around its effect: a built index, a run in the history, a receipt."""

import json
import time

from domain.commands import Command
from domain.errors import NotBuiltError
from domain.layout import BaseLayout
from domain.settings import Settings
from store import files
from store.pending_restore import settle_restore
from store.run_port import RunRecord
from store.state import SqliteStateStore


def require_built(settings: Settings) -> None:
    """Raises NotBuiltError where there is no knowledge.db, or an empty file: nothing is made by looking."""
    layout = BaseLayout(settings.home)
    settle_restore(layout)
    status = files.lstat_or_none(layout.database)
    if status is None or status.st_size == 0:
        raise not_built(layout)


def not_built(layout: BaseLayout) -> NotBuiltError:
    return NotBuiltError(f"there is no index at {layout.home}", hint="run `knowledge index YOUR_FOLDER` first")


def run_record(kind: str, roots: tuple[str, ...]) -> RunRecord:
    """A run as it is handed to `begin_run`, which gives it its id and generation."""
    return RunRecord(
        id=0, generation=0, kind=kind, trigger="cli", roots=roots, state="walking",
        started_ns=time.time_ns(), ended_ns=None, counts={},
    )  # fmt: skip


def record_receipt(state: SqliteStateStore, command: Command, outcome: dict[str, object]) -> None:
    """A command has taken effect: run again under its id, it does nothing (R22)."""
    state.record_receipt(command.id, command.kind, json.dumps(outcome))
