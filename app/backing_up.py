"""`knowledge backup` and `knowledge restore`: a base as one file, and back (P32, R2, R25)."""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from app.beside_service import refuse_beside_service
from app.places import is_folder
from app.receipts import run_record
from app.wiring import locked_home, readable_base
from domain.errors import (
    BaseMismatchError,
    DiskFullError,
    FormatError,
    IntegrityError,
    KnowledgeError,
    NotBuiltError,
    RefusedError,
    UnsafePlaceError,
    UsageError,
)
from domain.layout import DATABASE_NAME, STATE_NAME, BaseLayout
from domain.settings import Settings
from store import driver, files, format_gate, rebuilding
from store.backup import write_backup
from store.backup_manifest import Manifest, damaged
from store.backup_reading import MEMBERS, Backup, prepare_for_writing
from store.connection import RowRefusedError, immediate, open_reader, open_writer, translated
from store.meta import set_meta
from store.pending_restore import (
    finish_restore,
    fold_log_in,
    is_restore_pending,
    make_ready,
    remove_staging,
    settle_restore,
)
from store.run_port import RunRecord
from store.state import SqliteStateStore


class BackupReport(Struct, frozen=True):
    """What was put into a backup; sizes in bytes."""

    home: Path
    path: Path
    file_bytes: int
    database_bytes: int
    state_bytes: int
    documents: int
    chunks: int
    generation: int
    commit_seq: int
    created_ns: int
    elapsed_s: float


class RestoreReport(Struct, frozen=True):
    """What was put in place, and of what moment it is."""

    home: Path
    path: Path
    documents: int
    chunks: int
    generation: int  # no lower than any that the base has had here
    created_ns: int
    format_version: int  # of the index in the backup
    is_outdated: bool  # of an older format: put in place as it is, and to be upgraded before it can be read
    was_replaced: bool  # there was a base before
    elapsed_s: float


def back_up(settings: Settings, target: Path, force: bool) -> BackupReport:
    """Write the base into one file while a writer and readers go on. `target` is absolute.

    Raises NotBuiltError; RefusedError where there is a file and not `force`; UnsafePlaceError for a link, what is no
    file and the base's own directory; UsageError where the folder is not there; what `write_backup` and the format
    gate raise. A failure leaves nothing behind, and an earlier file at `target` as it was.
    """
    began_s = time.monotonic()
    layout = BaseLayout(settings.home)
    settle_restore(layout)
    with readable_base(settings):  # refuses what must not be opened, by the names that the user knows
        pass
    _refuse_target(layout, target, force)
    manifest = write_backup(layout, target, created_ns=time.time_ns())
    return BackupReport(
        home=layout.home,
        path=target,
        file_bytes=target.lstat().st_size,
        database_bytes=manifest.size_of(DATABASE_NAME),
        state_bytes=manifest.size_of(STATE_NAME),
        documents=manifest.documents,
        chunks=manifest.chunks,
        generation=manifest.generation,
        commit_seq=manifest.commit_seq,
        created_ns=manifest.created_ns,
        elapsed_s=time.monotonic() - began_s,
    )


def _refuse_target(layout: BaseLayout, target: Path, force: bool) -> None:
    if not target.name or not is_folder(target.parent):
        raise UsageError(f"there is no folder {target.parent}", hint="make it first, or name another file")
    home, parent = Path(os.path.realpath(layout.home)), Path(os.path.realpath(target.parent))
    if parent == home or home in parent.parents:
        raise UnsafePlaceError(
            f"{target} lies in the index's own folder", hint="write the backup elsewhere, best to another disk"
        )
    if is_folder(target) and not target.is_symlink():
        raise UnsafePlaceError(f"{target} is a folder", hint="name a file in it")
    if files.refuse_unsafe(target) is not None and not force:
        raise RefusedError(f"there is a file {target}", hint="name another one; --force replaces it")


def restore(settings: Settings, source: Path, force: bool) -> RestoreReport:
    """Put a base from a backup in the place of this one. `source` is absolute.

    The file is read and believed whole before anything is made. An index of an older format is put in place as it is,
    for an upgrade. Killed at any moment the old pair of databases stands
    or the new one (store.pending_restore). Raises FormatError, IntegrityError, UsageError and UnsafePlaceError of the
    file; RefusedError where there is a base and not `force`, or another program's database; LockedError,
    DiskFullError, StorageError.
    """
    began_s = time.monotonic()
    layout = BaseLayout(settings.home)
    with closing(Backup(source)) as backup:
        _refuse_base(layout, backup.manifest, source, force)
        backup.check_hashes()
        refuse_beside_service(BaseLayout(settings.home))
        with locked_home(settings, "knowledge restore") as layout:
            was_there = _refuse_base(layout, backup.manifest, source, force)
            _require_room(layout, backup.manifest)
            with _staged(layout) as staged:
                for name in MEMBERS:
                    backup.extract(name, staged.home / name)
                with _told_of_the_backup(source):
                    renewed = _renew(staged, floor_generation=_highest_generation(layout))
                make_ready(layout)
            finish_restore(layout)
            files.clear_spool(layout)
        return RestoreReport(
            home=layout.home,
            path=source,
            documents=backup.manifest.documents,
            chunks=backup.manifest.chunks,
            generation=renewed.generation,
            created_ns=backup.manifest.created_ns,
            format_version=backup.manifest.format_version,
            is_outdated=renewed.is_outdated,
            was_replaced=was_there,
            elapsed_s=time.monotonic() - began_s,
        )


def _refuse_base(layout: BaseLayout, manifest: Manifest, source: Path, force: bool) -> bool:
    """Whether there is a base; raises RefusedError where there is one that must not, or not yet, be replaced."""
    files.refuse_unsafe_database(layout.state)
    files.refuse_unsafe_database(layout.database)
    is_there = any(files.lstat_or_none(path) is not None for path in (layout.database, layout.state))
    for path in (layout.database, layout.state):
        if _is_of_another_program(path):
            hint = "move it away, or choose another directory"
            raise RefusedError(f"{path} is a database of another program", hint=hint)
    if not force and (is_there or is_restore_pending(layout)):
        raise RefusedError(
            f"there is an index at {layout.home}, with {_content(layout)}; the backup would replace it with its"
            f" {manifest.documents:,} documents",
            hint=f"`knowledge restore --force {source}` does it; `knowledge backup FILE` keeps the present one first",
        )
    return is_there


def _is_of_another_program(path: Path) -> bool:
    if files.lstat_or_none(path) is None:
        return False
    if path.name == DATABASE_NAME:
        return rebuilding.condition_of(path) == "foreign"
    try:
        with closing(open_reader(path)) as connection:
            names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema").fetchall()}
    except (KnowledgeError, driver.Error):
        return False  # damaged: what a restore is for
    return bool(names) and "base" not in names


def _content(layout: BaseLayout) -> str:
    counts = None
    if files.lstat_or_none(layout.database) is not None:
        counts = rebuilding.counts_or_none(layout.database)
    if counts is None:
        return "an unknown number of documents (it cannot be read)"
    return f"{counts.documents:,} documents and {counts.chunks:,} chunks"


def _require_room(layout: BaseLayout, manifest: Manifest) -> None:
    needed = sum(member.size_bytes for member in manifest.members)
    free = files.free_bytes(layout.home)
    if free < needed:
        raise DiskFullError(
            f"{needed // 1024**2 + 1} MiB are needed at {layout.home}, {free // 1024**2} are free",
            hint="free some space, then run the command again; nothing was changed",
        )


@contextmanager
def _staged(layout: BaseLayout) -> Iterator[BaseLayout]:
    """A directory of the base's own for the pair that is to come; gone again unless it was made ready."""
    with files.storage_errors(layout.restore_staging, "make"):
        layout.restore_staging.mkdir(mode=files.PRIVATE_DIRECTORY_MODE)
    try:
        yield BaseLayout(layout.restore_staging)
    finally:
        remove_staging(layout.restore_staging)


def _highest_generation(layout: BaseLayout) -> int:
    """What the base that is to be replaced knows, as far as it can still be read."""
    highest = rebuilding.highest_generation_or_zero(layout.database)
    if files.lstat_or_none(layout.state) is None:
        return highest
    try:
        with closing(open_reader(layout.state)) as connection:
            row = connection.execute("SELECT max(generation) FROM base").fetchone()
            return max(highest, int(row[0] or 0))
    except (KnowledgeError, driver.Error, TypeError, ValueError):
        return highest


@contextmanager
def _told_of_the_backup(source: Path) -> Iterator[None]:
    """What is damaged is the backup, not the index of this base, nor a copy that is gone in a moment."""
    try:
        yield
    except (BaseMismatchError, IntegrityError, NotBuiltError, RowRefusedError) as error:
        raise damaged(source, "its databases are as they were backed up, and no whole index") from error


class _Renewed(NamedTuple):
    generation: int  # of the restore
    is_outdated: bool


def _renew(staged: BaseLayout, *, floor_generation: int) -> _Renewed:
    """Make the copies a base that goes on: a generation above any before, and a store_uuid that no cache has seen
    (R25). What ran while the backup was made is closed as interrupted."""
    for name in MEMBERS:
        prepare_for_writing(staged.home / name)
    state = SqliteStateStore(staged.state)
    try:
        floor = max(floor_generation, rebuilding.highest_generation_or_zero(staged.database))
        run = state.begin_run(run_record("restore", ()), floor_generation=floor)
        is_outdated = _pin_anew(staged.database, state.base_id(), run)
        state.end_run(run.id, "done", {}, "")
    finally:
        state.close()
    for name in MEMBERS:
        fold_log_in(staged.home / name)
    return _Renewed(run.generation, is_outdated)


def _pin_anew(database: Path, base_id: str, run: RunRecord) -> bool:
    """Says whether it is of an older format: what its rows of meta say is the same in every one."""
    connection = open_writer(database, synchronous="NORMAL")
    try:
        is_outdated = _is_outdated(connection, database, base_id)
        with translated(database), immediate(connection):
            set_meta(connection, "store_uuid", os.urandom(16).hex())
            set_meta(connection, "generation", str(run.generation))
        return is_outdated
    finally:
        connection.close()


def _is_outdated(connection: driver.Connection, database: Path, base_id: str) -> bool:
    try:
        format_gate.check(connection, database, base_id=base_id)
    except FormatError as error:
        if not error.is_upgradable:
            raise
        return True
    return False
