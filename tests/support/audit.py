"""A second opinion on knowledge.db, sharing no code with the product: what it says and what `verify` says must agree.

Works by other means: every row is read into memory, full text is compared entry by entry with a fresh index over the
same chunks (fts5vocab of type instance), and SQLite's own checks are asked last. For small stores in tests.
"""

import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.audit_vectors import VectorOf, audit_vectors

try:
    from pysqlite3 import dbapi2 as engine
except ImportError:
    import sqlite3 as engine

TOKENIZERS = {
    "chunks_fts": "tokenize='porter unicode61'",
    "chunks_fts_exact": "tokenize='unicode61'",
    "chunks_fts_tri": "tokenize='trigram'",
}
SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


class Chunk(NamedTuple):
    id: int
    document: int
    ordinal: int
    heading_path: bytes
    lead: bytes
    body: bytes
    names: bytes
    text_hash: bytes
    in_tri: int


def audit(path: Path, *, deep: bool = True, vector_of: VectorOf | None = None) -> list[str]:
    """What is wrong with a store, in words; [] for a sound one. Opens it for writing, since FTS5's check is a write.

    `vector_of` says what the vector of a text must be, so that one on a wrong chunk is seen (P6).
    """
    connection = engine.connect(str(path), isolation_level=None)
    try:
        return _audit(connection, deep) + audit_vectors(connection, vector_of)
    except (engine.Error, TypeError, ValueError) as error:
        return [f"unreadable: {error}"]
    finally:
        connection.close()


def _audit(connection: Any, deep: bool) -> list[str]:
    chunks = [
        Chunk(*row)
        for row in connection.execute(
            "SELECT id, document, ordinal, CAST(heading_path AS BLOB), CAST(lead AS BLOB), CAST(body AS BLOB),"
            " CAST(names AS BLOB), text_hash, in_tri FROM chunks"
        )
    ]
    documents = connection.execute(
        "SELECT id, key, chunk_count, file_hash, CAST(tail AS BLOB), generation, CAST(title AS BLOB) FROM documents"
    ).fetchall()
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    problems = _documents(documents, chunks, deep)
    problems += _chunks(chunks, {row[0] for row in documents}, meta.get("substring_index", ""))
    problems += _meta(meta, documents)
    keys = {row[1] for row in documents}
    for table in ("tombstones", "skipped_files"):
        gone = {row[0] for row in connection.execute(f"SELECT key FROM {table}")}  # noqa: S608
        problems += [f"{table}: {key} is a document" for key in sorted(gone & keys)]
    for table in TOKENIZERS:
        problems += _full_text(connection, table, chunks)
    problems += [f"structure: {row[0]}" for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    problems += [f"foreign key: {row}" for row in connection.execute("PRAGMA foreign_key_check")]
    return problems


def _documents(documents: list[Any], chunks: list[Chunk], deep: bool) -> list[str]:
    problems: list[str] = []
    by_document: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        by_document.setdefault(chunk.document, []).append(chunk)
    for number, key, count, file_hash, tail, _, title in documents:
        own = sorted(by_document.get(number, []), key=lambda chunk: chunk.ordinal)
        if len(own) != count or not own:
            problems.append(f"{key}: {count} chunks said, {len(own)} there")
        if [chunk.ordinal for chunk in own] != list(range(len(own))):
            problems.append(f"{key}: ordinals {[chunk.ordinal for chunk in own]}")
        whole = b"".join(part for chunk in own for part in (chunk.lead, chunk.body)) + tail
        if deep and hashlib.sha256(whole).digest() != file_hash:
            problems.append(f"{key}: does not give back its file")
        names = own[0].names if own else b""
        if names and not f"{names.decode()}\n".startswith(f"{title.decode()}\n") and not title.startswith(names):
            problems.append(f"{key}: its title is not the first of its names")
    return problems


def _chunks(chunks: list[Chunk], documents: set[int], setting: str) -> list[str]:
    problems = [f"chunk {chunk.id}: of no document" for chunk in chunks if chunk.document not in documents]
    for chunk in chunks:
        if hashlib.blake2b(chunk.body, digest_size=12).digest() != chunk.text_hash:
            problems.append(f"chunk {chunk.id}: body has another hash")
        text = (chunk.heading_path + b" " + chunk.body).decode("utf-8", "replace")
        wanted = {"on": True, "off": False}.get(setting, SPACELESS.search(text) is not None)
        if bool(chunk.in_tri) != wanted:
            problems.append(f"chunk {chunk.id}: in_tri is {chunk.in_tri}")
    return problems


def _meta(meta: dict[str, str], documents: list[Any]) -> list[str]:
    wanted = {"format_version": r"\d+", "base_id": ".+", "store_uuid": "[0-9a-f]{32}", "commit_seq": r"\d+"}
    wanted |= {"generation": r"\d+", "substring_index": "auto|on|off", "complete_ns": r"\d*"}
    problems = [
        f"meta: {name}={meta.get(name)!r}"
        for name, form in wanted.items()
        if not re.fullmatch(form, meta.get(name, "?!"))
    ]
    newest = max((row[5] for row in documents), default=0)
    if not problems and newest > int(meta["generation"]):
        problems.append(f"meta: generation {meta['generation']} below {newest}")
    return problems


def _full_text(connection: Any, table: str, chunks: list[Chunk]) -> list[str]:
    """Entries of the stored index against those of a fresh one, then FTS5's own word."""
    wanted = [chunk for chunk in chunks if table != "chunks_fts_tri" or chunk.in_tri == 1]
    try:
        stored = _entries(connection, table, "temp")
        sizes = dict(connection.execute(f"SELECT id, sz FROM {table}_docsize").fetchall())  # noqa: S608
    except engine.DatabaseError as error:
        return [f"{table}: {error}"]
    fresh = engine.connect(":memory:")
    try:
        fresh.execute(f"CREATE VIRTUAL TABLE {table} USING fts5(body, heading_path, names, {TOKENIZERS[table]})")
        fresh.executemany(
            f"INSERT INTO {table}(rowid, body, heading_path, names) VALUES (?, ?, ?, ?)",  # noqa: S608
            [(c.id, *(part.decode("utf-8", "replace") for part in (c.body, c.heading_path, c.names))) for c in wanted],
        )
        expected = _entries(fresh, table, "temp")
        expected_sizes = dict(fresh.execute(f"SELECT id, sz FROM {table}_docsize").fetchall())  # noqa: S608
    finally:
        fresh.close()
    problems = [f"{table}: {len(stored ^ expected)} entries differ"] * (stored != expected)
    problems += [f"{table}: sizes of rows differ"] * (sizes != expected_sizes)
    try:
        connection.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
    except engine.DatabaseError as error:
        problems.append(f"{table}: {error}")
    return problems


def _entries(connection: Any, table: str, schema: str) -> set[tuple[Any, ...]]:
    name = f"{schema}.entries_of_{table}"
    connection.execute(f"CREATE VIRTUAL TABLE {name} USING fts5vocab('main', '{table}', 'instance')")
    try:
        return set(connection.execute(f"SELECT term, doc, col, offset FROM {name}").fetchall())  # noqa: S608
    finally:
        connection.execute(f"DROP TABLE {name}")
