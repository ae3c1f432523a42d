"""`knowledge rm --purge`: what is removed is gone from the base's files too, and the files are searched to see it.

A plain removal only says that its pages may be used again: the text stays in them, in full-text segments and in the
write-ahead log. Backups, and what a file system keeps of blocks that it has freed, are out of reach here.
"""

import uuid
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from app.receipts import record_receipt, require_built
from app.removal_command import PurgeReport, RemoveReport, command_for, remove
from app.removal_targets import meant_by, targets_of
from app.wiring import WritableBase, locked_home, opened_base
from domain.commands import PurgeCommand
from domain.keys import prefix_of
from domain.layout import BaseLayout
from domain.settings import Settings
from store import compacting, files, traces
from store.state import SqliteStateStore
from store.traces import Pieces


def purge_paths(
    settings: Settings,
    cwd: Path,
    paths: Sequence[str],
    root: str | None = None,
    *,
    command_id: str | None = None,
) -> RemoveReport:
    """Remove as `remove_paths` does, then rewrite the base's files without what was removed, and search them for it.

    Names of which nothing is indexed any more are purged all the same: a purge that was broken off, or a plain removal
    before, is made good by the same command; only the search then has nothing to look for. Raises what `remove_paths`
    raises, and DiskFullError where there is no room to rewrite the files.
    """
    require_built(settings)
    command_id = command_id or uuid.uuid4().hex
    command = PurgeCommand(f"{command_id}/purge")
    with locked_home(settings, "knowledge rm --purge") as layout:
        with opened_base(layout, settings) as base:
            targets = targets_of(layout, base.state, cwd, paths)
            removal = command_for(command_id, targets, root)
            if base.state.receipt(command.id) is not None:
                return RemoveReport(layout.home, is_repeated=True)
            named = (*removal.prefixes, *((prefix_of(removal.root),) if removal.root else ()))
            prefixes = tuple(chain.from_iterable(map(meant_by, named)))
            pieces = traces.take_pieces(base.writer.connection, layout.database, prefixes)
            report = remove(base, settings, removal, targets)
            purged, pieces = _rewrite(base, pieces)
        found = traces.find_traces(layout, pieces.all)  # every connection of this process is closed here
        _record(layout, command, sum(trace.places for trace in found))
    return replace(report, purge=replace(purged, traces=found))


def _rewrite(base: WritableBase, pieces: Pieces) -> tuple[PurgeReport, Pieces]:
    """Everything between the removal and the search; the pieces that tell the removed texts from those that stay."""
    connection, path = base.writer.connection, base.layout.database
    before = compacting.sizes(connection, path)
    files.clear_spool(base.layout)
    dropped = base.writer.collect_vectors(keep_unused=0)
    compacting.merge_full_text(connection, path)
    compacting.rewrite_whole(connection, path)
    is_log_truncated = compacting.truncate_log(connection, path)
    base.state.rewrite_whole()
    own = pieces.without(traces.common_pieces(connection, path, pieces.all))
    after = compacting.sizes(connection, path)
    report = PurgeReport(
        bytes_before=before.bytes,
        bytes_after=after.bytes,
        vectors_dropped=dropped,
        documents=pieces.documents,
        documents_searched=len(own.by_document),
        pieces=len(own.all),
        is_log_truncated=is_log_truncated,
    )
    return report, own


def _record(layout: BaseLayout, command: PurgeCommand, places: int) -> None:
    state = SqliteStateStore(layout.state)
    try:
        record_receipt(state, command, {"places": places})
    finally:
        state.close()
