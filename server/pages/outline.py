"""The outline of a document: its headings, from the breadcrumbs of its chunks. Pure."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from store.port import StoredChunk

BETWEEN = " > "


class Heading(NamedTuple):
    text: str
    depth: int  # from 0
    ordinal: int  # of the first chunk under it


def outline(chunks: Iterable[StoredChunk]) -> Iterator[Heading]:
    """In the order of the document. A heading that holds the sign between two looks like two: nothing else is lost."""
    before: list[str] = []
    for chunk in chunks:
        path = chunk.heading_path.split(BETWEEN) if chunk.heading_path else []
        shared = 0
        while shared < min(len(before), len(path)) and before[shared] == path[shared]:
            shared += 1
        for depth in range(shared, len(path)):
            yield Heading(path[depth], depth, chunk.ordinal)
        before = path
