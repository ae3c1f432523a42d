"""Write statements of the vector tables, inside the writer's one transaction for a group (R4, R18, R24).

Vectors are checked before they get near the store, kept once for each text really sent, and linked to chunks: all of
a document's chunks under an identity, or none of them (S2-35).
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from domain.vectors import CANARY_TOLERANCE, IdentityState
from store import driver
from store.connection import RowRefusedError
from store.meta import take_ids
from store.vector_blocks import add_to_blocks
from store.vector_schema import has_vectors
from store.write_port import DocumentWrite, NewVector, VectorLinks, VectorsWrite, WriteGroup

_INSERT_EMBEDDING = (
    "INSERT INTO embeddings (id, identity, sent_hash, parts, vector) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (identity, sent_hash) DO NOTHING"
)
# no row where there is no such vector; a third of the time that OR REPLACE takes
_INSERT_LINK = (
    "INSERT OR IGNORE INTO vector_links (chunk, identity, embedding)"
    " VALUES (?1, ?2, (SELECT id FROM embeddings WHERE identity = ?2 AND sent_hash = ?3))"
)
_DELETE_LINKS = "DELETE FROM vector_links WHERE identity = ? AND chunk BETWEEN ? AND ?"
_CHUNKS = (
    "SELECT documents.key, chunks.id FROM json_each(?) AS wanted JOIN documents ON documents.key = wanted.value"
    " JOIN chunks ON chunks.document = documents.id ORDER BY chunks.document, chunks.ordinal"
)


class LiveIdentity(NamedTuple):
    """An identity that vectors may be written for."""

    id: int
    state: IdentityState
    dimension: int


Live = Mapping[int, LiveIdentity]
Linked = tuple[str, VectorLinks]
"""A document's key, and the links that are to be made for it."""


def live_identities(connection: driver.Connection) -> dict[int, LiveIdentity]:
    """By id; none in a store without vector tables."""
    if not has_vectors(connection):
        return {}
    rows = connection.execute("SELECT id, state, dimension FROM vector_identities WHERE state <> 'retired'").fetchall()
    return {row[0]: LiveIdentity(*row) for row in rows}


def shown_identity(live: Live) -> LiveIdentity | None:
    """The identity that documents.vector_state speaks of: the active one, else the one that is built."""
    by_state = {identity.state: identity for identity in live.values()}
    return by_state.get("active") or by_state.get("building")


def write_vectors(
    connection: driver.Connection,
    group: WriteGroup,
    documents: Sequence[DocumentWrite],
    vectors: Sequence[VectorsWrite],
    live: Live,
) -> None:
    """Store the vectors of a group, link the documents that were stored just now and those that `vectors` names (all
    of whose vectors are required), and bring their vector_state into line.

    Raises RowRefusedError where a vector is none, or where a document lacks one of those that it requires.
    """
    linked = [(write.key, links) for write in documents for links in write.links]
    linked += [(write.key, replace(write.links, required=True)) for write in vectors]
    wanted = [pair for pair in linked if _is_of_live(pair, live)]
    if not live:
        return
    insert_embeddings(connection, _new_vectors(group, live), live)
    covered = _link(connection, wanted, {write.key for write in vectors})
    shown = shown_identity(live)
    if shown is None:
        return
    keys = [write.key for write in documents]
    keys += [write.key for write in vectors if write.links.identity == shown.id]
    lacking = "pending" if shown.state == "active" else "none"
    states = [("ready" if (key, shown.id) in covered else lacking, key) for key in keys]
    connection.executemany(
        "UPDATE documents SET vector_state = ? WHERE key = ?",
        [pair for pair in states if pair[0] != "none"],  # as a new row is anyway
    )


def _is_of_live(pair: Linked, live: Live) -> bool:
    key, links = pair
    if links.identity in live:
        return True
    if links.required:
        raise RowRefusedError(f"{key}: its vectors are of an identity that is pinned no more")
    return False


def _new_vectors(group: WriteGroup, live: Live) -> dict[tuple[int, bytes], tuple[str, NewVector]]:
    """Each once, with the key of the first document that brings it. A write that is stale brings its own all the same:
    others of the group may link to them."""
    found: dict[tuple[int, bytes], tuple[str, NewVector]] = {}
    writes: Iterable[DocumentWrite | VectorsWrite] = chain(group.documents, group.vectors)
    for write in writes:
        for vector in write.new_vectors:
            if vector.identity in live:
                found.setdefault((vector.identity, vector.sent_hash), (write.key, vector))
    return found


def insert_embeddings(
    connection: driver.Connection, found: Mapping[tuple[int, bytes], tuple[str, NewVector]], live: Live
) -> None:
    """Insert those that are not stored yet, and put them into blocks; on the caller's transaction.

    `found`: by identity and hash of the sent text, the document that brings it ("": none) and the vector. Raises
    RowRefusedError for one that is no vector of its identity.
    """
    for identity in live.values():
        own = [pair for pair in found.values() if pair[1].identity == identity.id]
        if not own:
            continue
        refuse_unsound(own, identity.dimension)
        before = take_ids(connection, "embeddings", len(own))
        by_id = {number: vector for number, (_, vector) in enumerate(own, before + 1)}
        connection.executemany(
            _INSERT_EMBEDDING,
            [(number, v.identity, v.sent_hash, v.parts, v.vector) for number, v in by_id.items()],
        )
        rows = connection.execute("SELECT id FROM embeddings WHERE id > ? ORDER BY id", (before,)).fetchall()
        ids = [int(row[0]) for row in rows]
        if ids:
            floats = b"".join([by_id[number].vector for number in ids])
            add_to_blocks(connection, identity.id, identity.dimension, ids, floats)


def refuse_unsound(vectors: Sequence[tuple[str, NewVector]], dimension: int) -> None:
    """Raise RowRefusedError for a vector that has not the identity's length, holds what is no number, or is not of unit
    length; with the key of its document."""
    for key, vector in vectors:
        if len(vector.vector) != dimension * 4:
            raise RowRefusedError(f"{key}: a vector of {len(vector.vector)} bytes, where {dimension * 4} are due")
    sound = are_sound(b"".join([vector.vector for _, vector in vectors]), dimension)
    if not all(sound):
        key = vectors[sound.index(False)][0]
        raise RowRefusedError(f"{key}: a vector that is not finite or not of unit length")


def are_sound(floats: bytes, dimension: int) -> list[bool]:
    """Of vectors one after the other: whether each is finite and of unit length."""
    import numpy as np

    values = np.frombuffer(floats, dtype="<f4").reshape(-1, dimension)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is not near 1 either
        squares = np.einsum("ij,ij->i", values, values)
        return (np.abs(np.sqrt(squares) - 1.0) <= CANARY_TOLERANCE).tolist()  # type: ignore[no-any-return]


def _link(connection: driver.Connection, wanted: Sequence[Linked], stored: Container[str]) -> set[tuple[str, int]]:
    """Link documents to vectors; the pairs of key and identity that are linked whole. A pair that lacks one is not
    linked at all, and refused where it is required. `stored`: documents that may have links already."""
    if not wanted:
        return set()
    chunks = _chunks_by_key(connection, {key for key, _ in wanted})
    for key, links in wanted:
        if len(chunks.get(key, ())) != len(links.sent_hashes):
            raise RowRefusedError(f"{key}: {len(links.sent_hashes)} vectors for {len(chunks.get(key, ()))} chunks")
    spans = [(links.identity, *_span(chunks[key])) for key, links in wanted if key in stored]
    connection.executemany(_DELETE_LINKS, spans)
    rows = [
        (chunk, links.identity, sent_hash)
        for key, links in wanted
        for chunk, sent_hash in zip(chunks[key], links.sent_hashes, strict=True)
    ]
    if connection.executemany(_INSERT_LINK, rows).rowcount == len(rows):
        return {(key, links.identity) for key, links in wanted}
    return {(key, links.identity) for key, links in wanted if _is_linked_whole(connection, key, links, chunks[key])}


def _is_linked_whole(connection: driver.Connection, key: str, links: VectorLinks, chunks: Sequence[int]) -> bool:
    """Whether every chunk of a document got its link; what it got is taken back otherwise."""
    own = (links.identity, *_span(chunks))
    linked = connection.execute(
        "SELECT count(*) FROM vector_links WHERE identity = ? AND chunk BETWEEN ? AND ?", own
    ).fetchone()[0]
    if linked == len(chunks):
        return True
    if links.required:
        raise RowRefusedError(f"{key}: {len(chunks) - linked} of its {len(chunks)} vectors are missing")
    connection.execute(_DELETE_LINKS, own)
    return False


def _span(chunks: Sequence[int]) -> tuple[int, int]:
    """First and last id of a document's chunks. They are issued in one loop: nobody else's lie between."""
    return chunks[0], chunks[-1]


def _chunks_by_key(connection: driver.Connection, keys: Iterable[str]) -> dict[str, list[int]]:
    """Ids of the chunks of documents, by ordinal."""
    found: dict[str, list[int]] = {}
    for key, chunk in connection.execute(_CHUNKS, (json.dumps(list(keys)),)).fetchall():
        found.setdefault(key, []).append(chunk)
    return found
