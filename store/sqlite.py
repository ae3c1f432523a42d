"""The SQLite store as app.wiring composes it: opening for reading and for writing, with the format gate."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from domain.errors import NotBuiltError
from domain.layout import BaseLayout
from store import (
    driver,
    enumeration,
    files,
    format_gate,
    lexical,
    literal,
    queries,
    trigram,
    vector_queries,
    vocabulary,
)
from store.analyzer import FOLDED, STEMMED, analyzer
from store.connection import open_reader, open_writer, reading_full_text, translated
from store.counting import RememberedCounts
from store.documents import SqliteStoreWriter
from store.enumeration_port import Column, DocumentStarts, EnumeratedDocument
from store.port import (
    ChunkSketch,
    FileTrace,
    FoundChunk,
    LiteralFind,
    Scope,
    StoreCounts,
    StoredChunk,
    StoredDocument,
    StoredFile,
    StoreIdentity,
    SubstringFind,
    Visibility,
)
from store.vector_port import DocumentTexts, UncoveredDocument, VectorCounts, VectorFind, VectorStatus


class SqliteSnapshot:
    """Reads over one connection (store.port.SearchSnapshot)."""

    def __init__(self, connection: driver.Connection, path: Path, counts: RememberedCounts) -> None:
        self._connection = connection
        self._path = path
        self._counts = counts

    def identity(self) -> StoreIdentity:
        with translated(self._path):
            return queries.identity(self._connection)

    def counts(self, prefix: str = "", *, visibility: Visibility) -> StoreCounts:
        with translated(self._path):
            return self._counts.of(self._connection, prefix, visibility)

    def document_count(self, prefix: str) -> int:
        with translated(self._path):
            return queries.document_count(self._connection, prefix)

    def stored_files(self, prefix: str) -> Iterator[StoredFile]:
        with translated(self._path):
            yield from queries.stored_files(self._connection, prefix)

    def document(self, key: str, *, visibility: Visibility) -> StoredDocument | None:
        with translated(self._path):
            return queries.document(self._connection, key, visibility)

    def file_trace(self, key: str) -> FileTrace | None:
        with translated(self._path):
            return queries.file_trace(self._connection, key)

    def documents(
        self, prefix: str, *, after: str = "", limit: int = 1000, visibility: Visibility
    ) -> Sequence[StoredDocument]:
        with translated(self._path):
            return queries.documents(self._connection, prefix, after, limit, visibility)

    def chunks(
        self, key: str, *, first: int = 0, last: int | None = None, visibility: Visibility
    ) -> Sequence[StoredChunk]:
        with translated(self._path):
            return queries.chunks(self._connection, key, first, last, visibility)

    def text(self, key: str, *, visibility: Visibility) -> str | None:
        with translated(self._path):
            return queries.text(self._connection, key, visibility)

    def skipped(self, prefix: str = "", *, limit: int = 1000) -> Sequence[StoredFile]:
        with translated(self._path):
            return queries.skipped(self._connection, prefix, limit)

    def highest_generation(self) -> int:
        with translated(self._path):
            return queries.highest_generation(self._connection)

    def has_documents(self) -> bool:
        with translated(self._path):
            return lexical.has_documents(self._connection)

    def chunk_total(self) -> int:
        with reading_full_text(self._path):
            return vocabulary.chunk_total(self._connection)

    def stems(self, words: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        return analyzer(STEMMED).tokens(words)

    def folded(self, word: str) -> str:
        tokens = analyzer(FOLDED).tokens([word])[word]
        return tokens[0] if len(tokens) == 1 else ""

    def stem_counts(self, stems: Sequence[str]) -> Mapping[str, int]:
        with reading_full_text(self._path):
            return vocabulary.stem_counts(self._connection, stems)

    def words_between(self, first: str, end: str, limit: int, *, visibility: Visibility) -> Sequence[tuple[str, int]]:
        with reading_full_text(self._path):
            return vocabulary.words_between(self._connection, first, end, limit, visibility)

    def words_among(self, words: Sequence[str], *, visibility: Visibility) -> Sequence[tuple[str, int]]:
        with reading_full_text(self._path):
            return vocabulary.words_among(self._connection, words, visibility)

    def word_pages(self, column: str, *, visibility: Visibility) -> Iterator[Sequence[tuple[str, int]]]:
        with reading_full_text(self._path):
            yield from vocabulary.word_pages(self._connection, column, visibility)

    def stem_counts_in(self, stems: Sequence[str], column: str, *, visibility: Visibility) -> Mapping[str, int]:
        with reading_full_text(self._path):
            return vocabulary.stem_counts_in(self._connection, stems, column, visibility)

    def rank_words(
        self, terms: Sequence[str], *, limit: int, scope: Scope | None, visibility: Visibility
    ) -> Sequence[int]:
        with reading_full_text(self._path):
            return lexical.rank_words(self._connection, terms, limit, scope, visibility)

    def find_literal(
        self,
        text: str,
        *,
        first: Sequence[int],
        limit: int,
        max_postings: int,
        scope: Scope | None,
        visibility: Visibility,
    ) -> LiteralFind:
        with reading_full_text(self._path):
            return literal.find_literal(self._connection, text, first, limit, max_postings, scope, visibility)

    def find_substrings(
        self, pieces: Sequence[str], *, relax: bool, limit: int, scope: Scope | None, visibility: Visibility
    ) -> SubstringFind:
        with reading_full_text(self._path):
            return trigram.find_substrings(self._connection, pieces, relax, limit, scope, visibility)

    def sketches(self, ids: Sequence[int]) -> Sequence[ChunkSketch]:
        with translated(self._path):
            return lexical.sketches(self._connection, ids)

    def found_chunks(self, ids: Sequence[int], *, visibility: Visibility) -> Sequence[FoundChunk]:
        with translated(self._path):
            return lexical.found_chunks(self._connection, ids, visibility)

    def document_ids(self, prefix: str) -> Sequence[tuple[int, str]]:
        with translated(self._path):
            return lexical.document_ids(self._connection, prefix)

    def scope_of(self, document_ids: Sequence[int]) -> Scope | None:
        with translated(self._path):
            return lexical.scope_of(self._connection, document_ids)

    def chunks_with(self, text: str, column: Column) -> Sequence[int]:
        with reading_full_text(self._path):
            return enumeration.chunks_with(self._connection, text, column)

    def chunks_as_written(self, word: str, columns: Sequence[Column]) -> Sequence[int]:
        with reading_full_text(self._path):
            return enumeration.chunks_as_written(self._connection, word, columns)

    def chunks_with_part(self, text: str, column: Column) -> Sequence[int]:
        with reading_full_text(self._path):
            return enumeration.chunks_with_part(self._connection, text, column)

    def document_starts(self) -> DocumentStarts:
        with translated(self._path):
            return enumeration.document_starts(self._connection)

    def documents_of(self, chunk_ids: Sequence[int]) -> Mapping[int, int]:
        with translated(self._path):
            return enumeration.documents_of(self._connection, chunk_ids)

    def documents_by_key(self) -> Sequence[int]:
        with translated(self._path):
            return enumeration.documents_by_key(self._connection)

    def hidden_documents(self, visibility: Visibility) -> Sequence[int]:
        with translated(self._path):
            return enumeration.hidden_documents(self._connection, visibility)

    def enumerated_documents(self, ids: Sequence[int]) -> Sequence[EnumeratedDocument]:
        with translated(self._path):
            return enumeration.enumerated_documents(self._connection, ids)

    def keys_of(self, ids: Sequence[int]) -> Sequence[tuple[str, int]]:
        with translated(self._path):
            return enumeration.keys_of(self._connection, ids)

    def nearest(self, vector: bytes, *, limit: int, scope: Scope | None, visibility: Visibility) -> VectorFind:
        from store import nearest

        with translated(self._path):
            return nearest.nearest(self._connection, vector, limit, scope, visibility)

    def vector_status(self) -> VectorStatus:
        with translated(self._path):
            return vector_queries.status(self._connection)

    def vector_counts(self) -> VectorCounts:
        with translated(self._path):
            return vector_queries.counts(self._connection)

    def known_vectors(self, identity: int, sent_hashes: Sequence[bytes]) -> frozenset[bytes]:
        with translated(self._path):
            return vector_queries.known_vectors(self._connection, identity, sent_hashes)

    def keys_without_vectors(
        self, identity: int, *, after: str, limit: int, prefix: str = ""
    ) -> Sequence[UncoveredDocument]:
        with translated(self._path):
            return vector_queries.keys_without_vectors(self._connection, identity, after, limit, prefix)

    def texts_of(self, keys: Sequence[str]) -> Sequence[DocumentTexts]:
        with translated(self._path):
            return vector_queries.texts_of(self._connection, keys)

    def moved_keys(self, keys: Sequence[str], generation: int, used: set[int]) -> set[str]:
        """Which of these stored keys have moved: their content was added at another path by this generation."""
        if not keys:
            return set()
        with translated(self._path):
            return queries.moved_keys(self._connection, keys, generation, used)


class SqliteStore:
    """A base's knowledge.db, open for reading (store.port.Store)."""

    def __init__(self, path: Path, *, base_id: str | None) -> None:
        if files.lstat_or_none(path) is None:
            raise NotBuiltError(f"there is no index at {path.parent}", hint="run `knowledge index YOUR_FOLDER`")
        self._path = path
        self._connection = open_reader(path)
        self._counts = RememberedCounts()
        try:
            format_gate.check(self._connection, path, base_id=base_id)
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[SqliteSnapshot]:
        """One read transaction: everything inside sees the same state. Keep it short."""
        with translated(self._path):
            self._connection.execute("BEGIN")
        try:
            yield SqliteSnapshot(self._connection, self._path, self._counts)
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def reader(self) -> SqliteSnapshot:
        """Reads without a transaction around them: each statement sees the newest state."""
        return SqliteSnapshot(self._connection, self._path, self._counts)

    def close(self) -> None:
        self._connection.close()


def open_store_writer(layout: BaseLayout, *, base_id: str, substring_index: str) -> SqliteStoreWriter:
    """The writer of a base's knowledge.db, made where there is none. The caller holds the base's lock."""
    path = layout.database
    connection = open_writer(path, synchronous="NORMAL")
    try:
        format_gate.create_if_blank(connection, path, base_id=base_id, substring_index=substring_index)
        format_gate.check(connection, path, base_id=base_id)
        files.reassert_private(path)
    except BaseException:
        connection.close()
        raise
    return SqliteStoreWriter(connection, path)
