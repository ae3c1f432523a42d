"""Chunk ids to document ids, and documents in the order of their keys.

Chunks are looked up in the store one by one, until as many were asked for as a table of every chunk would have cost;
then it is made, once for a state of the store: it hangs on (store_uuid, commit_seq), and a commit makes it void. So
a rare word costs a fresh process little, and a server pays at most twice what is needed. Plain lists: for 260,000
ids they are as quick as numpy, whose import costs a command 0.1 s.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat

from msgspec import Struct

from store.enumeration_port import DocumentStarts, EnumerationSnapshot
from store.port import StoreIdentity

DocumentsOf = Callable[[Sequence[int]], Iterable[int]]
"""The document of each of these chunks, in their order."""

MAX_STATES = 2
LOOK_UPS_A_DOCUMENT = 0.5  # a look-up takes 2 microseconds, the table 1 a document
MAX_TABLE_ENTRIES = 4_000_000  # 8 bytes each; of a store with higher chunk ids, each is looked for by bisection
FEW_KEYS = 1_000  # documents whose keys are read; more are ordered by a table of all keys


class _State(Struct):
    """What is known of a state of the store; threads may share it, since a table is always the same."""

    looked_up: int = 0  # chunks, one by one
    table: "ChunkTable | None" = None


class ChunkTable:
    """Where every document of a state begins."""

    def __init__(self, starts: DocumentStarts) -> None:
        self._starts = starts
        self._table: list[int] = []
        if starts.last_chunk_id < MAX_TABLE_ENTRIES:
            self._table = list(_every_chunk(starts))
        self._places: dict[int, int] = {}

    def documents_of(self, chunk_ids: Sequence[int]) -> Iterable[int]:
        """Lazily. Raises LookupError for a chunk behind the last."""
        if self._table:
            return map(self._table.__getitem__, chunk_ids)
        documents, firsts = self._starts.document_ids, (*self._starts.first_chunk_ids, self._starts.last_chunk_id + 1)
        return (documents[bisect_right(firsts, chunk_id) - 1] for chunk_id in chunk_ids)

    def places(self, snapshot: EnumerationSnapshot) -> dict[int, int]:
        """Document id -> its place among all keys."""
        if not self._places:
            self._places = {document: place for place, document in enumerate(snapshot.documents_by_key())}
        return self._places


def _every_chunk(starts: DocumentStarts) -> Iterator[int]:
    """The document at each chunk id from 0 up."""
    firsts = starts.first_chunk_ids
    if not firsts:
        return iter(())
    ends = chain(firsts[1:], (starts.last_chunk_id + 1,))
    spans = (end - first for first, end in zip(firsts, ends, strict=True))
    return chain(repeat(0, firsts[0]), chain.from_iterable(map(repeat, starts.document_ids, spans)))


_states: dict[tuple[str, int], _State] = {}


def documents_lookup(
    snapshot: EnumerationSnapshot, identity: StoreIdentity, postings: Sequence[Sequence[int]], document_total: int
) -> DocumentsOf:
    """A function that knows the document of every chunk in these lists."""
    state = _state_of(identity)
    if state.table is None:
        state.looked_up += sum(map(len, postings))
        if state.looked_up <= document_total * LOOK_UPS_A_DOCUMENT:
            found = snapshot.documents_of(sorted({chunk_id for ids in postings for chunk_id in ids}))
            return lambda chunk_ids: map(found.__getitem__, chunk_ids)
    return _table_of(snapshot, identity).documents_of


def in_key_order(snapshot: EnumerationSnapshot, identity: StoreIdentity, documents: Sequence[int]) -> list[int]:
    """The documents by their keys."""
    if len(documents) <= FEW_KEYS:
        return [document for _, document in sorted(snapshot.keys_of(documents))]
    return sorted(documents, key=_table_of(snapshot, identity).places(snapshot).__getitem__)


def forget_tables() -> None:
    """For measurements and tests: as if the process had just begun."""
    _states.clear()


def _table_of(snapshot: EnumerationSnapshot, identity: StoreIdentity) -> ChunkTable:
    state = _state_of(identity)
    if state.table is None:
        state.table = ChunkTable(snapshot.document_starts())
    return state.table


def _state_of(identity: StoreIdentity) -> _State:
    key = (identity.store_uuid, identity.commit_seq)
    found = _states.get(key)
    if found is None:
        found = _states[key] = _State()
        for old in list(_states)[:-MAX_STATES]:
            _states.pop(old, None)
    return found
