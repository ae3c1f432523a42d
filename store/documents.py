"""Write statements of knowledge.db: a group of documents is replaced whole in one short transaction (R24, R27).

Full text is kept by a handful of set-wise statements, deletes first and in rowid order, never by triggers: a
trigger makes FTS5 flush once a row. The caller is the one writer; every function runs on its connection.
"""

import json
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import astuple

from domain.vectors import PinnedIdentity, VectorIdentity
from store import driver, lexical, queries, vector_queries
from store.connection import immediate, translated
from store.fence import (
    NOTHING_STORED,
    Fence,
    decide_document,
    decide_recheck,
    decide_remove,
    decide_skip,
    decide_vectors,
)
from store.full_text import delete_full_text, insert_full_text
from store.log_keeping import LogKeeper
from store.meta import bump_commit_seq, commit_seq, set_meta
from store.port import StoreCounts, StoreIdentity, Visibility
from store.vector_port import VectorStatus
from store.vector_schema import has_vectors
from store.vectors import Live, live_identities, write_vectors
from store.write_port import (
    Applied,
    DocumentWrite,
    GroupResult,
    RecheckWrite,
    RemoveWrite,
    SkipWrite,
    VectorsWrite,
    WriteGroup,
)

_STAT_COLUMNS = "size_bytes, mtime_ns, ctime_ns, inode, device, checked_ns"
_DOCUMENT_COLUMNS = (
    f"id, key, root, {_STAT_COLUMNS}, observed_ns, generation, created_generation, chunk_count, file_hash,"
    " content_hash, title, warnings, indexed_ns, tail"
)
_INSERT_DOCUMENT = f"INSERT INTO documents ({_DOCUMENT_COLUMNS}) VALUES ({', '.join('?' * 19)})"  # noqa: S608
_INSERT_CHUNK = "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UPDATE_RECHECK = (
    "UPDATE documents SET size_bytes = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, device = ?, checked_ns = ?,"
    " observed_ns = ?, generation = ? WHERE key = ?"
)
_UPSERT_SKIP = (
    f"INSERT OR REPLACE INTO skipped_files (key, root, reason, {_STAT_COLUMNS}, generation)"  # noqa: S608
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_UPSERT_TOMBSTONE = "INSERT OR REPLACE INTO tombstones (key, generation, observed_ns) VALUES (?, ?, ?)"


class SqliteStoreWriter:
    """The writing end of one knowledge.db (store.port.StoreWriter)."""

    def __init__(self, connection: driver.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._log = LogKeeper(connection, path)

    @property
    def connection(self) -> driver.Connection:
        return self._connection

    def apply(self, group: WriteGroup) -> GroupResult:
        with translated(self._path):
            if not len(group):
                return GroupResult((), commit_seq(self._connection), 0)
            with immediate(self._connection):
                result = self._apply(group)
            self._log.keep()
            return result

    def highest_generation(self) -> int:
        """The highest generation that meta, a document or a tombstone knows (R25)."""
        with translated(self._path):
            return queries.highest_generation(self._connection)

    def close_generation(self, generation: int, *, complete: bool = False) -> None:
        with translated(self._path), immediate(self._connection):
            self._connection.execute("DELETE FROM tombstones WHERE generation < ?", (generation,))
            set_meta(self._connection, "generation", str(generation))
            if complete:
                if queries.identity(self._connection).complete_ns is None:
                    bump_commit_seq(self._connection)  # answers are called incomplete no more
                set_meta(self._connection, "complete_ns", str(time.time_ns()))

    def vector_status(self) -> VectorStatus:
        with translated(self._path):
            return vector_queries.status(self._connection)

    def pin_identity(
        self, identity: VectorIdentity, canary: Sequence[bytes], *, afresh: bool = False
    ) -> PinnedIdentity:
        from store import identities  # a search opens this module too, and pins nothing

        with translated(self._path):
            return identities.pin_identity(self._connection, identity, canary, afresh=afresh)

    def activate_identity(self, identity: int, *, uncovered: int = 0) -> int:
        from store import identities

        with translated(self._path):
            return identities.activate_identity(self._connection, identity, uncovered)

    def collect_vectors(self, *, keep_unused: int) -> int:
        from store import identities

        with translated(self._path):
            return identities.collect_vectors(self._connection, keep_unused)

    def identity(self) -> StoreIdentity:
        with translated(self._path):
            return queries.identity(self._connection)

    def has_documents(self) -> bool:
        with translated(self._path):
            return lexical.has_documents(self._connection)

    def counts(self) -> StoreCounts:
        with translated(self._path):
            return queries.counts(self._connection, "", Visibility.everything())

    def close(self) -> None:
        with translated(self._path):
            self._connection.close()

    def _apply(self, group: WriteGroup) -> GroupResult:
        connection = self._connection
        live = live_identities(connection)
        fences = _read_fences(connection, group)
        decided = _Decided.of(group, fences, live)
        replaced = [fences[key].document_id for key in decided.replaced_keys if key in fences]
        gone = sorted(document_id for document_id in replaced if document_id)
        delete_documents(connection, gone)
        chunks_written = _insert_documents(connection, decided.documents, fences)
        _write_rechecks(connection, decided.rechecks)
        _write_skips(connection, decided)
        _write_tombstones(connection, decided.removes)
        write_vectors(connection, group, decided.documents, decided.vectors, live)
        self._raise_generation(max(write.generation for write in _every(group)))
        is_seen = bool(decided.documents or decided.vectors or gone)
        seq = bump_commit_seq(connection) if is_seen else commit_seq(connection)
        return GroupResult(decided.results, seq, chunks_written)

    def _raise_generation(self, generation: int) -> None:
        self._connection.execute(
            "UPDATE meta SET value = ? WHERE key = 'generation' AND CAST(value AS INTEGER) < ?",
            (str(generation), generation),
        )


class _Decided(Struct, frozen=True):
    """A group after the fence: what is written, and the answer for every key."""

    documents: Sequence[DocumentWrite]
    rechecks: Sequence[RecheckWrite | DocumentWrite]
    skips: Sequence[SkipWrite]
    removes: Sequence[RemoveWrite]
    vectors: Sequence[VectorsWrite]
    results: tuple[Applied, ...]

    @staticmethod
    def of(group: WriteGroup, fences: dict[str, Fence], live: Live) -> "_Decided":
        def fence(key: str) -> Fence:
            return fences.get(key, NOTHING_STORED)

        documents = [(write, decide_document(write, fence(write.key))) for write in group.documents]
        rechecks = [(write, decide_recheck(write, fence(write.key))) for write in group.rechecks]
        skips = [(write, decide_skip(write, fence(write.key))) for write in group.skips]
        removes = [(write, decide_remove(write, fence(write.key))) for write in group.removes]
        replaced = {answer.key for part in (documents, removes) for _, answer in part if answer.verdict == "applied"}
        vectors = [
            (write, decide_vectors(write, NOTHING_STORED if write.key in replaced else fence(write.key), live))
            for write in group.vectors
        ]
        return _Decided(
            documents=[write for write, answer in documents if answer.verdict == "applied"],
            # a second reading of the same bytes raises the fence, and nothing else
            rechecks=[write for write, answer in rechecks if answer.verdict == "applied"]
            + [write for write, answer in documents if answer.verdict == "unchanged"],
            skips=[write for write, answer in skips if answer.verdict == "applied"],
            # where no document is stored, a skipped file may be: it is forgotten
            removes=[write for write, answer in removes if answer.verdict != "stale"],
            vectors=[write for write, answer in vectors if answer.verdict == "applied"],
            results=tuple(answer for part in (documents, rechecks, skips, removes, vectors) for _, answer in part),
        )

    @property
    def replaced_keys(self) -> list[str]:
        return [write.key for write in self.documents] + [write.key for write in self.removes]


def _every(group: WriteGroup) -> Iterator[DocumentWrite | RecheckWrite | SkipWrite | RemoveWrite | VectorsWrite]:
    return chain(group.documents, group.rechecks, group.skips, group.removes, group.vectors)


_FENCES = (
    "SELECT documents.key, documents.id, generation, observed_ns, created_generation, file_hash, chunk_count"
    " FROM json_each(?) AS wanted JOIN documents ON documents.key = wanted.value",
    "SELECT tombstones.key, 0, generation, observed_ns, -1, x'', 0"
    " FROM json_each(?) AS wanted JOIN tombstones ON tombstones.key = wanted.value",
    "SELECT skipped_files.key, 0, generation, checked_ns, -1, x'', 0"
    " FROM json_each(?) AS wanted JOIN skipped_files ON skipped_files.key = wanted.value",
)


def _read_fences(connection: driver.Connection, group: WriteGroup) -> dict[str, Fence]:
    """What is stored under the group's keys, read inside the writing transaction (R25): a document, or the newest of
    what says that there is none."""
    keys = json.dumps([write.key for write in _every(group)])
    fences: dict[str, Fence] = {}
    for statement in _FENCES:
        for key, *stored in connection.execute(statement, (keys,)).fetchall():
            fence, known = Fence(*stored), fences.get(key, NOTHING_STORED)
            if not known.document_id and fence.pair > known.pair:
                fences[key] = fence
    return fences


def _insert_documents(connection: driver.Connection, writes: Sequence[DocumentWrite], fences: dict[str, Fence]) -> int:
    """Insert documents and chunks under new ids above every one in use, then their full-text rows by range."""
    if not writes:
        return 0
    document_id = _highest_id(connection, "documents")
    before = chunk_id = _highest_id(connection, "chunks")
    now_ns = time.time_ns()
    document_rows: list[tuple[object, ...]] = []
    chunk_rows: list[tuple[object, ...]] = []
    for write in writes:
        document_id += 1
        created = fences.get(write.key, NOTHING_STORED).created_generation
        document_rows.append(_document_row(document_id, write, created if created > 0 else write.generation, now_ns))
        for chunk in write.chunks:
            chunk_id += 1
            chunk_rows.append((chunk_id, document_id, *chunk))
    connection.executemany(_INSERT_DOCUMENT, document_rows)
    connection.executemany(_INSERT_CHUNK, chunk_rows)
    insert_full_text(connection, before + 1, chunk_id)
    connection.executemany("DELETE FROM tombstones WHERE key = ?", [(write.key,) for write in writes])
    return chunk_id - before


def _highest_id(connection: driver.Connection, table: str) -> int:
    row = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()  # noqa: S608
    return int(row[0])


def _document_row(document_id: int, write: DocumentWrite, created: int, now_ns: int) -> tuple[object, ...]:
    return (
        document_id,
        write.key,
        write.root,
        *astuple(write.stat),
        write.checked_ns,
        write.observed_ns,
        write.generation,
        created,
        len(write.chunks),
        write.file_hash,
        write.content_hash,
        write.title,
        write.warnings,
        now_ns,
        write.tail,
    )


def _write_rechecks(connection: driver.Connection, rechecks: Sequence[RecheckWrite | DocumentWrite]) -> None:
    connection.executemany(
        _UPDATE_RECHECK,
        [(*astuple(w.stat), w.checked_ns, w.observed_ns, w.generation, w.key) for w in rechecks],
    )


def _write_skips(connection: driver.Connection, decided: _Decided) -> None:
    kept = [*decided.skips, *(write.skip for write in decided.removes if write.skip is not None)]
    connection.executemany(
        _UPSERT_SKIP,
        [(w.key, w.root, w.reason.value, *astuple(w.stat), w.checked_ns, w.generation) for w in kept],
    )
    if decided.documents and connection.execute("SELECT 1 FROM skipped_files LIMIT 1").fetchone():
        connection.executemany("DELETE FROM skipped_files WHERE key = ?", [(w.key,) for w in decided.documents])


def _write_tombstones(connection: driver.Connection, removes: Sequence[RemoveWrite]) -> None:
    connection.executemany(_UPSERT_TOMBSTONE, [(write.key, write.generation, write.observed_ns) for write in removes])
    connection.executemany(
        "DELETE FROM skipped_files WHERE key = ?", [(write.key,) for write in removes if write.skip is None]
    )


def delete_documents(connection: driver.Connection, document_ids: Sequence[int]) -> None:
    """Delete documents with their chunks, full-text rows and links to vectors; ids ascending, so FTS5 sees rowids in
    order. The vectors stay: a file that comes back finds them again (R19)."""
    if not document_ids:
        return
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS doomed (id INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM temp.doomed")
    connection.executemany("INSERT INTO temp.doomed (id) VALUES (?)", [(document_id,) for document_id in document_ids])
    chosen = "FROM chunks WHERE document IN (SELECT id FROM temp.doomed)"
    delete_full_text(connection, chosen)
    if has_vectors(connection):
        connection.execute(f"DELETE FROM vector_links WHERE chunk IN (SELECT id {chosen})")  # noqa: S608
    connection.execute(f"DELETE {chosen}")
    connection.execute("DELETE FROM documents WHERE id IN (SELECT id FROM temp.doomed)")
