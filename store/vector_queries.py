"""Read statements of the vector tier; the nearest vectors are found in store.nearest.

Every function answers for a store without vector tables, too: there is nothing.
"""

import json
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from domain.vectors import IdentityState, PinnedIdentity, VectorIdentity
from store import driver
from store.nearest import usual_method
from store.queries import key_range
from store.vector_blocks import row_bytes
from store.vector_port import NO_VECTORS, ChunkText, DocumentTexts, UncoveredDocument, VectorCounts, VectorStatus
from store.vector_schema import has_vectors

HASHES_PER_STATEMENT = 512

_IDENTITIES = (
    "SELECT id, state, canary, model, served_model, dimension, normalised, query_prefix, document_prefix"
    " FROM vector_identities WHERE state <> 'retired'"
)
_PENDING = (
    "SELECT count(*), coalesce(sum(chunk_count), 0) FROM documents INDEXED BY documents_pending"
    " WHERE vector_state = 'pending'"
)
_COUNTS = """
SELECT (SELECT count(*) FROM embeddings INDEXED BY embeddings_by_text WHERE identity = :identity),
       (SELECT count(*) FROM vector_links WHERE identity = :identity),
       (SELECT count(*) FROM embeddings INDEXED BY embeddings_from_parts WHERE identity = :identity AND parts > 1),
       (SELECT count(DISTINCT embedding) FROM vector_links WHERE identity = :identity)
"""
# a document is linked whole or not at all, so its first chunk speaks for all of them
_UNCOVERED = (
    "SELECT key, file_hash, chunk_count FROM documents WHERE key >= :first AND key > :after AND key < :end"
    " AND NOT EXISTS (SELECT 1 FROM chunks JOIN vector_links ON chunk = chunks.id AND identity = :identity"
    " WHERE document = documents.id AND ordinal = 0)"
    " ORDER BY key LIMIT :limit"
)
_TEXTS = (
    "SELECT documents.key, file_hash, heading_path, body,"
    " CASE WHEN heading_path = '' AND body = '' THEN lead ELSE '' END FROM json_each(?) AS wanted"
    " JOIN documents ON documents.key = wanted.value JOIN chunks ON chunks.document = documents.id"
    " ORDER BY wanted.key, ordinal"
)


def status(connection: driver.Connection) -> VectorStatus:
    """What is pinned and what is pending; on the path of every search: three small reads, none of them over rows of
    documents or vectors."""
    if not has_vectors(connection):
        return NO_VECTORS
    by_state = pinned_identities(connection)
    active, building = by_state.get("active"), by_state.get("building")
    if active is None:
        return VectorStatus(active, building)
    return VectorStatus(active, building, *connection.execute(_PENDING).fetchone())


def pinned_identities(connection: driver.Connection) -> dict[IdentityState, PinnedIdentity]:
    """What is active and what is built, of a store that has vector tables."""
    return {pinned.state: pinned for pinned in map(_pinned, connection.execute(_IDENTITIES).fetchall())}


def _pinned(row: Sequence[object]) -> PinnedIdentity:
    number, state, canary, *fields = row
    model, served_model, dimension, normalised, query_prefix, document_prefix = fields
    identity = VectorIdentity(model, served_model, dimension, bool(normalised), query_prefix, document_prefix)  # type: ignore[arg-type]
    size = identity.dimension * 4
    vectors = tuple(canary[at : at + size] for at in range(0, len(canary), size))  # type: ignore[index, arg-type]
    return PinnedIdentity(number, identity, vectors, state)  # type: ignore[arg-type]


def counts(connection: driver.Connection) -> VectorCounts:
    active = status(connection).active
    if active is None:
        return VectorCounts(0, 0, 0, 0, 0, "none")
    vectors, linked, from_parts, used = connection.execute(_COUNTS, {"identity": active.id}).fetchone()
    dimension = active.identity.dimension
    size_bytes = vectors * (dimension * 4 + row_bytes(dimension))
    return VectorCounts(vectors, linked, from_parts, vectors - used, size_bytes, usual_method(vectors))


def known_vectors(connection: driver.Connection, identity: int, sent_hashes: Sequence[bytes]) -> frozenset[bytes]:
    found: set[bytes] = set()
    if not has_vectors(connection):
        return frozenset()
    for start in range(0, len(sent_hashes), HASHES_PER_STATEMENT):
        asked = sent_hashes[start : start + HASHES_PER_STATEMENT]
        marks = ", ".join("?" * len(asked))
        rows = connection.execute(
            f"SELECT sent_hash FROM embeddings WHERE identity = ? AND sent_hash IN ({marks})",  # noqa: S608
            (identity, *asked),
        )
        found.update(row[0] for row in rows.fetchall())
    return frozenset(found)


def keys_without_vectors(
    connection: driver.Connection, identity: int, after: str, limit: int, prefix: str
) -> Sequence[UncoveredDocument]:
    """Documents that are not linked under an identity, in key order."""
    if not has_vectors(connection):
        return []
    first, end = key_range(prefix)
    asked = {"identity": identity, "first": first, "after": after, "end": end, "limit": limit}
    return [UncoveredDocument(*row) for row in connection.execute(_UNCOVERED, asked).fetchall()]


def texts_of(connection: driver.Connection, keys: Sequence[str]) -> Sequence[DocumentTexts]:
    """Of those that are stored, in the order of `keys`."""
    rows = connection.execute(_TEXTS, (json.dumps(list(keys)),)).fetchall()
    return [
        DocumentTexts(key, file_hash, tuple(ChunkText(*row[2:]) for row in own))
        for (key, file_hash), own in groupby(rows, key=itemgetter(0, 1))
    ]
