"""Reading a backup: its manifest and entries believed at once, its bytes by their hashes.

Nothing is unpacked by the names or kinds that the file gives; two entries are read, to places that the caller names.
"""

import hashlib
import tarfile
from collections.abc import Callable
from pathlib import Path

from domain.layout import DATABASE_NAME, STATE_NAME
from store import driver, files
from store.backup_manifest import MANIFEST_NAME, Member, damaged, read_manifest
from store.connection import translated

MEMBERS = (STATE_NAME, DATABASE_NAME)
COPY_BYTES = 1024 * 1024


class Backup:
    """A backup file that is open for reading, its manifest believed. Closed by `close`."""

    def __init__(self, path: Path) -> None:
        """Raises FormatError (no backup, or one of another version), IntegrityError, UsageError (no such file),
        UnsafePlaceError, StorageError."""
        self.path = path
        self._file, self.manifest = read_manifest(path)
        try:
            self._entries = self._found_entries()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        self._file.close()

    def check_hashes(self) -> None:
        """Read it all. Raises IntegrityError where a byte of a database is another than was written."""
        for member in self.manifest.members:
            self._read(member, lambda data: None)

    def extract(self, name: str, target: Path) -> None:
        """Write a database into a new private file, hashed on its way. Raises IntegrityError, DiskFullError."""
        member = next(member for member in self.manifest.members if member.name == name)
        files.create_private(target)
        with files.storage_errors(target, "write"), target.open("r+b") as file:
            self._read(member, file.write)

    def _found_entries(self) -> dict[str, tarfile.TarInfo]:
        self._file.seek(0)
        try:
            with tarfile.open(fileobj=self._file, mode="r:") as tar:
                found = [tar.next() for _ in range(len(MEMBERS) + 2)]
        except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:  # names of names
            raise damaged(self.path, "its entries cannot be read") from error
        entries = [entry for entry in found if entry is not None]
        described = [(MANIFEST_NAME, entries[0].size if entries else 0)]
        described += [(member.name, member.size_bytes) for member in self.manifest.members]
        if [(entry.name, entry.size) for entry in entries] != described:
            raise damaged(self.path, "it is cut short, or holds other entries than it says")
        if any(entry.type != tarfile.REGTYPE for entry in entries):
            raise damaged(self.path, "an entry of it is no plain file")
        return {entry.name: entry for entry in entries}

    def _read(self, member: Member, take: Callable[[bytes], object]) -> None:
        self._file.seek(self._entries[member.name].offset_data)
        digest, left = hashlib.sha256(), member.size_bytes
        while left:
            data = self._file.read(min(left, COPY_BYTES))
            if not data:
                raise damaged(self.path, f"{member.name} is cut short in it")
            digest.update(data)
            take(data)
            left -= len(data)
        if digest.hexdigest() != member.sha256:
            raise damaged(self.path, f"{member.name} in it is not what was backed up")


def prepare_for_writing(database: Path) -> None:
    """Bring a database from a backup back to what a store's file is: its copy has no write-ahead log."""
    with translated(database):
        connection = driver.connect(str(database), uri=False, timeout_s=0.0)
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        finally:
            connection.close()
