"""How stored documents without vectors are cut into pages: by files and by chunks (R24)."""

from collections.abc import Sequence
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from app.vector_pages import PAGE_WEIGHT_BYTES, bytes_per_page, chunks_per_page, vector_pages
from domain.files import Page
from domain.vectors import vector_weight_bytes
from store.vector_port import UncoveredDocument, VectorSnapshot


class Uncovered:
    """Documents of two roots, none of which has vectors."""

    def __init__(self, chunk_counts: Sequence[int]) -> None:
        self.documents = [
            UncoveredDocument(f"{'ab'[at % 2]}/{at:03}", bytes([at]), count) for at, count in enumerate(chunk_counts)
        ]

    def keys_without_vectors(
        self, identity: int, *, after: str, limit: int, prefix: str = ""
    ) -> Sequence[UncoveredDocument]:
        assert identity == 7
        found = [each for each in self.documents if each.key.startswith(prefix) and each.key > after]
        return sorted(found)[:limit]


def cut(stored: Uncovered, *, files: int, chunks: int, without: frozenset[str] = frozenset()) -> list[Page]:
    snapshot = cast(VectorSnapshot, stored)
    return list(
        vector_pages(
            snapshot, 7, ["a", "b"], files_per_page=files, chunks_per_page=chunks, first_number=5, without=without
        )
    )


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 6), st.integers(1, 40), st.sets(st.integers(0, 39)))
def test_every_document_is_in_one_page_and_no_page_is_too_large(
    chunk_counts: list[int], files: int, chunks: int, refused: set[int]
) -> None:
    stored = Uncovered(chunk_counts)
    without = frozenset(document.key for at, document in enumerate(stored.documents) if at in refused)
    pages = cut(stored, files=files, chunks=chunks, without=without)
    counts = {document.key: document.chunk_count for document in stored.documents}
    assert [page.number for page in pages] == list(range(5, 5 + len(pages)))
    assert [file.key for page in pages for file in page.files] == sorted(set(counts) - without)
    for page in pages:
        assert page.kind == "vectors" and {file.key[0] for file in page.files} == {page.root}
        assert 1 <= len(page.files) <= files
        assert len(page.files) == 1 or sum(counts[file.key] for file in page.files) <= chunks


@given(st.integers(1, 16_384))
def test_a_page_holds_the_lock_as_long_whatever_the_dimension(dimension: int) -> None:
    """R24: of its chunks by their text and their vectors; there is room for some in any case."""
    chunks = chunks_per_page(dimension)
    assert chunks > 100
    assert bytes_per_page(dimension) + chunks * vector_weight_bytes(dimension) <= PAGE_WEIGHT_BYTES
