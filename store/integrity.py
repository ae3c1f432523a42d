"""Whether knowledge.db is what it says it is: each check names its table and the first documents concerned.

The full-text checks are made in their rank form, which alone compares an index with its content
(https://sqlite.org/fts5.html, section 6.4; a bare check and PRAGMA integrity_check pass over drift). They are
writes: the caller holds the base's lock. Everything is read in pages: memory stays small, and no read transaction
stays open.
"""

from collections.abc import Callable
from pathlib import Path

from domain.checks import CheckResult, failed, not_run, passed
from store import driver, integrity_vectors
from store.connection import translate
from store.format_gate import FORMAT_VERSION, FULL_TEXT_TABLES, RESET_HINT
from store.integrity_texts import check_documents, check_texts
from store.naming import NAMED, keys_of_chunks, printable_key, sentence
from store.vector_schema import has_vectors

REBUILD_HINT = "run `knowledge rebuild`: full text is made again from what is stored"
LOCK_HINT = "run `knowledge verify` again when that is over"
SUBSTRING_SETTINGS = ("auto", "on", "off")
# SQLITE_PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN: the check could not be made
_NO_VERDICT_CODES = frozenset({3, 5, 6, 7, 8, 9, 10, 13, 14})
# what a damaged row does on its way out: SQLite refuses it, or a value is not of the type that was stored
_DAMAGE = (driver.Error, TypeError, ValueError)

Check = Callable[[driver.Connection], CheckResult]


def check(
    connection: driver.Connection, path: Path, deep: bool, *, not_exclusive_because: str = ""
) -> tuple[CheckResult, ...]:
    """Every check, in the order of what rests on what. `deep` also puts every document together again.

    `not_exclusive_because` says why the caller does not hold the base's lock, where it does not: what needs a store
    that stands still is then not run, and says so.
    Raises StorageError and LockedError where the file cannot be read at all.
    """
    plain: list[tuple[str, str, Check]] = [
        ("foreign_keys", "chunks", _foreign_keys),
        ("identity", "meta", _identity),
        ("chunk_counts", "documents", _chunk_counts),
        ("chunk_ordinals", "chunks", _chunk_ordinals),
        ("removed_keys", "tombstones", _removed_keys),
        ("skipped_keys", "skipped_files", _skipped_keys),
    ]
    results = [_exclusive("file_structure", "", _file_structure, connection, path, not_exclusive_because)]
    results += [_guarded(name, table, run, connection, path) for name, table, run in plain]
    results += _guarded_texts(connection, path)
    results += _vector_results(connection, path, not_exclusive_because)
    if deep:
        results.append(_guarded("documents_whole", "documents", check_documents, connection, path))
    results += [
        _exclusive(f"full_text:{table}", table, _full_text_check(table), connection, path, not_exclusive_because)
        for table in FULL_TEXT_TABLES
    ]
    return tuple(results)


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
    if isinstance(code, int) and code & 0xFF in _NO_VERDICT_CODES:
        raise translate(error, path) from error


def _guarded_texts(connection: driver.Connection, path: Path) -> list[CheckResult]:
    """Two results of one reading of the bodies."""
    try:
        return list(check_texts(connection))
    except _DAMAGE as error:
        _refuse_verdict(error, path)
        return [failed("text_hashes", f"chunks cannot be read: {error}", RESET_HINT, table="chunks")]


def _file_structure(connection: driver.Connection) -> CheckResult:
    """PRAGMA integrity_check (https://sqlite.org/pragma.html#pragma_integrity_check)."""
    rows = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(5)").fetchall()]
    if rows == ["ok"]:
        return passed("file_structure")
    is_full_text_only = all("fts5" in row.lower() for row in rows)
    hint = REBUILD_HINT if is_full_text_only else RESET_HINT
    return failed("file_structure", "; ".join(" ".join(row.split()) for row in rows), hint)


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


def _full_text_check(table: str) -> Check:
    """One full-text table: a row for each chunk and no other, and what it holds is what the chunks say."""
    content = "chunks" if table != "chunks_fts_tri" else "chunks_tri_source"
    rows = f"{table}_docsize"  # one row an indexed chunk (https://sqlite.org/fts5.html, appendix)

    def run(connection: driver.Connection) -> CheckResult:
        name = f"full_text:{table}"
        missing = connection.execute(
            f"SELECT id FROM {content} WHERE id NOT IN (SELECT id FROM {rows})"  # noqa: S608
        )
        first = [row[0] for row in missing.fetchmany(NAMED)]
        count = len(first) + sum(1 for _ in missing)
        ghosts = connection.execute(
            f"SELECT count(*) FROM {rows} WHERE id NOT IN (SELECT id FROM {content})"  # noqa: S608
        ).fetchone()[0]
        found = [f"{count} chunks are missing in it"] * bool(count)
        found += [f"it holds {ghosts} chunks that are no more"] * bool(ghosts)
        found += [f"it differs from the text ({words})" for words in _rank_check(connection, table)]
        if not found:
            return passed(name, table=table)
        keys = keys_of_chunks(connection, first)
        return failed(name, f"{table}: {'; '.join(found)}", REBUILD_HINT, table=table, documents=keys)

    return run


def _rank_check(connection: driver.Connection, table: str) -> list[str]:
    """The rank form of FTS5's own check; SQLite's words where it fails."""
    try:
        connection.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
    except driver.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in _NO_VERDICT_CODES:
            raise
        return [str(error)]
    return []
