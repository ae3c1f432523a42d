"""Vectors for stores of tests, put in below the writer: what stands where is chosen, also what no writer leaves."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store import driver
from store.vector_memory import pack_signs
from store.vector_schema import create_vector_schema, has_vectors

Vectors = NDArray[np.float32]


def unit(vectors: "NDArray[np.floating[Any]] | Sequence[Sequence[float]]") -> Vectors:
    """Rows of unit length."""
    rows = np.asarray(vectors, dtype="<f4")
    made: Vectors = (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype("<f4")
    return made


def clustered(count: int, dimension: int, seed: int = 1) -> Vectors:
    """Vectors that stand around a few hundred points, as those of text do."""
    source = np.random.default_rng(seed)
    centres = source.standard_normal((max(1, count // 50), dimension))
    return unit(centres[source.integers(0, len(centres), count)] + 0.8 * source.standard_normal((count, dimension)))


@contextmanager
def changing(database: Path) -> Iterator[driver.Connection]:
    """A connection that writes, in one transaction which counts as a commit."""
    connection = driver.connect(str(database), uri=False, timeout_s=5.0)
    try:
        connection.execute("BEGIN IMMEDIATE")
        if not has_vectors(connection):
            create_vector_schema(connection)
        yield connection
        connection.execute("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'commit_seq'")
        connection.execute("COMMIT")
    finally:
        connection.close()


def pin(
    connection: driver.Connection, dimension: int, *, identity: int = 1, state: str = "active", model: str = "m"
) -> int:
    connection.execute(
        "INSERT INTO vector_identities (id, model, served_model, dimension, normalised, query_prefix, document_prefix,"
        " canary, state, created_ns) VALUES (?, ?, ?, ?, 1, '', '', x'', ?, 1)",
        (identity, model, model, dimension, state),
    )
    return identity


def add(
    connection: driver.Connection, vectors: Vectors, *, identity: int = 1, block: int = 1024, packed: bool = True
) -> list[int]:
    """Store vectors and pack their signs, the last block filled up first; their ids."""
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM embeddings").fetchone()
    ids = list(range(last + 1, last + 1 + len(vectors)))
    connection.executemany(
        "INSERT INTO embeddings (id, identity, sent_hash, parts, vector) VALUES (?, ?, ?, 1, ?)",
        [
            (embedding, identity, embedding.to_bytes(16, "big"), vector.astype("<f4").tobytes())
            for embedding, vector in zip(ids, vectors, strict=True)
        ],
    )
    if packed:
        pack(connection, ids, vectors, identity=identity, block=block)
    return ids


def pack(
    connection: driver.Connection, ids: Sequence[int], vectors: Vectors, *, identity: int = 1, block: int = 1024
) -> None:
    bits = pack_signs(vectors)
    at = 0
    last = connection.execute(
        "SELECT id, count, embedding_ids, bits FROM vector_blocks WHERE identity = ? ORDER BY id DESC LIMIT 1",
        (identity,),
    ).fetchone()
    if last is not None and last[1] < block:
        at = min(block - last[1], len(ids))
        connection.execute(
            "UPDATE vector_blocks SET count = ?, embedding_ids = ?, bits = ? WHERE id = ?",
            (last[1] + at, last[2] + _ids(ids[:at]), last[3] + bits[:at].tobytes(), last[0]),
        )
    while at < len(ids):
        part = slice(at, at + block)
        connection.execute(
            "INSERT INTO vector_blocks (identity, count, embedding_ids, bits) VALUES (?, ?, ?, ?)",
            (identity, len(ids[part]), _ids(ids[part]), bits[part].tobytes()),
        )
        at += block


def link(connection: driver.Connection, chunks: Mapping[int, int], *, identity: int = 1) -> None:
    """Say which vector stands for a chunk."""
    connection.executemany(
        "INSERT OR REPLACE INTO vector_links (chunk, identity, embedding) VALUES (?, ?, ?)",
        [(chunk, identity, embedding) for chunk, embedding in chunks.items()],
    )


def _ids(ids: Sequence[int]) -> bytes:
    return np.asarray(ids, dtype="<i8").tobytes()
