"""The format gate of knowledge.db: opened as it is, or refused both ways with what to do (R3, S0-57..59, S0-83)."""

import hashlib
import os
from functools import cache
from pathlib import Path

from domain.errors import BaseMismatchError, FormatError, IntegrityError, NotBuiltError
from store import driver
from store.connection import immediate, translated
from store.vector_schema import (
    VECTOR_FINGERPRINT,
    VECTOR_OBJECTS,
    drop_vector_schema,
    vector_fingerprint,
    vector_objects,
    vector_statements,
)

FORMAT_VERSION = 1
# SHA-256 over the core objects of schema.sql as SQLite keeps them; a contract test holds the two together
SCHEMA_FINGERPRINT = "f13838e9cf987ffc98c9dd434052292e99caa52a6f00753001e0be00e06aa26c"

FULL_TEXT_TABLES = ("chunks_fts", "chunks_fts_exact", "chunks_fts_tri")
CORE_OBJECTS = (
    "meta",
    "documents",
    "chunks",
    "chunks_by_document",
    "chunks_tri_source",
    *FULL_TEXT_TABLES,
    "chunks_vocabulary",
    "chunks_stems",
    "tombstones",
    "skipped_files",
)
# objects before what they read from: vocabularies, full text, view, tables (S0-66)
DROP_ORDER = (
    ("TABLE", "chunks_vocabulary"),
    ("TABLE", "chunks_stems"),
    ("TABLE", "chunks_fts_tri"),
    ("TABLE", "chunks_fts_exact"),
    ("TABLE", "chunks_fts"),
    ("VIEW", "chunks_tri_source"),
    ("TABLE", "chunks"),
    ("TABLE", "documents"),
    ("TABLE", "tombstones"),
    ("TABLE", "skipped_files"),
    ("TABLE", "meta"),
)
# Measured: the full-text hash must hold a whole group (one flush a commit), leaves that fill a page of 8 KiB and
# merging eight segments at a time are a fifth less work than the defaults.
FULL_TEXT_OPTIONS = (("hashsize", 64 * 1024 * 1024), ("pgsz", 8100), ("automerge", 8))
RESET_HINT = "run `knowledge reset --force`, then `knowledge index`: everything is made again from the files"


@cache
def schema_statements() -> tuple[str, ...]:
    text = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    return tuple(statement.strip() for statement in text.split("\n;\n"))


def create_schema(connection: driver.Connection, *, base_id: str, substring_index: str, generation: int = 0) -> None:
    """Make every core object and pin the identity; the caller holds the transaction."""
    for statement in schema_statements():
        connection.execute(statement)
    for table in FULL_TEXT_TABLES:
        for option, value in FULL_TEXT_OPTIONS:
            connection.execute(f"INSERT INTO {table}({table}, rank) VALUES (?, ?)", (option, value))  # noqa: S608
    pin(connection, base_id=base_id, substring_index=substring_index, generation=generation)


def pin(connection: driver.Connection, *, base_id: str, substring_index: str, generation: int) -> None:
    rows = {
        "format_version": str(FORMAT_VERSION),
        "base_id": base_id,
        "store_uuid": os.urandom(16).hex(),
        "commit_seq": "0",
        "generation": str(generation),
        "substring_index": substring_index,
        "complete_ns": "",
    }
    connection.executemany("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)", list(rows.items()))


def drop_schema(connection: driver.Connection) -> None:
    """Drop every object of ours; works where full text has drifted, a delete would not (S0-67)."""
    drop_vector_schema(connection)
    for kind, name in DROP_ORDER:
        connection.execute(f"DROP {kind} IF EXISTS {name}")


def fingerprint(connection: driver.Connection) -> str:
    """SHA-256 over the core objects' names and SQL, as kept in sqlite_schema; vector objects have their own."""
    core = {name: sql for name, sql in _objects(connection).items() if name not in VECTOR_OBJECTS}
    return hashlib.sha256(repr(sorted(core.items())).encode()).hexdigest()


def _objects(connection: driver.Connection) -> dict[str, str]:
    """The SQL of our objects by name; triggers and foreign views and indexes come along, since none may be there."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    return {
        name: sql or ""
        for kind, name, sql in rows
        if name in CORE_OBJECTS
        or name in VECTOR_OBJECTS
        or kind in ("trigger", "view")
        or (kind == "index" and sql is not None)
    }


def check(connection: driver.Connection, path: Path, *, base_id: str | None) -> None:
    """Refuse a store of another format or another base, or one that has lost its identity; reads only.

    Raises FormatError (older, newer, other shape), BaseMismatchError, IntegrityError (no database, or rows of meta
    are missing), NotBuiltError (an empty file, as a first run that was cut short leaves it).
    """
    meta = check_format(connection, path, base_id=base_id)
    numbers = ("commit_seq", "generation")
    lost = [name for name in ("base_id", "store_uuid", "substring_index") if not meta.get(name)]
    lost += [name for name in numbers if not _is_number(meta.get(name, ""))]
    lost += ["complete_ns"] * (meta.get("complete_ns", "") != "" and not _is_number(meta["complete_ns"]))
    if lost:
        raise IntegrityError(f"{path} has lost its identity ({', '.join(lost)})", hint=RESET_HINT)


def check_format(connection: driver.Connection, path: Path, *, base_id: str | None) -> dict[str, str]:
    """The rows of meta of a store of this format and base. Raises as `check` does, but for rows that are missing."""
    with translated(path):
        objects = _objects(connection)
        if is_foreign(connection) or is_blank(connection):
            _refuse_foreign(connection, path)
        has_meta = objects.get("meta") == _expected_objects()["meta"]
        meta = dict(connection.execute("SELECT key, value FROM meta").fetchall()) if has_meta else {}
        found = fingerprint(connection)
    version = meta.get("format_version", "")
    if _is_number(version) and int(version) > FORMAT_VERSION:
        raise FormatError(
            f"{path} has format {version}, this program knows {FORMAT_VERSION}",
            hint="upgrade this program to the version that wrote it",
        )
    if _is_number(version) and int(version) < FORMAT_VERSION:
        raise FormatError(f"{path} has the older format {version} (now {FORMAT_VERSION})", hint=RESET_HINT)
    if found != SCHEMA_FINGERPRINT or not _has_whole_vectors_or_none(objects):
        raise FormatError(
            f"{path} has another shape than format {FORMAT_VERSION}: {_difference(objects)}", hint=RESET_HINT
        )
    if not _is_number(version):
        raise FormatError(f"{path} does not say its format version", hint=RESET_HINT)
    if base_id is not None and meta.get("base_id") != base_id:
        raise BaseMismatchError(
            f"{path} belongs to another base than state.db beside it",
            hint=f"put the file back where it came from, or {RESET_HINT}",
        )
    return meta


def _has_whole_vectors_or_none(objects: dict[str, str]) -> bool:
    vectors = vector_objects(objects)
    return not vectors or vector_fingerprint(vectors) == VECTOR_FINGERPRINT


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def is_foreign(connection: driver.Connection) -> bool:
    """Whether this is another program's database: it holds something, and less than half of what ours do (one
    that was broken lacks an object or two, while `documents` and `meta` are anybody's names)."""
    names = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema").fetchall()}
    return bool(names) and len(names & set(CORE_OBJECTS)) * 2 < len(CORE_OBJECTS)


def is_blank(connection: driver.Connection) -> bool:
    """Whether the file holds no object at all: a new file, to be filled."""
    return int(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]) == 0


def create_if_blank(connection: driver.Connection, path: Path, *, base_id: str, substring_index: str) -> bool:
    """Fill a blank file in one transaction; says whether it was blank."""
    with translated(path):
        if not is_blank(connection):
            return False
        with immediate(connection):
            if is_blank(connection):
                create_schema(connection, base_id=base_id, substring_index=substring_index)
        return True


def _refuse_foreign(connection: driver.Connection, path: Path) -> None:
    others = connection.execute("SELECT name FROM sqlite_schema LIMIT 3").fetchall()
    if others:
        raise FormatError(
            f"{path} is a database of another program (it holds {', '.join(str(row[0]) for row in others)})",
            hint="move it away, or choose another directory",
        )
    raise NotBuiltError(f"{path} is empty: the index was not made yet", hint="run `knowledge index YOUR_FOLDER`")


def _difference(objects: dict[str, str]) -> str:
    """What is missing, foreign or changed, in words."""
    expected = _expected_objects() | (_expected_vectors() if vector_objects(objects) else {})
    missing = sorted(set(expected) - set(objects))
    foreign = sorted(set(objects) - set(expected))
    changed = sorted(name for name in set(expected) & set(objects) if expected[name] != objects[name])
    parts = [
        f"{label} {', '.join(names)}"
        for label, names in (("missing", missing), ("not ours", foreign), ("changed", changed))
        if names
    ]
    return "; ".join(parts) or "the objects differ in their order"


@cache
def _expected_objects() -> dict[str, str]:
    return _objects_of(schema_statements())


@cache
def _expected_vectors() -> dict[str, str]:
    return vector_objects(_objects_of((*schema_statements(), *vector_statements())))


def _objects_of(statements: tuple[str, ...]) -> dict[str, str]:
    connection = driver.connect(":memory:", uri=False, timeout_s=0.0)
    try:
        for statement in statements:
            connection.execute(statement)
        return _objects(connection)
    finally:
        connection.close()
