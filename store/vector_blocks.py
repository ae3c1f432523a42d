"""Packed signs of the vectors, in blocks: what a search scans before it compares whole vectors. Derived data.

A row of bits holds one sign a dimension (1: greater than 0, the lowest bit first) and is padded to whole 8 bytes.
Ids ascend within a block and from block to block. numpy is imported where it is used: a store without vectors never
loads it.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from store import driver
from store.connection import immediate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Bits = NDArray[np.uint8]

BLOCK_ROWS = 1024
BLOCKS_PER_TRANSACTION = 16  # of a compaction; 1 MB of blocks at 384 dimensions

_LAST_BLOCK = (
    "SELECT id, count, CASE WHEN count < ?2 THEN embedding_ids ELSE x'' END,"
    " CASE WHEN count < ?2 THEN bits ELSE x'' END"
    " FROM vector_blocks WHERE identity = ?1 ORDER BY id DESC LIMIT 1"
)
_INSERT = "INSERT INTO vector_blocks (id, identity, count, embedding_ids, bits) VALUES (?, ?, ?, ?, ?)"
_UPDATE = "UPDATE vector_blocks SET count = ?, embedding_ids = ?, bits = ? WHERE id = ?"
# NOT INDEXED: in the order of the table, without a sort
_FLOATS = (
    "SELECT id, vector FROM embeddings NOT INDEXED"
    " WHERE identity = ? AND id > ? AND id <= ? AND length(vector) = ? ORDER BY id LIMIT ?"
)


def row_bytes(dimension: int) -> int:
    """Bytes of one row of bits."""
    return -(-dimension // 64) * 8


def pack_signs(floats: bytes, dimension: int) -> bytes:
    """The rows of bits of any number of vectors, given one after the other as little-endian float32."""
    import numpy as np

    signs = np.frombuffer(floats, dtype="<f4").reshape(-1, dimension) > 0
    packed = np.packbits(signs, axis=1, bitorder="little")
    padding = row_bytes(dimension) - packed.shape[1]
    return np.pad(packed, ((0, 0), (0, padding))).tobytes() if padding else packed.tobytes()


def add_to_blocks(
    connection: driver.Connection, identity: int, dimension: int, ids: Sequence[int], floats: bytes
) -> None:
    """Append vectors, ids ascending and above all that stand in blocks: fill the last block, then begin new ones."""
    width, start = row_bytes(dimension), 0
    packed_ids, bits = _pack_ids(ids), pack_signs(floats, dimension)
    last = connection.execute(_LAST_BLOCK, (identity, BLOCK_ROWS)).fetchone()
    if last is not None and last[1] < BLOCK_ROWS:
        start = min(BLOCK_ROWS - last[1], len(ids))
        filled = (last[1] + start, last[2] + packed_ids[: start * 8], last[3] + bits[: start * width], last[0])
        connection.execute(_UPDATE, filled)
    for first in range(start, len(ids), BLOCK_ROWS):
        end = min(first + BLOCK_ROWS, len(ids))
        block = (end - first, packed_ids[first * 8 : end * 8], bits[first * width : end * width])
        connection.execute(_INSERT, (None, identity, *block))


def rebuild_blocks(connection: driver.Connection, identity: int) -> int:
    """Make the blocks of an identity again from its vectors, one block at a time; says how many vectors they hold.

    The caller holds the transaction. A vector of another length than the identity's is left out.
    """
    connection.execute("DELETE FROM vector_blocks WHERE identity = ?", (identity,))
    dimension = connection.execute("SELECT dimension FROM vector_identities WHERE id = ?", (identity,)).fetchone()[0]
    total = 0
    for ids, floats in vector_pages(connection, identity, dimension):
        block = (len(ids), _pack_ids(ids), pack_signs(floats, dimension))
        connection.execute(_INSERT, (None, identity, *block))
        total += len(ids)
    return total


def vector_pages(
    connection: driver.Connection, identity: int, dimension: int, *, after: int = 0, up_to: int = 2**63 - 1
) -> Iterator[tuple[list[int], bytes]]:
    """The vectors of an identity that have its length, in order of their ids, `BLOCK_ROWS` at a time: ids, and floats
    one after the other."""
    while True:
        page = connection.execute(_FLOATS, (identity, after, up_to, dimension * 4, BLOCK_ROWS)).fetchall()
        if page:
            after = page[-1][0]
            yield [row[0] for row in page], b"".join([row[1] for row in page])
        if len(page) < BLOCK_ROWS:
            return


def compact_blocks(connection: driver.Connection, identity: int) -> None:
    """Take what is gone out of an identity's blocks and close the gaps, in several short transactions.

    Between two of them every vector stands in exactly one block. The caller is the one writer.
    """
    held = connection.execute("SELECT id, count FROM vector_blocks WHERE identity = ?", (identity,)).fetchall()
    alive = _living_ids(connection, identity)
    if sum(row[1] for row in held) == len(alive):
        return
    waiting = sorted(row[0] for row in held)
    carried: list[int] = []
    while waiting:
        batch, waiting = carried + waiting[:BLOCKS_PER_TRANSACTION], waiting[BLOCKS_PER_TRANSACTION:]
        with immediate(connection):
            carried = _compact_batch(connection, identity, batch, alive, is_shifting=bool(carried))


def _compact_batch(
    connection: driver.Connection, identity: int, batch: list[int], alive: "Ids", *, is_shifting: bool
) -> list[int]:
    """Rewrite some neighbouring blocks without what is gone; the one that is left open at the end, if any."""
    import numpy as np

    read = [read_block(connection, block_id) for block_id in batch]
    ids = np.concatenate([block[0] for block in read])
    bits = np.concatenate([block[1] for block in read])
    keep = is_among(ids, alive)
    if keep.all() and not is_shifting:
        return []
    ids, bits = ids[keep], bits[keep]
    connection.executemany("DELETE FROM vector_blocks WHERE id = ?", [(block_id,) for block_id in batch])
    starts = range(0, len(ids), BLOCK_ROWS)
    for block_id, start in zip(batch, starts, strict=False):
        part = slice(start, start + BLOCK_ROWS)
        block = (len(ids[part]), ids[part].astype("<i8").tobytes(), bits[part].tobytes())
        connection.execute(_INSERT, (block_id, identity, *block))
    return [batch[len(starts) - 1]] if len(ids) % BLOCK_ROWS else []


def read_block(connection: driver.Connection, block_id: int) -> "tuple[Ids, Bits]":
    """Ids and rows of bits of one block. Raises ValueError where they do not fit together."""
    import numpy as np

    count, ids, bits = connection.execute(
        "SELECT count, embedding_ids, bits FROM vector_blocks WHERE id = ?", (block_id,)
    ).fetchone()
    return np.frombuffer(ids, dtype="<i8"), np.frombuffer(bits, dtype=np.uint8).reshape(count, -1)


def _living_ids(connection: driver.Connection, identity: int) -> "Ids":
    """The ids of an identity's vectors, ascending; read from an index, which holds no floats."""
    import numpy as np

    rows = connection.execute("SELECT id FROM embeddings INDEXED BY embeddings_by_text WHERE identity = ?", (identity,))
    return np.sort(np.fromiter((row[0] for row in rows), dtype=np.int64))


def is_among(ids: "Ids", sorted_ids: "Ids") -> "NDArray[np.bool_]":
    """Of some ids: which stand among others, that ascend."""
    import numpy as np

    if not len(sorted_ids):
        return np.zeros(len(ids), dtype=np.bool_)
    places = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.equal(sorted_ids[places], ids)


def _pack_ids(ids: Sequence[int]) -> bytes:
    import numpy as np

    return np.asarray(ids, dtype="<i8").tobytes()
