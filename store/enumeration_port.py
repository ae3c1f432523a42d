"""What an enumeration reads of a store: where a term stands, and which documents those places belong to.

Chunk ids of a document are one range, and ascend with document ids (see store.port.Scope).
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from store.port import StoreCounts, StoreIdentity, Visibility

Column = Literal["body", "heading_path", "names"]


class DocumentStarts(NamedTuple):
    """Every document with its first chunk: two columns of one table, both ascending. `last_chunk_id` ends the last."""

    document_ids: Sequence[int]
    first_chunk_ids: Sequence[int]
    last_chunk_id: int


class EnumeratedDocument(NamedTuple):
    """A document as an enumeration lists it; `first_chunk_id` is that of its ordinal 0."""

    id: int
    key: str
    title: str
    chunk_count: int
    first_chunk_id: int


class EnumerationSnapshot(Protocol):
    """Reads over one state of the store. Ids of chunks come ascending, each once, and none is left out."""

    def identity(self) -> StoreIdentity: ...

    def counts(self, prefix: str = "", *, visibility: Visibility) -> StoreCounts: ...

    def has_documents(self) -> bool: ...

    def stems(self, words: Sequence[str]) -> Mapping[str, tuple[str, ...]]: ...

    def folded(self, word: str) -> str:
        """The word as the vocabulary spells it; "" where it is no single word there."""
        ...

    def words_between(
        self, first: str, end: str, limit: int, *, visibility: Visibility
    ) -> Sequence[tuple[str, int]]: ...

    def chunks_with(self, text: str, column: Column) -> Sequence[int]:
        """Chunks whose column holds the text's words in any form, side by side where they are several."""
        ...

    def chunks_as_written(self, word: str, columns: Sequence[Column]) -> Sequence[int]:
        """Chunks of which one of the columns holds this very word, but for case and accents."""
        ...

    def chunks_with_part(self, text: str, column: Column) -> Sequence[int]:
        """Chunks of the trigram table whose column holds the text anywhere, also within a word."""
        ...

    def document_starts(self) -> DocumentStarts: ...

    def documents_of(self, chunk_ids: Sequence[int]) -> Mapping[int, int]:
        """Chunk id -> document id, looked up one by one: for few chunks."""
        ...

    def document_ids(self, prefix: str) -> Sequence[tuple[int, str]]: ...

    def documents_by_key(self) -> Sequence[int]:
        """Every document's id, in the order of the keys."""
        ...

    def hidden_documents(self, visibility: Visibility) -> Sequence[int]: ...

    def enumerated_documents(self, ids: Sequence[int]) -> Sequence[EnumeratedDocument]:
        """In the order of `ids`."""
        ...

    def keys_of(self, ids: Sequence[int]) -> Sequence[tuple[str, int]]:
        """Key and id of these documents, in any order."""
        ...
