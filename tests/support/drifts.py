"""Ways in which a store can come to disagree with itself: each function breaks a sound one by plain SQL."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

try:
    from pysqlite3 import dbapi2 as engine
except ImportError:
    import sqlite3 as engine

Drift = Callable[[Any], None]
COLUMNS = "body, heading_path, names"


def open_plain(path: Path) -> Any:
    """A connection of the tests' own, with nothing set."""
    return engine.connect(str(path), isolation_level=None)


def apply_drift(path: Path, drift: Drift) -> None:
    with closing(open_plain(path)) as connection:
        drift(connection)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def missing_full_text_row(connection: Any) -> None:
    connection.execute(
        f"INSERT INTO chunks_fts(chunks_fts, rowid, {COLUMNS}) SELECT 'delete', id, {COLUMNS} FROM chunks WHERE id = 2"  # noqa: S608
    )


def missing_exact_row(connection: Any) -> None:
    connection.execute(
        f"INSERT INTO chunks_fts_exact(chunks_fts_exact, rowid, {COLUMNS})"  # noqa: S608
        f" SELECT 'delete', id, {COLUMNS} FROM chunks WHERE id = 3"
    )


def ghost_full_text_row(connection: Any) -> None:
    connection.execute(f"INSERT INTO chunks_fts(rowid, {COLUMNS}) VALUES (9001, 'ghost story', '', '')")  # noqa: S608


def ghost_without_words(connection: Any) -> None:
    connection.execute(f"INSERT INTO chunks_fts(rowid, {COLUMNS}) VALUES (9002, '', '', '')")  # noqa: S608


def changed_full_text_content(connection: Any) -> None:
    missing_full_text_row(connection)
    connection.execute(f"INSERT INTO chunks_fts(rowid, {COLUMNS}) VALUES (2, 'something else', '', '')")  # noqa: S608


def heading_in_another_column(connection: Any) -> None:
    missing_exact_row(connection)
    connection.execute(
        f"INSERT INTO chunks_fts_exact(rowid, {COLUMNS}) SELECT id, heading_path, body, names FROM chunks WHERE id = 3"  # noqa: S608
    )


def zeroed_full_text_page(connection: Any) -> None:
    connection.execute(
        "UPDATE chunks_fts_data SET block = zeroblob(length(block)) WHERE id = (SELECT max(id) FROM chunks_fts_data)"
    )


def lost_full_text_structure(connection: Any) -> None:
    connection.execute("DELETE FROM chunks_fts_exact_data WHERE id = 10")


def lost_sizes_of_a_row(connection: Any) -> None:
    connection.execute("DELETE FROM chunks_fts_exact_docsize WHERE id = 1")


def sizes_under_another_number(connection: Any) -> None:
    """As many rows as there are chunks, one of them of none."""
    connection.execute("UPDATE chunks_fts_docsize SET id = 9003 WHERE id = 2")


def substring_row_of_another(connection: Any) -> None:
    newest = "(SELECT max(id) FROM chunks_fts_tri_docsize)"
    connection.execute(f"UPDATE chunks_fts_tri_docsize SET id = 9004 WHERE id = {newest}")  # noqa: S608


def substring_row_missing(connection: Any) -> None:
    connection.execute(
        f"INSERT INTO chunks_fts_tri(chunks_fts_tri, rowid, {COLUMNS})"  # noqa: S608
        f" SELECT 'delete', id, {COLUMNS} FROM chunks_tri_source LIMIT 1"
    )


def missing_chunk(connection: Any) -> None:
    connection.execute("DELETE FROM chunks WHERE id = 1")


def wrong_ordinal(connection: Any) -> None:
    connection.execute("UPDATE chunks SET ordinal = ordinal + 5 WHERE id = 2")


def wrong_chunk_count(connection: Any) -> None:
    connection.execute("UPDATE documents SET chunk_count = chunk_count + 1 WHERE id = 1")


def document_without_chunks(connection: Any) -> None:
    connection.execute("DELETE FROM chunks WHERE document = 2")


def changed_body(connection: Any) -> None:
    connection.execute("UPDATE chunks SET body = replace(body, 'quick', 'QUICK') WHERE id = 1")


def changed_tail(connection: Any) -> None:
    connection.execute("UPDATE documents SET tail = tail || char(10) WHERE id = 1")


def changed_lead(connection: Any) -> None:
    connection.execute("UPDATE chunks SET lead = lead || ' ' WHERE id = 1")


def changed_title(connection: Any) -> None:
    connection.execute("UPDATE documents SET title = 'Alphb' WHERE id = 1")


def changed_names(connection: Any) -> None:
    connection.execute("UPDATE chunks SET names = 'another name' WHERE id = 1")


def orphaned_chunks(connection: Any) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DELETE FROM documents WHERE id = 1")


def mark_without_reason(connection: Any) -> None:
    connection.execute("UPDATE chunks SET in_tri = 1 WHERE id = 1 AND in_tri = 0")


def mark_lost(connection: Any) -> None:
    connection.execute("UPDATE chunks SET in_tri = 0 WHERE in_tri = 1")


def buried_document(connection: Any) -> None:
    connection.execute("INSERT INTO tombstones SELECT key, generation, observed_ns FROM documents WHERE id = 1")


def skipped_document(connection: Any) -> None:
    connection.execute(
        "INSERT INTO skipped_files SELECT key, root, 'too_large', 0, 0, 0, 0, 0, 0, 1 FROM documents WHERE id = 1"
    )


def lost_identity(connection: Any) -> None:
    connection.execute("UPDATE meta SET value = '' WHERE key = 'store_uuid'")


def generation_taken_back(connection: Any) -> None:
    connection.execute("UPDATE meta SET value = '0' WHERE key = 'generation'")


def lost_link(connection: Any) -> None:
    connection.execute("DELETE FROM vector_links WHERE chunk = 1")


def link_to_no_chunk(connection: Any) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("UPDATE vector_links SET chunk = 9001 WHERE chunk = 1")


def link_to_no_vector(connection: Any) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("UPDATE vector_links SET embedding = 9001 WHERE chunk = 1")


def swapped_links(connection: Any) -> None:
    first, second = (
        connection.execute("SELECT embedding FROM vector_links WHERE chunk = ?", (chunk,)).fetchone()[0]
        for chunk in (1, 2)
    )
    connection.execute("UPDATE vector_links SET embedding = ? WHERE chunk = 1", (second,))
    connection.execute("UPDATE vector_links SET embedding = ? WHERE chunk = 2", (first,))


def lost_embedding(connection: Any) -> None:
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DELETE FROM embeddings WHERE id = 1")


def not_a_number(connection: Any) -> None:
    (vector,) = connection.execute("SELECT vector FROM embeddings WHERE id = 1").fetchone()
    connection.execute("UPDATE embeddings SET vector = ? WHERE id = 1", (bytes.fromhex("0000c07f") + vector[4:],))


def cut_vector(connection: Any) -> None:
    connection.execute("UPDATE embeddings SET vector = CAST(substr(vector, 1, 40) AS BLOB) WHERE id = 2")


def zero_vector(connection: Any) -> None:
    connection.execute("UPDATE embeddings SET vector = zeroblob(length(vector)) WHERE id = 1")


def swapped_vectors(connection: Any) -> None:
    """Only the signs tell: each vector is sound, each link right."""
    first, second = (
        connection.execute("SELECT vector FROM embeddings WHERE id = ?", (number,)).fetchone()[0] for number in (1, 2)
    )
    connection.execute("UPDATE embeddings SET vector = ? WHERE id = 1", (second,))
    connection.execute("UPDATE embeddings SET vector = ? WHERE id = 2", (first,))


def lost_block(connection: Any) -> None:
    connection.execute("DELETE FROM vector_blocks")


def turned_bit(connection: Any) -> None:
    (bits,) = connection.execute("SELECT bits FROM vector_blocks LIMIT 1").fetchone()
    connection.execute("UPDATE vector_blocks SET bits = ?", (bytes([bits[0] ^ 1]) + bits[1:],))


def cut_block(connection: Any) -> None:
    connection.execute("UPDATE vector_blocks SET bits = CAST(substr(bits, 1, length(bits) - 3) AS BLOB)")


def repeated_in_block(connection: Any) -> None:
    (ids,) = connection.execute("SELECT embedding_ids FROM vector_blocks LIMIT 1").fetchone()
    connection.execute("UPDATE vector_blocks SET embedding_ids = ?", (ids[:8] + ids[:-8],))


def repeated_block(connection: Any) -> None:
    connection.execute(
        "INSERT INTO vector_blocks (identity, count, embedding_ids, bits)"
        " SELECT identity, count, embedding_ids, bits FROM vector_blocks"
    )


def claimed_pending(connection: Any) -> None:
    connection.execute("UPDATE documents SET vector_state = 'pending' WHERE id = 1")


def claimed_nothing(connection: Any) -> None:
    connection.execute("UPDATE documents SET vector_state = 'none' WHERE id = 1")


def claimed_ready(connection: Any) -> None:
    connection.execute("DELETE FROM vector_links WHERE chunk IN (SELECT id FROM chunks WHERE document = 1)")


# what `rebuild` mends: full text (and the marks of its trigram table) is made again from the chunks
OF_FULL_TEXT: tuple[Drift, ...] = (
    missing_full_text_row,
    missing_exact_row,
    ghost_full_text_row,
    ghost_without_words,
    changed_full_text_content,
    heading_in_another_column,
    zeroed_full_text_page,
    lost_full_text_structure,
    substring_row_missing,
    substring_row_of_another,
    lost_sizes_of_a_row,
    sizes_under_another_number,
    mark_without_reason,
    mark_lost,
)
# what only a reset mends: the content itself is wrong
OF_CONTENT: tuple[Drift, ...] = (
    missing_chunk,
    wrong_ordinal,
    wrong_chunk_count,
    document_without_chunks,
    changed_body,
    changed_title,
    changed_names,
    orphaned_chunks,
    buried_document,
    skipped_document,
    lost_identity,
    generation_taken_back,
)
# of a store with vectors (tests.support.vector_stores); rebuild makes the vector tables agree again
OF_VECTORS: tuple[Drift, ...] = (
    lost_link,
    link_to_no_chunk,
    link_to_no_vector,
    swapped_links,
    lost_embedding,
    not_a_number,
    cut_vector,
    zero_vector,
    swapped_vectors,
    lost_block,
    turned_bit,
    cut_block,
    repeated_in_block,
    repeated_block,
    claimed_pending,
    claimed_nothing,
    claimed_ready,
)
# seen only when documents are put together again
ONLY_DEEP: tuple[Drift, ...] = (changed_tail, changed_lead)
EVERY_DRIFT = (*OF_FULL_TEXT, *OF_CONTENT, *ONLY_DEEP)
