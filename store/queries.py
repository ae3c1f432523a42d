"""Read statements of knowledge.db: documents, chunks and counts (ranked reads are in store.lexical).

Every function fetches whole or in short pages, so that no cursor stays open and pins the WAL (P25).
"""

import json
from collections.abc import Iterator, Sequence
from itertools import starmap

from domain.files import FileStat
from store import driver
from store.port import FileTrace, StoreCounts, StoredChunk, StoredDocument, StoredFile, StoreIdentity, Visibility

SCAN_PAGE_ROWS = 4096
PREFIX_END = "0"  # the character after "/": keys below "docs/" are those from "docs/" up to "docs0"

_SCAN = """
SELECT key, size_bytes, mtime_ns, ctime_ns, inode, device, checked_ns, file_hash, '' AS reason, warnings, generation
FROM documents WHERE key >= :first AND key < :end
UNION ALL
SELECT key, size_bytes, mtime_ns, ctime_ns, inode, device, checked_ns, x'' AS file_hash, reason, '[]' AS warnings,
       generation
FROM skipped_files WHERE key >= :first AND key < :end
ORDER BY key LIMIT :limit
"""
_DOCUMENT = (
    "id, key, root, title, size_bytes, mtime_ns, checked_ns, indexed_ns, generation, chunk_count, file_hash, warnings"
)


def key_range(prefix: str) -> tuple[str, str]:
    """The half-open range of keys below a prefix that ends in `/`; "" is every key.

    A prefix without the slash names one key. Order is byte-wise, as SQLite's BINARY collation is.
    """
    if not prefix:
        return "", "\U0010ffff"
    if prefix.endswith("/"):
        return prefix, prefix[:-1] + PREFIX_END
    return prefix, prefix + "\x00"


def hidden_clause(visibility: Visibility, column: str = "item_id") -> tuple[str, tuple[str, ...]]:
    """A condition (starting with AND) and its parameters that leaves hidden items out."""
    hidden = tuple(sorted(visibility.hidden_item_ids))
    if not hidden:
        return "", ()
    marks = ", ".join("?" * len(hidden))
    return f" AND ({column} IS NULL OR {column} NOT IN ({marks}))", hidden


def identity(connection: driver.Connection) -> StoreIdentity:
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    return StoreIdentity(
        base_id=meta["base_id"],
        store_uuid=meta["store_uuid"],
        commit_seq=int(meta["commit_seq"]),
        format_version=int(meta["format_version"]),
        substring_index=meta["substring_index"],
        complete_ns=int(meta["complete_ns"]) if meta.get("complete_ns") else None,
        generation=int(meta["generation"]),
    )


def counts(connection: driver.Connection, prefix: str, visibility: Visibility) -> StoreCounts:
    """What a prefix holds. Of the whole store SQLite counts the leaves of the smallest index of each table; of a part
    every document must be looked at."""
    if not prefix and not visibility.hidden_item_ids:
        tables = ("documents", "chunks", "skipped_files")
        return StoreCounts(*(connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables))  # noqa: S608
    first, end = key_range(prefix)
    clause, hidden = hidden_clause(visibility)
    documents, chunks = connection.execute(
        "SELECT count(*), coalesce(sum(chunk_count), 0) FROM documents"  # noqa: S608
        f" WHERE key >= ? AND key < ?{clause}",
        (first, end, *hidden),
    ).fetchone()
    skipped = connection.execute(
        "SELECT count(*) FROM skipped_files WHERE key >= ? AND key < ?", (first, end)
    ).fetchone()
    return StoreCounts(documents=documents, chunks=chunks, skipped=skipped[0])


def document_count(connection: driver.Connection, prefix: str) -> int:
    """How many documents lie below a prefix."""
    row = connection.execute("SELECT count(*) FROM documents WHERE key >= ? AND key < ?", key_range(prefix)).fetchone()
    return int(row[0])


def stored_files(connection: driver.Connection, prefix: str) -> Iterator[StoredFile]:
    """Documents and skipped files below a prefix, in key order, `SCAN_PAGE_ROWS` a statement."""
    first, end = key_range(prefix)
    while True:
        rows = connection.execute(_SCAN, {"first": first, "end": end, "limit": SCAN_PAGE_ROWS}).fetchall()
        for row in rows:
            # taken apart by name, for that takes half as long as slices and stars
            key, size, modified, changed, inode, device, checked, file_hash, reason, warnings, generation = row
            stat = FileStat(size, modified, changed, inode, device)
            yield StoredFile(key, stat, checked, file_hash, reason, warnings, generation)
        if len(rows) < SCAN_PAGE_ROWS:
            return
        first = rows[-1][0] + "\x00"


def document(connection: driver.Connection, key: str, visibility: Visibility) -> StoredDocument | None:
    clause, hidden = hidden_clause(visibility)
    row = connection.execute(
        f"SELECT {_DOCUMENT} FROM documents WHERE key = ?{clause}",  # noqa: S608
        (key, *hidden),
    ).fetchone()
    return StoredDocument(*row) if row is not None else None


def file_trace(connection: driver.Connection, key: str) -> FileTrace | None:
    row = connection.execute(
        "SELECT '', checked_ns, generation, created_generation, vector_state FROM documents WHERE key = ?"
        " UNION ALL SELECT reason, checked_ns, generation, 0, 'none' FROM skipped_files WHERE key = ?",
        (key, key),
    ).fetchone()
    return FileTrace(*row) if row is not None else None


def documents(
    connection: driver.Connection, prefix: str, after: str, limit: int, visibility: Visibility
) -> Sequence[StoredDocument]:
    first, end = key_range(prefix)
    clause, hidden = hidden_clause(visibility)
    rows = connection.execute(
        f"SELECT {_DOCUMENT} FROM documents WHERE key >= ? AND key > ? AND key < ?{clause}"  # noqa: S608
        " ORDER BY key LIMIT ?",
        (first, after, end, *hidden, limit),
    ).fetchall()
    return list(starmap(StoredDocument, rows))


def chunks(
    connection: driver.Connection, key: str, first: int, last: int | None, visibility: Visibility
) -> Sequence[StoredChunk]:
    """A document's chunks by ordinal, `first` to `last` inclusive."""
    clause, hidden = hidden_clause(visibility)
    rows = connection.execute(
        "SELECT key, ordinal, title, heading_path, lead, body, start_line, end_line"  # noqa: S608
        " FROM chunks JOIN documents ON documents.id = chunks.document"
        f" WHERE documents.key = ? AND ordinal >= ? AND ordinal <= ?{clause} ORDER BY ordinal",
        (key, max(first, 0), 2**62 if last is None else last, *hidden),
    ).fetchall()
    return list(starmap(StoredChunk, rows))


def text(connection: driver.Connection, key: str, visibility: Visibility) -> str | None:
    """Lead and body of every chunk in order, then the tail; None for a key that is not stored."""
    clause, hidden = hidden_clause(visibility)
    row = connection.execute(
        f"SELECT id, tail FROM documents WHERE key = ?{clause}",  # noqa: S608
        (key, *hidden),
    ).fetchone()
    if row is None:
        return None
    parts = connection.execute(
        "SELECT lead, body FROM chunks WHERE document = ? ORDER BY ordinal", (row[0],)
    ).fetchall()
    return "".join([piece for pair in parts for piece in pair]) + str(row[1])


def skipped(connection: driver.Connection, prefix: str, limit: int) -> Sequence[StoredFile]:
    first, end = key_range(prefix)
    rows = connection.execute(
        "SELECT key, size_bytes, mtime_ns, ctime_ns, inode, device, checked_ns, reason FROM skipped_files"
        " WHERE key >= ? AND key < ? ORDER BY key LIMIT ?",
        (first, end, limit),
    ).fetchall()
    return [StoredFile(row[0], FileStat(*row[1:6]), row[6], b"", row[7], "[]") for row in rows]


def moved_keys(connection: driver.Connection, keys: Sequence[str], generation: int, used: set[int]) -> set[str]:
    """Of these stored keys, those whose content this generation has added at another path, one new document for
    each old one (R34). `used` holds the new documents that stand for an old one already, and is added to."""
    rows = connection.execute(
        "SELECT old.key, new.id FROM json_each(?) AS wanted JOIN documents AS old ON old.key = wanted.value"
        " JOIN documents AS new ON new.file_hash = old.file_hash"
        " WHERE new.created_generation = ? AND old.created_generation <> new.created_generation"
        " ORDER BY old.key, new.key",
        (json.dumps(list(keys)), generation),
    ).fetchall()
    moved: set[str] = set()
    for old, new in rows:
        if old not in moved and new not in used:
            moved.add(old)
            used.add(new)
    return moved


def highest_generation(connection: driver.Connection) -> int:
    """The highest generation that meta, a document or a tombstone knows (R25): each write raises that of meta."""
    row = connection.execute(
        "SELECT max(coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'generation'), 0),"
        " coalesce((SELECT max(generation) FROM tombstones), 0))"
    ).fetchone()
    return int(row[0])
