"""The signs of a store's vectors, packed into bits and held in memory: a coarse look at all of them in milliseconds.

Who may stand near a query is decided in two steps that read no row: by the number of equal signs (over 500,000 vectors
of 384 dimensions 7 ms), then, of the best of these, by the query's own numbers against the signs. The words of the bits
stand transposed, one array for each 64 dimensions: counting bits goes ten times faster through them than row by row.

One memory a process, followed by (store_uuid, identity, commit_seq): a commit makes only the blocks read that are new.
"""

import json
import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from store import driver
from store.port import Scope

Words = NDArray[np.uint64]
Ids = NDArray[np.int64]
Positions = NDArray[np.intp]

COLUMNS_A_STEP = 16_384  # counts and words of a step fit the processor's nearest cache
CANDIDATES_A_RESULT = 8  # by equal signs, for each that is wanted of the second step
MOST_EQUALLY_FAR = 4  # with many that are equally far, so many times what was wanted
ROWS_A_STEP = 4_096  # of numbers made from bits: 6 MB
MAX_SETS = 4  # a process may serve several stores
MAX_MASKS = 8  # of scopes, for one state of a store
ROOM = 8  # one part in eight is kept free for vectors to come
_FAR = np.iinfo(np.uint16).max


class PackedVectors(NamedTuple):
    """The vectors of one identity: column i of `words` holds the signs of the vector `ids[i]`; ids ascend.

    Some of the ids may be gone from the store: whoever reads their rows finds out.
    """

    words: Words
    ids: Ids
    dimension: int

    def candidates(self, query: NDArray[np.float32], wanted: int, mask: NDArray[np.bool_] | None) -> list[int]:
        """Ids of about `wanted` vectors likely to be the nearest, in no order; `mask` says which of all may be."""
        chosen = self._by_equal_signs(query, CANDIDATES_A_RESULT * wanted, mask)
        if len(chosen) > wanted:
            scores = self._by_signs(query, chosen)
            chosen = chosen[np.argpartition(-scores, wanted)[:wanted]]
        found: list[int] = self.ids[chosen].tolist()
        return found

    def _by_equal_signs(self, query: NDArray[np.float32], wanted: int, mask: NDArray[np.bool_] | None) -> Positions:
        """Positions of the vectors with the most signs like the query's: `wanted`, and all as far away as the last."""
        signs = pack_signs(query[None, :])[0]
        distances = np.empty(len(self.ids), dtype=np.uint16)
        for start in range(0, len(distances), COLUMNS_A_STEP):
            part = distances[start : start + COLUMNS_A_STEP]
            columns = self.words[:, start : start + COLUMNS_A_STEP]
            part[:] = np.bitwise_count(columns[0] ^ signs[0])
            for row in range(1, len(signs)):
                part += np.bitwise_count(columns[row] ^ signs[row])
        if mask is not None:
            distances[~mask] = _FAR
        counts = np.bincount(distances, minlength=1)[: self.dimension + 1]
        farthest = int(np.searchsorted(np.cumsum(counts), wanted))
        chosen = np.flatnonzero(distances <= min(farthest, self.dimension))
        return chosen[: MOST_EQUALLY_FAR * wanted]

    def _by_signs(self, query: NDArray[np.float32], chosen: Positions) -> NDArray[np.float32]:
        """The sum of the query's numbers where a vector is positive."""
        scores = np.empty(len(chosen), dtype=np.float32)
        for start in range(0, len(chosen), ROWS_A_STEP):
            part = chosen[start : start + ROWS_A_STEP]
            rows = np.ascontiguousarray(self.words[:, part].T).view(np.uint8)
            bits = np.unpackbits(rows, axis=1, bitorder="little")[:, : self.dimension]
            scores[start : start + ROWS_A_STEP] = bits.astype(np.float32) @ query
        return scores


def pack_signs(vectors: NDArray[np.float32]) -> Words:
    """A row of 64-bit words for each vector: a bit a dimension, set where it is positive, the last word filled up."""
    bits = np.packbits(vectors > 0, axis=1, bitorder="little")
    padded = np.zeros((len(vectors), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view("<u8")


class _Set:
    """The vectors of one identity of one store, kept up with it. Used under the memory's lock.

    Whoever was given `packed` may use it for as long as it likes: what is added goes behind its end.
    """

    def __init__(self, dimension: int) -> None:
        self.commit_seq = -1
        self._width = -(-dimension // 64)
        self._words: Words = np.empty((self._width, 0), dtype=np.uint64)
        self._ids: Ids = np.empty(0, dtype=np.int64)
        self._blocks: list[tuple[int, int]] = []  # id and count
        self._count = 0
        self.packed = PackedVectors(self._words, self._ids, dimension)
        self.masks: dict[Scope, NDArray[np.bool_]] = {}

    def follow(self, connection: driver.Connection, identity: int, commit_seq: int) -> None:
        """Read the blocks that are new since the last time; all of them where an old one has changed."""
        listed: list[tuple[int, int]] = connection.execute(
            "SELECT id, count FROM vector_blocks WHERE identity = ? ORDER BY id", (identity,)
        ).fetchall()
        known = self._blocks
        grows = bool(known) and len(listed) >= len(known) and listed[: len(known) - 1] == known[:-1]
        if not (grows and self._append_behind_known(_blocks(connection, identity, known[-1][0]))):
            self._count = 0
            self._ids = np.empty(0, dtype=np.int64)  # anew: the old arrays may be somebody's
            self._words = np.empty((self._width, 0), dtype=np.uint64)
            self._make_room(sum(count for _, count in listed))
            for _, ids, bits in _blocks(connection, identity, 0):
                self._append(ids, bits)
        self.commit_seq = commit_seq
        self._blocks = listed
        self.packed = PackedVectors(self._words[:, : self._count], self._ids[: self._count], self.packed.dimension)
        self.masks = {}

    def _append_behind_known(self, blocks: Iterator[tuple[int, bytes, bytes]]) -> bool:
        """Add what stands behind the last known vector; False where the last known block is another one now."""
        last_id, last_count = self._blocks[-1]
        block_id, ids, bits = next(blocks, (0, b"", b""))
        if block_id != last_id:
            return False
        known = self._ids[self._count - last_count : self._count]
        if not np.array_equal(np.frombuffer(ids, "<i8")[:last_count], known):
            return False
        self._append(ids[8 * last_count :], bits[8 * self._width * last_count :])
        for _, more_ids, more_bits in blocks:
            self._append(more_ids, more_bits)
        return True

    def _append(self, ids: bytes, bits: bytes) -> None:
        count = len(ids) // 8
        self._make_room(self._count + count)
        end = self._count + count
        self._ids[self._count : end] = np.frombuffer(ids, "<i8")
        self._words[:, self._count : end] = np.frombuffer(bits, "<u8").reshape(count, self._width).T
        self._count = end

    def _make_room(self, count: int) -> None:
        if count <= len(self._ids):
            return
        capacity = count + count // ROOM
        words = np.empty((self._width, capacity), dtype=np.uint64)
        words[:, : self._count] = self._words[:, : self._count]
        ids = np.empty(capacity, dtype=np.int64)
        ids[: self._count] = self._ids[: self._count]
        self._words, self._ids = words, ids


class VectorMemory:
    """What a process remembers of the vectors of its stores; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sets: dict[tuple[str, int], _Set] = {}

    def holds(self, store_uuid: str, identity: int) -> bool:
        return (store_uuid, identity) in self._sets

    def packed(
        self, connection: driver.Connection, state: tuple[str, int], identity: int, dimension: int
    ) -> PackedVectors:
        """The vectors as of the commit that the connection sees, or a later one. `state`: store_uuid, commit_seq."""
        with self._lock:
            return self._followed(connection, state, identity, dimension).packed

    def mask(
        self, connection: driver.Connection, state: tuple[str, int], identity: int, packed: PackedVectors, scope: Scope
    ) -> NDArray[np.bool_]:
        """Which of the vectors stand for chunks inside a scope."""
        with self._lock:
            held = self._sets.get((state[0], identity))
            if held is not None and held.packed.ids is packed.ids and held.commit_seq == state[1]:
                if scope not in held.masks:
                    while len(held.masks) >= MAX_MASKS:
                        held.masks.pop(next(iter(held.masks)))
                    held.masks[scope] = _mask(connection, identity, packed, scope)
                return held.masks[scope]
        return _mask(connection, identity, packed, scope)

    def _followed(self, connection: driver.Connection, state: tuple[str, int], identity: int, dimension: int) -> _Set:
        store_uuid, commit_seq = state
        key = (store_uuid, identity)
        held = self._sets.pop(key, None)
        if held is None or held.packed.dimension != dimension:
            held = _Set(dimension)
            for older in [one for one in self._sets if one[0] == store_uuid and one[1] < identity]:
                del self._sets[older]
        if held.commit_seq < commit_seq:
            held.follow(connection, identity, commit_seq)
        self._sets[key] = held  # the last one used stands last
        for old in list(self._sets)[:-MAX_SETS]:
            del self._sets[old]
        return held


def _blocks(connection: driver.Connection, identity: int, first: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Id, ids of vectors and their signs of each block from an id on; one is held at a time."""
    cursor = connection.execute(
        "SELECT id, embedding_ids, bits FROM vector_blocks WHERE identity = ? AND id >= ? ORDER BY id",
        (identity, first),
    )
    try:
        yield from cursor
    finally:
        cursor.close()


def _mask(connection: driver.Connection, identity: int, packed: PackedVectors, scope: Scope) -> NDArray[np.bool_]:
    # as one text: a row for each number takes six times as long
    (listed,) = connection.execute(
        "SELECT group_concat(l.embedding) FROM json_each(?) AS span CROSS JOIN vector_links AS l ON l.identity = ?"
        " AND l.chunk BETWEEN json_extract(span.value, '$[0]') AND json_extract(span.value, '$[1]')",
        (json.dumps(scope.ranges), identity),
    ).fetchone()
    mask = np.zeros(len(packed.ids), dtype=np.bool_)
    inside = np.fromstring(listed or "", dtype=np.int64, sep=",")
    at = np.searchsorted(packed.ids, inside)
    known = at < len(packed.ids)
    at, inside = at[known], inside[known]
    mask[at[packed.ids[at] == inside]] = True
    return mask


memory = VectorMemory()
