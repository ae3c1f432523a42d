"""The operator's verbs over a built index: rm (with its purge), reset, verify, rebuild, compact.

Each takes the base's lock and says what it did in a frozen value; the words are made in app.present. Intent goes to
state.db first, then the effect to knowledge.db, then the outcome to state.db; each step can be repeated (R2).
"""

import time
import uuid
from pathlib import Path

from msgspec import Struct

from app.beside_service import refuse_beside_service
from app.compacting import CompactReport, compact
from app.present import count
from app.purging import purge_paths
from app.receipts import not_built, record_receipt, require_built, run_record
from app.removal_command import PurgeReport, RemovedRoot, RemovedTarget, RemoveReport, remove, remove_paths
from app.verifying import VerifyReport, verify
from app.wiring import WritableBase, locked_home, writable_base
from domain.commands import RebuildCommand, ResetCommand
from domain.errors import KnowledgeError, RefusedError
from domain.layout import BaseLayout
from domain.settings import Settings
from store import files, rebuilding
from store.pending_restore import remove_staging, settle_restore
from store.state import SqliteStateStore

__all__ = [
    "CompactReport",
    "PurgeReport",
    "RebuildReport",
    "RemoveReport",
    "RemovedRoot",
    "RemovedTarget",
    "ResetReport",
    "VerifyReport",
    "compact",
    "purge_paths",
    "rebuild",
    "rebuild_base",
    "remove",
    "remove_paths",
    "reset",
    "verify",
]


class ResetReport(Struct, frozen=True):
    """What a reset has dropped; None where it could not be counted any more."""

    home: Path
    documents: int | None
    chunks: int | None
    is_replaced: bool  # the file could not be emptied and was made anew
    is_repeated: bool = False


class RebuildReport(Struct, frozen=True):
    home: Path
    chunks: int
    substring_chunks: int
    elapsed_s: float
    vectors: int = 0  # whose packed signs were made again
    pending_documents: int = 0  # without sound vectors: the next index run embeds them
    is_repeated: bool = False


def reset(settings: Settings, force: bool, *, command_id: str | None = None) -> ResetReport:
    """Drop everything in knowledge.db and make it again, empty; roots, runs and receipts of state.db stay.

    Works on what full text has drifted in, what the format gate refuses and what is no database at all; only another
    program's database is left alone. Raises RefusedError without `force`, NotBuiltError, LockedError.
    """
    layout = BaseLayout(settings.home)
    settle_restore(layout)
    if all(files.lstat_or_none(path) is None for path in (layout.database, layout.state)):
        raise not_built(layout)
    if not force:
        raise _refusal(layout)
    refuse_beside_service(layout)
    with locked_home(settings, "knowledge reset") as layout:
        remove_staging(layout.upgrade_staging)
        state = SqliteStateStore(layout.state, remakes_lost=True)
        try:
            return _reset(layout, state, settings, ResetCommand(command_id or uuid.uuid4().hex))
        finally:
            state.close()


def rebuild(settings: Settings, *, command_id: str | None = None) -> RebuildReport:
    """Make the full-text tables again from the chunks that are stored. Raises NotBuiltError, LockedError,
    FormatError, IntegrityError (damaged beyond full text)."""
    require_built(settings)
    with writable_base(settings, "knowledge rebuild") as base:
        return rebuild_base(base, RebuildCommand(command_id or uuid.uuid4().hex))


def rebuild_base(base: WritableBase, command: RebuildCommand) -> RebuildReport:
    """The same over a base that is held for writing."""
    began_s = time.monotonic()
    if base.state.receipt(command.id) is not None:
        return RebuildReport(base.layout.home, 0, 0, 0.0, is_repeated=True)
    done = rebuilding.rebuild(base.writer.connection, base.layout.database)
    record_receipt(base.state, command, {"chunks": done.chunks})
    pending = base.writer.vector_status().pending_documents
    elapsed_s = time.monotonic() - began_s
    return RebuildReport(base.layout.home, done.chunks, done.substring_chunks, elapsed_s, done.vectors, pending)


def _refusal(layout: BaseLayout) -> RefusedError:
    counts = None
    if files.lstat_or_none(layout.database) is not None:
        counts = rebuilding.counts_or_none(layout.database)
    content = (
        f"{count(counts.documents, 'document')} with {count(counts.chunks, 'chunk')}"
        if counts is not None
        else "an unknown number of documents (it cannot be read)"
    )
    return RefusedError(
        f"the index at {layout.home} holds {content}; a reset drops them all",
        hint="`knowledge reset --force` does it; your files are not touched, `knowledge index` reads them again",
    )


def _reset(layout: BaseLayout, state: SqliteStateStore, settings: Settings, command: ResetCommand) -> ResetReport:
    if state.receipt(command.id) is not None:
        return ResetReport(layout.home, None, None, is_replaced=False, is_repeated=True)
    path = layout.database
    condition = rebuilding.condition_of(path)
    if condition == "foreign":
        raise RefusedError(f"{path} is a database of another program", hint="move it away, or choose another directory")
    counts = rebuilding.counts_or_none(path) if condition != "absent" else None
    run = state.begin_run(run_record(command.kind, ()), floor_generation=rebuilding.highest_generation_or_zero(path))
    try:
        is_replaced = rebuilding.reset_store(
            path,
            condition,
            base_id=state.base_id(),
            substring_index=settings.substring_index,
            generation=run.generation,
        )
        state.forget_failures([failure.key for failure in state.failures()])
    except KnowledgeError as error:
        state.end_run(run.id, "failed", {}, error.code)
        raise
    state.end_run(run.id, "done", {}, "")
    files.clear_spool(layout)
    report = ResetReport(
        layout.home,
        counts.documents if counts is not None else None,
        counts.chunks if counts is not None else None,
        is_replaced,
    )
    record_receipt(state, command, {"documents": report.documents, "is_replaced": is_replaced})
    return report
