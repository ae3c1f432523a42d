"""`knowledge rm`: documents, folders or whole roots out of the index, through the writer's own groups.

Nothing is deleted but what the index holds. Intent goes to state.db first, then the effect to knowledge.db, then the
outcome to state.db; each step can be repeated (R2).
"""

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from app.last_room import with_last_room
from app.receipts import record_receipt, require_built, run_record
from app.removal_targets import RemovalTarget, meant_by, targets_of
from app.wiring import WritableBase, writable_base
from domain.commands import RemoveCommand
from domain.errors import InterruptedRunError, KnowledgeError, NotFoundError
from domain.keys import prefix_of
from domain.layout import BaseLayout
from domain.settings import Settings
from store import rebuilding
from store.run_port import RunRecord
from store.sqlite import SqliteStore
from store.traces import Trace
from store.write_port import RemoveWrite, WriteGroup

LEFTOVER_STATUS = 3  # finished, but not everything that was asked for (R37)
REMOVALS_PER_GROUP = 200  # a group of this many stays well below the time that a lock may be held (R24)


class RemovedTarget(Struct, frozen=True):
    """What became of one name that was given to `rm`."""

    argument: str
    prefix: str  # the key, or the key prefix ending in `/`; "" where it names nothing that is indexed
    documents: int  # removed now; another name of the same command may have had them before
    is_still_there: bool  # the file or folder exists: the next run that sees it adds it again


class RemovedRoot(Struct, frozen=True):
    """A root that was taken out with everything that is known of it."""

    name: str
    path: str  # "" where it was not recorded any more
    documents: int
    skipped_files: int
    failures: int
    is_configured: bool  # still in the configuration: the next run adds it again


class PurgeReport(Struct, frozen=True):
    """What became of the base's files after a removal, and what a search of them has found."""

    bytes_before: int  # of knowledge.db with its log
    bytes_after: int
    vectors_dropped: int
    documents: int  # that were removed
    documents_searched: int  # of these, with text that stands nowhere else and was looked for
    pieces: int  # of their texts
    is_log_truncated: bool  # False: a reader that looks at an older state keeps it in the files
    traces: tuple[Trace, ...] = ()  # files in which pieces were found

    @property
    def places(self) -> int:
        return sum(trace.places for trace in self.traces)

    @property
    def is_clean(self) -> bool:
        return self.is_log_truncated and not self.traces


class _Removing(NamedTuple):
    """A removal under way: its run, its counts so far, numbers for what is recorded of it."""

    run: RunRecord
    counts: dict[str, int]
    change_numbers: Iterator[int]


class RemoveReport(Struct, frozen=True):
    """`n of m`: how many of the given names had something to remove."""

    home: Path
    targets: tuple[RemovedTarget, ...] = ()
    root: RemovedRoot | None = None
    is_repeated: bool = False  # this command had taken effect before; nothing was done now
    purge: PurgeReport | None = None  # only where it was asked for

    @property
    def documents(self) -> int:
        return sum(target.documents for target in self.targets) + (self.root.documents if self.root else 0)

    @property
    def not_indexed(self) -> tuple[str, ...]:
        return tuple(target.argument for target in self.targets if not target.prefix)

    @property
    def exit_status(self) -> int:
        """3 where text is left in the files; else 4 where a name is not in the index."""
        if self.purge is not None and not self.purge.is_clean:
            return LEFTOVER_STATUS
        return NotFoundError.exit_status if self.not_indexed and not self.is_repeated else 0


def remove_paths(
    settings: Settings,
    cwd: Path,
    paths: Sequence[str],
    root: str | None = None,
    *,
    command_id: str | None = None,
) -> RemoveReport:
    """Remove documents by key or by path (files or folders; `cwd` absolute), or a whole root by its name.

    Raises NotBuiltError, NotFoundError (no such root), UsageError (a name that means two things), LockedError.
    """
    require_built(settings)

    def removed() -> RemoveReport:
        with writable_base(settings, "knowledge rm") as base:
            targets = targets_of(base.layout, base.state, cwd, paths)
            return remove(base, settings, command_for(command_id or uuid.uuid4().hex, targets, root), targets)

    return with_last_room(BaseLayout(settings.home), removed)


def command_for(command_id: str, targets: Sequence[RemovalTarget], root: str | None) -> RemoveCommand:
    """The command that removes what was named."""
    return RemoveCommand(command_id, tuple(target.prefix for target in targets if target.prefix), root or "")


def remove(
    base: WritableBase,
    settings: Settings,
    command: RemoveCommand,
    targets: Sequence[RemovalTarget] = (),
    *,
    is_beside_run: bool = False,
) -> RemoveReport:
    """Carry out a RemoveCommand over a base that is held for writing; `targets` says what its prefixes came from.

    `is_beside_run`: the run that is open belongs to somebody else and goes on, as in a service.
    """
    targets = targets or [RemovalTarget(prefix, prefix, False) for prefix in command.prefixes]
    if base.state.receipt(command.id) is not None:
        return RemoveReport(base.layout.home, is_repeated=True)
    if command.root:
        _require_root(base, command.root)
    names = {prefix.partition("/")[0] for prefix in command.prefixes} | {command.root} - {""}
    with _recorded_run(base, command.kind, tuple(sorted(names)), is_beside_run=is_beside_run) as it:
        run = it.run
        removed = tuple(
            RemovedTarget(target.argument, target.prefix, _remove_below(base, it, target.prefix), target.is_still_there)
            for target in targets
        )
        for target in removed:
            if target.documents:
                _forget_failures(base, target.prefix)
        whole = _remove_root(base, settings, it, command.root) if command.root else None
        base.writer.close_generation(run.generation)
    report = RemoveReport(base.layout.home, removed, whole)
    record_receipt(base.state, command, {"documents": report.documents, "root": command.root})
    return report


def _require_root(base: WritableBase, name: str) -> None:
    """A root that is recorded, or of which documents are left from a removal that was cut short."""
    recorded = [root.name for root in base.state.roots()]
    if name in recorded:
        return
    with _reader(base.layout) as store:
        if next(iter(store.reader().stored_files(prefix_of(name))), None) is not None:
            return
    known = ", ".join(recorded) or "none"
    raise NotFoundError(f"there is no root {name}", hint=f"the roots are: {known}")


def _remove_below(base: WritableBase, it: _Removing, prefix: str) -> int:
    """Remove the documents of a name, group by group; what is skipped there stays known as skipped."""
    if not prefix:
        return 0
    removed = 0
    with _reader(base.layout) as store:
        stored_files = chain.from_iterable(map(store.reader().stored_files, meant_by(prefix)))
        for keys in _grouped(stored.key for stored in stored_files if not stored.reason):
            now_ns = time.time_ns()
            group = WriteGroup(removes=[RemoveWrite(key, now_ns, it.run.generation) for key in keys])
            gone = [result.key for result in base.writer.apply(group).results if result.verdict == "applied"]
            base.state.add_changes(it.run.id, next(it.change_numbers), {"removed": gone})
            removed += len(gone)
    it.counts["removed"] = it.counts.get("removed", 0) + removed
    return removed


def _remove_root(base: WritableBase, settings: Settings, it: _Removing, name: str) -> RemovedRoot:
    """Documents first, the root last: cut short, the same command does the rest."""
    prefix = prefix_of(name)
    path = next((root.path for root in base.state.roots() if root.name == name), "")
    documents = _remove_below(base, it, prefix)
    skipped = rebuilding.forget_skipped(base.writer.connection, base.layout.database, prefix)
    failures = _forget_failures(base, prefix)
    base.state.remove_root(name)
    configured = {os.path.realpath(root.path) for root in settings.roots}
    return RemovedRoot(name, path, documents, skipped, failures, path in configured)


def _forget_failures(base: WritableBase, prefix: str) -> int:
    below = [failure.key for meant in meant_by(prefix) for failure in base.state.failures(meant)]
    if below:
        base.state.forget_failures(below)
    return len(below)


def _grouped(keys: Iterator[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for key in keys:
        group.append(key)
        if len(group) == REMOVALS_PER_GROUP:
            yield group
            group = []
    if group:
        yield group


@contextmanager
def _reader(layout: BaseLayout) -> Iterator[SqliteStore]:
    store = SqliteStore(layout.database, base_id=None)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _recorded_run(base: WritableBase, kind: str, roots: tuple[str, ...], *, is_beside_run: bool) -> Iterator[_Removing]:
    """A run of its own in the history, which issues the generation that the removals are fenced with (R25)."""
    begin = base.state.begin_beside if is_beside_run else base.state.begin_run
    run = begin(run_record(kind, roots), floor_generation=base.writer.highest_generation())
    it = _Removing(run, {}, count(1))
    try:
        yield it
    except KeyboardInterrupt:
        base.state.end_run(run.id, "interrupted", it.counts, "interrupted")
        raise InterruptedRunError(
            "interrupted; what was removed is removed", hint="run the same command to do the rest"
        ) from None
    except KnowledgeError as error:
        base.state.end_run(run.id, "failed", it.counts, error.code)
        raise
    base.state.end_run(run.id, "done", {name: number for name, number in it.counts.items() if number}, "")
