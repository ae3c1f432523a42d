"""The format gate of knowledge.db: opened as it is, or refused both ways with what to do (R3, S0-57..59, S0-83)."""

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from domain.errors import BaseMismatchError, FormatError, IntegrityError, NotBuiltError
from domain.layout import LOCK_NAME
from store import driver
from store.connection import immediate, translated
from store.vector_schema import (
    VECTOR_FINGERPRINT,
    VECTOR_OBJECTS,
    VECTORS_LAYOUT,
    VECTORS_LAYOUT_KEY,
    drop_vector_schema,
    vector_fingerprint,
    vector_objects,
    vector_statements,
)

FORMAT_VERSION = 2
# SHA-256 over the core objects of schema.sql as SQLite keeps them; a contract test holds the two together
SCHEMA_FINGERPRINT = "5ea6081dccbb213515c1cebc56e8107952ab484b5e3ee5df94cc53127c578d58"

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
UPGRADE_HINT = (
    "run `knowledge upgrade`: a new index is made beside this one and takes over its vectors; or start anew with"
    " `knowledge reset --force`, then `knowledge index`"
)
PROGRAM_HINT = "upgrade this program to the version that wrote it"
# rows of meta that every format has, and that nobody else's table of this name would hold together
IDENTIFYING_ROWS = ("format_version", "base_id", "store_uuid")
MAX_META_ROWS = 1000


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
    make_droppable(connection, FULL_TEXT_TABLES)
    for kind, name in DROP_ORDER:
        connection.execute(f"DROP {kind} IF EXISTS {name}")


def make_droppable(connection: driver.Connection, names: Iterable[str]) -> None:
    """FTS5 opens a table before it drops it, and opens none that has lost its settings: these get the least of them."""
    there = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema").fetchall()}
    for name in there.intersection(names, FULL_TEXT_TABLES):
        connection.execute(f"CREATE TABLE IF NOT EXISTS {name}_config (k PRIMARY KEY, v) WITHOUT ROWID")
        connection.execute(f"INSERT OR IGNORE INTO {name}_config VALUES ('version', 4)")  # noqa: S608


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
        meta = meta_rows(connection)
        found = fingerprint(connection)
    version, layout = meta.get("format_version", ""), meta.get(VECTORS_LAYOUT_KEY, str(VECTORS_LAYOUT))
    if _is_number(version) and int(version) > FORMAT_VERSION:
        raise FormatError(f"{path} has format {version}, this program knows {FORMAT_VERSION}", hint=PROGRAM_HINT)
    if _is_number(version) and int(version) < FORMAT_VERSION:
        raise _other_format(path, f"{path} has the older format {version} (now {FORMAT_VERSION})", meta, base_id)
    if found != SCHEMA_FINGERPRINT or not _has_whole_vectors_or_none(objects):
        difference = f"another shape than format {FORMAT_VERSION}: {_difference(objects)}"
        raise _other_format(path, f"{path} has {difference}", meta, base_id)
    if not _is_number(version):
        raise _other_format(path, f"{path} does not say its format version", meta, base_id)
    if base_id is not None and meta.get("base_id") != base_id:
        raise _other_base(path)
    if layout != str(VECTORS_LAYOUT):
        known = f"this program knows {VECTORS_LAYOUT}"
        raise FormatError(f"the vectors of {path} have the layout {layout!r}, {known}", hint=PROGRAM_HINT)
    return meta


def meta_rows(connection: driver.Connection) -> dict[str, str]:
    """The rows of meta of a store of any format; none where there is no such table."""
    columns = {str(row[1]) for row in connection.execute("PRAGMA table_info(meta)").fetchall()}
    if not columns >= {"key", "value"}:
        return {}
    rows = connection.execute("SELECT key, value FROM meta LIMIT ?", (MAX_META_ROWS,)).fetchall()
    return {key: value for key, value in rows if isinstance(key, str) and isinstance(value, str)}


def _other_format(path: Path, message: str, meta: dict[str, str], base_id: str | None) -> FormatError:
    """The refusal of a store of another format: an upgrade needs to know whose it is."""
    stored_id = meta.get("base_id")
    if not stored_id:
        return FormatError(message, hint=RESET_HINT)
    if base_id is not None and stored_id != base_id:
        return _other_base(path)
    error = FormatError(message, hint=_upgrade_hint(path))
    error.is_upgradable = True
    return error


def _upgrade_hint(path: Path) -> str:
    from store.lock import holder_of, is_held  # only for this sentence

    lock = path.with_name(LOCK_NAME)
    holder = holder_of(lock)
    if holder.startswith("`knowledge upgrade`") and is_held(lock):
        return f"{holder} is making a new one: wait for it to end"
    return UPGRADE_HINT


def _other_base(path: Path) -> BaseMismatchError:
    return BaseMismatchError(
        f"{path} belongs to another base than state.db beside it",
        hint=f"put the file back where it came from, or {RESET_HINT}",
    )


def _has_whole_vectors_or_none(objects: dict[str, str]) -> bool:
    vectors = vector_objects(objects)
    return not vectors or vector_fingerprint(vectors) == VECTOR_FINGERPRINT


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def is_foreign(connection: driver.Connection) -> bool:
    """Whether this is another program's database: it holds something, and less than half of what ours do (one
    that was broken lacks an object or two, while `documents` and `meta` are anybody's names), nor the rows of meta that
    an index of any format has."""
    names = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema").fetchall()}
    if not names or len(names & set(CORE_OBJECTS)) * 2 >= len(CORE_OBJECTS):
        return False
    meta = meta_rows(connection)
    return not all(meta.get(name) for name in IDENTIFYING_ROWS)


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
    expected = _expected_objects() | (expected_vectors() if vector_objects(objects) else {})
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
def expected_vectors() -> dict[str, str]:
    """The SQL of every vector object by its name, as SQLite keeps it."""
    return vector_objects(_objects_of((*schema_statements(), *vector_statements())))


def _objects_of(statements: tuple[str, ...]) -> dict[str, str]:
    connection = driver.connect(":memory:", uri=False, timeout_s=0.0)
    try:
        for statement in statements:
            connection.execute(statement)
        return _objects(connection)
    finally:
        connection.close()
