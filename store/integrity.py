"""Whether knowledge.db is what it says it is: each check names its table and the first documents concerned.

The full-text checks are made in their rank form, which alone compares an index with its content
(https://sqlite.org/fts5.html, section 6.4; a bare check and PRAGMA integrity_check pass over drift). They are
writes: the caller holds the base's lock. Everything is read in pages: memory stays small, and no read transaction
stays open.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from domain.checks import CheckResult, failed, not_run, passed
from store import driver, files, integrity_vectors
from store.connection import open_reader, translate
from store.format_gate import FORMAT_VERSION, FULL_TEXT_TABLES, RESET_HINT
from store.integrity_full_text import COPIED_TABLE, NO_VERDICT_CODES, REBUILD_HINT, copy_for_check, full_text_check
from store.integrity_texts import check_documents, check_texts
from store.integrity_threads import Part, run_beside
from store.naming import NAMED, printable_key, sentence
from store.vector_schema import has_vectors

LOCK_HINT = "run `knowledge verify` again when that is over"
# of a larger file no full-text table is copied into memory, where it takes about a sixth of it
MAX_COPIED_OF_BYTES = 1024 * 1024 * 1024
SUBSTRING_SETTINGS = ("auto", "on", "off")
# what a damaged row does on its way out: SQLite refuses it, or a value is not of the type that was stored
_DAMAGE = (driver.Error, TypeError, ValueError)

Check = Callable[[driver.Connection], CheckResult]
Watch = Callable[[driver.Connection], None]


def check(
    connection: driver.Connection,
    path: Path,
    deep: bool,
    *,
    not_exclusive_because: str = "",
    watch: Watch = lambda connection: None,
) -> tuple[CheckResult, ...]:
    """Every check, in the order of what rests on what. `deep` also puts every document together again.

    `watch` is told of the connections that are opened for it.

    `not_exclusive_because` says why the caller does not hold the base's lock, where it does not: what needs a store
    that stands still is then not run, and says so.
    Raises StorageError and LockedError where the file cannot be read at all.
    """
    if not_exclusive_because:
        results = _content_results(connection, path, deep, not_exclusive_because)
        return (*results, *_full_text_results(connection, path, FULL_TEXT_TABLES, not_exclusive_because))
    with closing(open_reader(path)) as reader, closing(open_reader(path)) as copier:
        watch(reader)
        watch(copier)
        status = files.lstat_or_none(path)
        copied = (COPIED_TABLE,) if status is not None and status.st_size <= MAX_COPIED_OF_BYTES else ()
        others = tuple(table for table in FULL_TEXT_TABLES if table not in copied)
        parts = (
            Part(connection, lambda: _full_text_results(connection, path, others, "")),
            Part(copier, lambda: _copied_results(copier, path, copied)),
            Part(reader, lambda: _content_results(reader, path, deep, "")),
        )
        in_place, in_copy, results = run_beside(parts)
    full_text = {result.table: result for result in (*in_place, *in_copy)}
    return (*results, *(full_text[table] for table in FULL_TEXT_TABLES))


def _content_results(
    connection: driver.Connection, path: Path, deep: bool, not_exclusive_because: str
) -> list[CheckResult]:
    """Everything but full text; reads only."""
    plain: list[tuple[str, str, Check]] = [
        ("foreign_keys", "chunks", _foreign_keys),
        ("identity", "meta", _identity),
        ("chunk_counts", "documents", _chunk_counts),
        ("chunk_ordinals", "chunks", _chunk_ordinals),
        ("titles", "documents", _titles),
        ("removed_keys", "tombstones", _removed_keys),
        ("skipped_keys", "skipped_files", _skipped_keys),
    ]
    results = [_exclusive("file_structure", "", _file_structure, connection, path, not_exclusive_because)]
    results += [_guarded(name, table, run, connection, path) for name, table, run in plain]
    results += _guarded_texts(connection, path)
    results += _vector_results(connection, path, not_exclusive_because)
    if deep:
        results.append(_guarded("documents_whole", "documents", check_documents, connection, path))
    return results


def _full_text_results(
    connection: driver.Connection, path: Path, tables: Sequence[str], not_exclusive_because: str
) -> list[CheckResult]:
    return [
        _exclusive(f"full_text:{table}", table, full_text_check(table), connection, path, not_exclusive_because)
        for table in tables
    ]


def _copied_results(connection: driver.Connection, path: Path, tables: Sequence[str]) -> list[CheckResult]:
    """Full text that another connection than the writing one can check: in a copy."""

    def run(connection: driver.Connection) -> CheckResult:
        copy_for_check(connection)
        return full_text_check(COPIED_TABLE)(connection)

    return [_guarded(f"full_text:{table}", table, run, connection, path) for table in tables]


def _vector_results(connection: driver.Connection, path: Path, not_exclusive_because: str) -> list[CheckResult]:
    """The checks of the vector tables, where there are any."""
    if not has_vectors(connection):
        return []
    plain: list[tuple[str, str, Check]] = [
        ("vectors_linked", "vector_links", integrity_vectors.check_links),
        ("vector_states", "documents", integrity_vectors.check_states),
        ("vector_texts", "vector_links", integrity_vectors.check_texts_of_links),
        ("vectors_sound", "embeddings", integrity_vectors.check_vectors),
    ]
    blocks = ("vector_blocks", "vector_blocks", integrity_vectors.check_blocks)
    results = [_guarded(name, table, run, connection, path) for name, table, run in plain]
    return [*results, _exclusive(*blocks, connection, path, not_exclusive_because)]


def check_searchable(connection: driver.Connection, path: Path) -> CheckResult:
    """Whether the three full-text tables answer a query at all; quick, reads only."""

    def run(connection: driver.Connection) -> CheckResult:
        for table in FULL_TEXT_TABLES:
            connection.execute(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT 1",  # noqa: S608
                ('"searchable"',),
            ).fetchall()
        return passed("index_searchable")

    return _guarded("index_searchable", "", run, connection, path)


def _exclusive(
    name: str, table: str, run: Check, connection: driver.Connection, path: Path, why_not: str
) -> CheckResult:
    if why_not:
        return not_run(name, why_not, LOCK_HINT, table=table)
    return _guarded(name, table, run, connection, path)


def _guarded(name: str, table: str, run: Check, connection: driver.Connection, path: Path) -> CheckResult:
    """A check that runs into damage has found it; one that cannot read at all has found nothing."""
    try:
        return run(connection)
    except _DAMAGE as error:
        _refuse_verdict(error, path)
        hint = REBUILD_HINT if table in FULL_TEXT_TABLES else RESET_HINT
        return failed(name, f"{table or path.name} cannot be read: {error}", hint, table=table)


def _refuse_verdict(error: Exception, path: Path) -> None:
    """Raise what says nothing about the content: a busy, full or unreadable file."""
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int) and code & 0xFF in NO_VERDICT_CODES:
        raise translate(error, path) from error


def _guarded_texts(connection: driver.Connection, path: Path) -> list[CheckResult]:
    """Two results of one reading of the bodies."""
    try:
        return list(check_texts(connection))
    except _DAMAGE as error:
        _refuse_verdict(error, path)
        return [failed("text_hashes", f"chunks cannot be read: {error}", RESET_HINT, table="chunks")]


def _file_structure(connection: driver.Connection) -> CheckResult:
    """PRAGMA integrity_check of the schema with the list of free pages, then of each table with its indexes
    (https://sqlite.org/pragma.html#pragma_integrity_check). A page that two of them claim is seen by its back pointer.

    Asked of the whole file, it would have FTS5 read its tables through as well, which their own checks do better.
    """
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0").fetchall()
    found = {table: _damage_in(connection, table) for table in ("sqlite_schema", *(str(row[0]) for row in tables))}
    damaged = {table: rows for table, rows in found.items() if rows}
    if not damaged:
        return passed("file_structure")
    is_full_text_only = all(table.startswith(FULL_TEXT_TABLES) for table in damaged)
    said = [f"{table}: {' '.join(row.split())}" for table, rows in damaged.items() for row in rows]
    return failed("file_structure", "; ".join(said[:NAMED]), REBUILD_HINT if is_full_text_only else RESET_HINT)


def _damage_in(connection: driver.Connection, table: str) -> list[str]:
    rows = [str(row[0]) for row in connection.execute(f'PRAGMA integrity_check("{table}")').fetchall()]
    return [] if rows == ["ok"] else rows[:NAMED]


def _foreign_keys(connection: driver.Connection) -> CheckResult:
    cursor = connection.execute("PRAGMA foreign_key_check(chunks)")
    first = [f"chunk {row[1]} of {row[0]}" for row in cursor.fetchmany(NAMED)]
    if not first:
        return passed("foreign_keys", table="chunks")
    count = len(first) + sum(1 for _ in cursor)
    return failed(
        "foreign_keys",
        f"{count} chunks belong to no document: {', '.join(first)}",
        RESET_HINT,
        table="chunks",
    )


def _identity(connection: driver.Connection) -> CheckResult:
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    newest = connection.execute(
        "SELECT max(coalesce((SELECT max(generation) FROM documents), 0),"
        " coalesce((SELECT max(generation) FROM tombstones), 0))"
    ).fetchone()[0]
    generation = meta.get("generation", "")
    wrong = [
        name
        for name, is_right in (
            ("format_version", meta.get("format_version") == str(FORMAT_VERSION)),
            ("base_id", bool(meta.get("base_id"))),
            ("store_uuid", len(meta.get("store_uuid", "")) == 32),
            ("commit_seq", meta.get("commit_seq", "").isdigit()),
            ("generation", generation.isdigit() and int(generation) >= newest),
            ("substring_index", meta.get("substring_index") in SUBSTRING_SETTINGS),
            ("complete_ns", not meta.get("complete_ns") or meta["complete_ns"].isdigit()),
        )
        if not is_right
    ]
    if wrong:
        return failed("identity", f"meta is missing or wrong for {', '.join(wrong)}", RESET_HINT, table="meta")
    return passed("identity", table="meta")


def _chunk_counts(connection: driver.Connection) -> CheckResult:
    cursor = connection.execute(
        "SELECT CAST(key AS BLOB) FROM documents WHERE chunk_count < 1"
        " OR chunk_count <> (SELECT count(*) FROM chunks WHERE document = documents.id)"
    )
    return _named(cursor, "chunk_counts", "documents", "have another number of chunks than they say")


def _chunk_ordinals(connection: driver.Connection) -> CheckResult:
    cursor = connection.execute(
        "SELECT CAST(key AS BLOB) FROM documents WHERE (SELECT count(*) <> max(ordinal) + 1 OR min(ordinal) <> 0"
        " FROM chunks WHERE document = documents.id)"
    )
    return _named(cursor, "chunk_ordinals", "chunks", "have chunks that are not numbered from 0 up")


def _titles(connection: driver.Connection) -> CheckResult:
    """A title is kept a second time, as the first of the document's names, which full text vouches for. Compared as
    bytes, since NUL is text; names are cut at their cap."""
    cursor = connection.execute(
        "WITH named AS (SELECT key, CAST(title AS BLOB) AS title, CAST(names AS BLOB) AS names FROM documents"
        " JOIN chunks ON chunks.document = documents.id AND ordinal = 0)"
        " SELECT CAST(key AS BLOB) FROM named WHERE length(title) > 0 AND (length(names) = 0"
        " OR substr(title, 1, min(length(title), length(names))) <> substr(names, 1, min(length(title), length(names)))"
        " OR (length(names) > length(title) AND substr(names, length(title) + 1, 1) <> x'0A'))"
    )
    return _named(cursor, "titles", "documents", "are shown with another title than they were indexed with")


def _removed_keys(connection: driver.Connection) -> CheckResult:
    cursor = connection.execute("SELECT CAST(key AS BLOB) FROM tombstones WHERE key IN (SELECT key FROM documents)")
    return _named(cursor, "removed_keys", "tombstones", "are stored, though marked as removed")


def _skipped_keys(connection: driver.Connection) -> CheckResult:
    cursor = connection.execute("SELECT CAST(key AS BLOB) FROM skipped_files WHERE key IN (SELECT key FROM documents)")
    return _named(cursor, "skipped_keys", "skipped_files", "are stored, though marked as skipped")


def _named(cursor: driver.Cursor, name: str, table: str, what: str) -> CheckResult:
    """A check whose rows are the keys of the documents that fail it."""
    first = [printable_key(row[0]) for row in cursor.fetchmany(NAMED)]
    if not first:
        return passed(name, table=table)
    count = len(first) + sum(1 for _ in cursor)
    return failed(name, sentence(count, what, first), RESET_HINT, table=table, documents=first)
