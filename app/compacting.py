"""`knowledge compact`: a base takes no more room than it needs, and a search reads fewer pieces."""

import time
import uuid
from pathlib import Path

from msgspec import Struct

from app.receipts import record_receipt, require_built
from app.wiring import WritableBase, writable_base
from domain.commands import CompactCommand
from domain.settings import Settings
from store import compacting
from store.compacting import StoreSizes


class CompactReport(Struct, frozen=True):
    home: Path
    before: StoreSizes
    after: StoreSizes
    vectors_dropped: int
    is_log_truncated: bool  # False: a reader that looks at an older state kept the log
    elapsed_s: float
    is_repeated: bool = False


def compact(settings: Settings, *, command_id: str | None = None) -> CompactReport:
    """Merge full-text segments, drop vectors that no chunk has, give empty pages back, cut the write-ahead log.

    In many short transactions: searches go on, and what a broken-off one has done stays done. Raises NotBuiltError,
    LockedError, FormatError, IntegrityError (damaged), DiskFullError.
    """
    require_built(settings)
    with writable_base(settings, "knowledge compact") as base:
        return compact_base(base, CompactCommand(command_id or uuid.uuid4().hex))


def compact_base(base: WritableBase, command: CompactCommand) -> CompactReport:
    """The same over a base that is held for writing."""
    began_s = time.monotonic()
    connection, path = base.writer.connection, base.layout.database
    before = compacting.sizes(connection, path)
    if base.state.receipt(command.id) is not None:
        return CompactReport(base.layout.home, before, before, 0, True, 0.0, is_repeated=True)
    dropped = base.writer.collect_vectors(keep_unused=0)
    compacting.merge_full_text(connection, path)
    compacting.give_back_pages(connection, path)
    is_log_truncated = compacting.truncate_log(connection, path)
    after = compacting.sizes(connection, path)
    record_receipt(base.state, command, {"bytes_before": before.bytes, "bytes_after": after.bytes})
    return CompactReport(base.layout.home, before, after, dropped, is_log_truncated, time.monotonic() - began_s)
