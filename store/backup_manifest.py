"""What a backup says of itself: written once, and believed only when every part of it has the right form."""

import json
import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from domain.errors import FormatError, IntegrityError, UnsafePlaceError, UsageError
from domain.layout import DATABASE_NAME, STATE_NAME
from store import files, format_gate
from store.state_schema import STEPS

MANIFEST_NAME = "knowledge-backup.json"
MAGIC = MANIFEST_NAME.encode() + b"\0"  # a tar begins with the name of its first entry
BACKUP_VERSION = 1
MANIFEST_BYTES = 4096  # padded with blanks to it: the hashes are known only when the databases have been written
_HEADER_BYTES = 512
_NUMBERS = ("format_version", "state_version", "commit_seq", "generation", "documents", "chunks", "created_ns")


class Member(NamedTuple):
    """A database in a backup."""

    name: str
    size_bytes: int
    sha256: str  # hexadecimal


class Manifest(NamedTuple):
    format_version: int  # of knowledge.db
    state_version: int  # the step of state.db
    base_id: str
    store_uuid: str
    commit_seq: int
    generation: int  # the highest that either database knows
    documents: int
    chunks: int
    created_ns: int
    members: tuple[Member, ...]  # state.db, knowledge.db

    def size_of(self, name: str) -> int:
        return next((member.size_bytes for member in self.members if member.name == name), 0)


def encode(manifest: Manifest) -> bytes:
    """The manifest as it stands in the file, always of `MANIFEST_BYTES`."""
    created = datetime.fromtimestamp(manifest.created_ns / 1e9, tz=UTC).isoformat(timespec="seconds")
    value = {"kind": "knowledge backup", "version": BACKUP_VERSION, "created_at": created, **manifest._asdict()}
    value["members"] = [member._asdict() for member in manifest.members]
    return json.dumps(value, indent=1).encode().ljust(MANIFEST_BYTES - 1) + b"\n"


def read_manifest(path: Path) -> tuple[IO[bytes], Manifest]:
    """The open file of a backup with its manifest.

    Raises FormatError for what is no backup, or one of another version; IntegrityError where the manifest cannot be
    believed; UsageError where there is no such file, UnsafePlaceError where it is none, StorageError.
    """
    file = _opened(path)
    try:
        head = file.read(_HEADER_BYTES + MANIFEST_BYTES)
        if not head.startswith(MAGIC):
            raise FormatError(
                f"{path} is no backup of this program", hint="name a file that `knowledge backup` has written"
            )
        return file, _decoded(path, head[_HEADER_BYTES:])
    except BaseException:
        file.close()
        raise


def _opened(path: Path) -> IO[bytes]:
    with files.storage_errors(path, "read"):
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(f"there is no file {path}", hint="name a backup") from None
        file = os.fdopen(descriptor, "rb") if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    if file is None:
        os.close(descriptor)
        raise UnsafePlaceError(f"{path} is not a regular file", hint="name a file that `knowledge backup` has written")
    return file


def _decoded(path: Path, raw: bytes) -> Manifest:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise damaged(path, "its manifest cannot be read") from error
    if not isinstance(value, dict) or not _is_number(value.get("version")):
        raise damaged(path, "its manifest cannot be read")
    _require_known(path, "is a backup", value["version"], BACKUP_VERSION)
    manifest = _manifest(path, value)
    _require_known(path, f"holds a {DATABASE_NAME}", manifest.format_version, format_gate.FORMAT_VERSION)
    _require_known(path, f"holds a {STATE_NAME}", manifest.state_version, len(STEPS))
    return manifest


def _require_known(path: Path, what: str, found: int, known: int) -> None:
    """Older databases come back too: state.db is brought up to date when it is opened, knowledge.db by an upgrade."""
    if found > known:
        raise FormatError(f"{path} {what} of format {found}, this program knows {known}", hint=format_gate.PROGRAM_HINT)


def _manifest(path: Path, value: dict[str, Any]) -> Manifest:
    members = value.get("members")
    has_names = all(isinstance(value.get(name), str) and value[name] for name in ("base_id", "store_uuid"))
    if not (has_names and all(_is_number(value.get(name)) for name in _NUMBERS) and isinstance(members, list)):
        raise damaged(path, "its manifest lacks something")
    found = tuple(_member(path, member) for member in members)
    if [member.name for member in found] != [STATE_NAME, DATABASE_NAME]:
        raise damaged(path, "its manifest lacks something")
    return Manifest(**{name: value[name] for name in Manifest._fields if name != "members"}, members=found)


def _member(path: Path, value: object) -> Member:
    if isinstance(value, dict) and isinstance(value.get("name"), str) and _is_number(value.get("size_bytes")):
        digest = value.get("sha256")
        if isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest):
            return Member(value["name"], value["size_bytes"], digest)
    raise damaged(path, "its manifest lacks something")


def _is_number(value: object) -> bool:
    """From 0 to what SQLite can hold."""
    return type(value) is int and 0 <= value < 2**63


def damaged(path: Path, what: str) -> IntegrityError:
    return IntegrityError(f"the backup {path} is damaged: {what}", hint="use another backup; nothing was changed")
