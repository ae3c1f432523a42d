"""How the work of a run is cut where vectors are made: a page holds the store's lock for its vectors, too (R24), and
its worker holds all of them until they are written."""

from collections.abc import Collection, Iterator, Sequence

from app.dry_run import TEXT_BYTES_PER_CHUNK
from domain.files import FileCheck, Page
from domain.vectors import vector_weight_bytes
from store.vector_port import UncoveredDocument, VectorSnapshot

PAGE_WEIGHT_BYTES = 1_200_000  # of text, or of what holds the lock as long; a tenth of a second


def chunks_per_page(dimension: int) -> int:
    """How many chunks with new vectors one page may carry; a file with more is a page by itself."""
    return PAGE_WEIGHT_BYTES // (TEXT_BYTES_PER_CHUNK + vector_weight_bytes(dimension))


def bytes_per_page(dimension: int) -> int:
    """The same as text of files, whose chunks nobody has counted yet."""
    return chunks_per_page(dimension) * TEXT_BYTES_PER_CHUNK


def vector_pages(
    snapshot: VectorSnapshot,
    identity: int,
    roots: Sequence[str],
    *,
    files_per_page: int,
    chunks_per_page: int,
    first_number: int,
    without: Collection[str],
) -> Iterator[Page]:
    """Pages of stored documents that lack vectors of an identity, root by root, in key order. `without`: keys that
    were refused in this run already."""
    number = first_number
    for root in roots:
        after = ""
        while found := snapshot.keys_without_vectors(identity, after=after, limit=files_per_page, prefix=f"{root}/"):
            taken = _up_to(found, chunks_per_page)
            after = taken[-1].key
            files = tuple(FileCheck(each.key, each.file_hash) for each in taken if each.key not in without)
            if files:
                yield Page(number, root, files, "vectors")
                number += 1


def _up_to(documents: Sequence[UncoveredDocument], chunks: int) -> Sequence[UncoveredDocument]:
    """As many of the first ones as have so many chunks together; one in any case."""
    total = 0
    for place, document in enumerate(documents):
        total += document.chunk_count
        if total > chunks and place:
            return documents[:place]
    return documents
