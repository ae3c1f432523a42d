"""The seam of the store for vectors: what workers ask before they embed, and what search asks (see store.port)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from domain.vectors import PinnedIdentity
from store.port import Scope, Visibility

VectorMethod = Literal["none", "exact", "bits"]
"""How the nearest vectors were found: every vector compared, or packed signs first and their best compared."""


class VectorStatus(NamedTuple):
    """What a store knows of vectors. `active` answers searches; `building` is made beside it."""

    active: PinnedIdentity | None = None
    building: PinnedIdentity | None = None
    pending_documents: int = 0  # stored for words, without vectors of the active identity
    pending_chunks: int = 0

    @property
    def target(self) -> PinnedIdentity | None:
        """The identity that new vectors are made for."""
        return self.building or self.active


NO_VECTORS = VectorStatus()


class VectorCounts(NamedTuple):
    """Of the active identity, for `stats`."""

    vectors: int  # distinct texts
    linked_chunks: int
    from_parts: int  # of `vectors`: means of the parts of a text too long for the model
    unused: int  # held for files that may come back
    bytes: int
    method: VectorMethod  # how a command finds the nearest among so many


class VectorHit(NamedTuple):
    chunk: int  # its id
    similarity: float  # cosine


class VectorFind(NamedTuple):
    """Chunks nearest to a query, nearest first, ties by id; copies of one text stand side by side."""

    hits: Sequence[VectorHit] = ()
    method: VectorMethod = "none"


class UncoveredDocument(NamedTuple):
    """A stored document without vectors of an identity."""

    key: str
    file_hash: bytes
    chunk_count: int


class ChunkText(NamedTuple):
    """What the text sent for a chunk is made from (domain.vectors.sent_text)."""

    heading_path: str
    body: str
    lead: str  # may be left out where there is a breadcrumb or a body


class DocumentTexts(NamedTuple):
    """A stored document as its vectors are made from it; texts by ordinal."""

    key: str
    file_hash: bytes
    texts: tuple[ChunkText, ...]


class VectorSnapshot(Protocol):
    """The reads of the vector tier. A store without one answers NO_VECTORS, and loads no extension (S0-04)."""

    def vector_status(self) -> VectorStatus: ...

    def vector_counts(self) -> VectorCounts: ...

    def known_vectors(self, identity: int, sent_hashes: Sequence[bytes]) -> frozenset[bytes]:
        """Which of these texts have a vector already."""
        ...

    def keys_without_vectors(
        self, identity: int, *, after: str, limit: int, prefix: str = ""
    ) -> Sequence[UncoveredDocument]:
        """Documents not covered under an identity, in key order, behind a key."""
        ...

    def texts_of(self, keys: Sequence[str]) -> Sequence[DocumentTexts]:
        """Of those of the documents that are stored."""
        ...

    def nearest(self, vector: bytes, *, limit: int, scope: Scope | None, visibility: Visibility) -> VectorFind:
        """The chunks nearest to a vector under the active identity; `limit` distinct texts at most."""
        ...
