"""One file that holds a base's two databases, and what is needed to believe it (P32).

A plain tar, so that any system can look into it: `knowledge-backup.json` (the manifest: versions, base id, numbers,
sizes and SHA-256 of both), `state.db`, `knowledge.db`, in this order and nothing else. Each database is copied by
VACUUM INTO from one read transaction: the writer and readers go on meanwhile, pages that were given up (and the removed
text in them) stay behind. Measured on 366 MB: 0.8 s, against 0.5 s for SQLite's page copy, which keeps them.

state.db is copied first. What it calls done is then in the copy of knowledge.db, which may hold a little more than
state.db knows; this is what a crash leaves too, and the next run goes on from it (R2, R35). The other way round a
receipt could stand for an effect that is missing.
"""

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from domain.errors import DiskFullError, LockedError, UnsafePlaceError
from domain.layout import DATABASE_NAME, STATE_NAME, BaseLayout
from store import driver, files, format_gate
from store.backup_manifest import MANIFEST_NAME, Manifest, Member, encode
from store.connection import open_reader, translate, translated
from store.pending_restore import is_restore_pending, remove_staging, sync_directory

try:
    import fcntl
except ImportError:  # not Unix: the directory's exclusive creation is all there is
    HAS_FLOCK = False
else:
    HAS_FLOCK = True

_STEPS_BETWEEN_LOOKS = 100_000  # of SQLite's machine: so often Ctrl-C is heeded
_INTERRUPTED = 9  # SQLITE_INTERRUPT
_OF_THE_SOURCE = (5, 11, 26)  # SQLITE_BUSY, SQLITE_CORRUPT, SQLITE_NOTADB; the rest is a matter of where it is written


def write_backup(layout: BaseLayout, target: Path, *, created_ns: int) -> Manifest:
    """Write a backup of a base beside `target`, then rename it into that place. Takes no lock.

    Needs about twice the size of the databases beside the target for as long as it lasts. Raises LockedError where
    another backup is written there, DiskFullError, StorageError, FormatError, IntegrityError, and UnsafePlaceError for
    a link or what is no file.
    """
    with _working_directory(target) as work:
        _require_room(layout, target.parent)
        pair = files.inodes(layout)
        state = _copied(layout.state, work / STATE_NAME, target)
        database = _copied(layout.database, work / DATABASE_NAME, target)
        if files.inodes(layout) != pair or is_restore_pending(layout):
            raise LockedError(f"{layout.home} was replaced while it was copied", hint="run the command again")
        manifest = _described(state, database, created_ns)
        part = work / "backup.tar"
        files.create_private(part)
        with files.storage_errors(target, "write"), part.open("r+b") as file:
            manifest = _pack(file, manifest, (state, database))
            file.flush()
            os.fsync(file.fileno())
        files.refuse_unsafe(target)
        with files.storage_errors(target, "make"):
            part.replace(target)
        sync_directory(target.parent)
    return manifest


@contextmanager
def _working_directory(target: Path) -> Iterator[Path]:
    """A private directory beside the target, its name made from the target's: what a killed backup has left is
    cleared by the next one to the same place."""
    work = target.parent / f".knowledge-backup-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}.part"
    with files.storage_errors(target, "make"), suppress(FileExistsError):
        work.mkdir(mode=files.PRIVATE_DIRECTORY_MODE)
    status = files.lstat_or_none(work)
    if status is None or work.is_symlink() or not work.is_dir() or (HAS_FLOCK and status.st_uid != os.geteuid()):
        raise UnsafePlaceError(f"{work} is in the way of the backup", hint="remove it, or write the backup elsewhere")
    descriptor = _held(work, target) if HAS_FLOCK else None
    try:
        for left in work.iterdir():
            left.unlink()
        yield work
    finally:
        with suppress(OSError):
            remove_staging(work)
        if descriptor is not None:
            os.close(descriptor)


def _held(work: Path, target: Path) -> int:
    with files.storage_errors(work, "open"):
        descriptor = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise LockedError(
            f"another backup to {target} is being written", hint="wait for it to end, or name another file"
        ) from error
    return descriptor


def _require_room(layout: BaseLayout, directory: Path) -> None:
    """Fail before the disk is full, not after: the base may lie on the same one."""
    needed = 2 * sum(_live_bytes(path) for path in (layout.state, layout.database))
    free = files.free_bytes(directory)
    if free < needed:
        raise DiskFullError(
            f"{needed // 1024**2 + 1} MiB are needed at {directory} to write the backup, {free // 1024**2} are free",
            hint="free some space, or write the backup to another disk",
        )


def _live_bytes(path: Path) -> int:
    connection = open_reader(path)
    try:
        with translated(path):
            pages, unused, page_bytes = (
                int(connection.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("page_count", "freelist_count", "page_size")
            )
    finally:
        connection.close()
    return (pages - unused) * page_bytes


def _copied(path: Path, copy: Path, target: Path) -> Path:
    """A database as one read transaction sees it, as a file of its own without a log beside it."""
    files.create_private(copy)
    connection = open_reader(path)
    try:
        connection.set_progress_handler(_go_on, _STEPS_BETWEEN_LOOKS)
        connection.execute("PRAGMA query_only = OFF")  # the file itself stays read-only: it was opened so
        connection.execute("PRAGMA synchronous = OFF")  # the copy is packed, and that is what has to last
        connection.execute("VACUUM INTO ?", (_own_uri(copy),))
    except driver.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise translate(error, path if code in _OF_THE_SOURCE else target) from error
    finally:
        connection.close()
    return copy


def _own_uri(copy: Path, options: str = "") -> str:
    """A copy is nobody else's, and may lie on a network file system that has no locks to give."""
    quoted = str(copy).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?nolock=1{options}"


def _open_copy(copy: Path) -> driver.Connection:
    with translated(copy):
        return driver.connect(_own_uri(copy, "&mode=ro"), uri=True, timeout_s=0.0)


def _go_on() -> int:
    """Asked by SQLite while it copies: in here Python heeds signals."""
    return 0


def _described(state: Path, database: Path, created_ns: int) -> Manifest:
    """What the copies say of themselves. Raises what the format gate raises, so that no refused index is backed up."""
    base_id, state_version, state_generation = _state_facts(state)
    connection = _open_copy(database)
    try:
        format_gate.check(connection, database, base_id=base_id)
        with translated(database):
            meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
            documents, chunks, newest = connection.execute(
                "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks),"
                " coalesce((SELECT max(generation) FROM documents), 0)"
            ).fetchone()
    finally:
        connection.close()
    return Manifest(
        format_version=format_gate.FORMAT_VERSION,
        state_version=state_version,
        base_id=base_id,
        store_uuid=meta["store_uuid"],
        commit_seq=int(meta["commit_seq"]),
        generation=max(int(meta["generation"]), int(newest), state_generation),
        documents=int(documents),
        chunks=int(chunks),
        created_ns=created_ns,
        members=(),
    )


def _state_facts(state: Path) -> tuple[str, int, int]:
    """Base id, step and generation of a copy of a state.db that was opened as one of ours before."""
    connection = _open_copy(state)
    try:
        with translated(state):
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            base_id, generation = connection.execute("SELECT base_id, generation FROM base").fetchone()
    finally:
        connection.close()
    return str(base_id), version, int(generation)


class _Hashed:
    """Reads a file and hashes what is read: each byte goes once from the disk into the backup."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        return data


def _pack(file: IO[bytes], manifest: Manifest, copies: tuple[Path, ...]) -> Manifest:
    """Write the tar: room for the manifest, the databases, then the manifest into its room, with their hashes."""
    members: list[Member] = []
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        room = encode(manifest)
        tar.addfile(_entry(MANIFEST_NAME, len(room), manifest), io.BytesIO(room))
        for copy in copies:
            size_bytes = copy.stat().st_size
            with copy.open("rb") as source:
                hashed = _Hashed(source)
                tar.addfile(_entry(copy.name, size_bytes, manifest), hashed)
            members.append(Member(copy.name, size_bytes, hashed.digest.hexdigest()))
    whole = manifest._replace(members=tuple(members))
    file.seek(tarfile.BLOCKSIZE)
    file.write(encode(whole))
    return whole


def _entry(name: str, size_bytes: int, manifest: Manifest) -> tarfile.TarInfo:
    """No name or number of a user of this machine is put into the file."""
    entry = tarfile.TarInfo(name)
    entry.size = size_bytes
    entry.mode = files.PRIVATE_FILE_MODE
    entry.mtime = manifest.created_ns // 1_000_000_000
    return entry
