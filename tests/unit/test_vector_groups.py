"""Vectors in what one transaction carries: bounded, halved down to the guilty, recorded with their page."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from domain.files import Outcome, Reason
from domain.vectors import LINK_WEIGHT_BYTES, vector_weight_bytes
from store.connection import RowRefusedError
from store.write_port import Applied, GroupResult, NewVector, VectorLinks, VectorsWrite, WriteGroup
from tests.support.writing import document, finished
from workers.checking import FinishedPage
from workers.writer.groups import (
    FIRST_GROUP_BYTES,
    apply_halving,
    group_length,
    group_of,
    page_outcome,
    weight_bytes,
)


def name(number: int) -> bytes:
    return number.to_bytes(16, "big")


def vector(number: int) -> NewVector:
    return NewVector(1, name(number), 1, b"v")


def vectors_write(key: str, *numbers: int, bring: tuple[int, ...] = ()) -> VectorsWrite:
    links = VectorLinks(1, tuple(map(name, numbers)), True)
    return VectorsWrite(key, b"h", 1, links, tuple(map(vector, bring)))


class LinkingStore:
    """Refuses a group in which a write links to a vector that neither it nor the group has (store.vectors)."""

    def __init__(self) -> None:
        self.known: set[bytes] = set()
        self.stored: list[str] = []

    def apply(self, group: WriteGroup) -> GroupResult:
        brought = {v.sent_hash for part in (group.documents, group.vectors) for w in part for v in w.new_vectors}
        links = [link for write in group.documents for link in write.links] + [w.links for w in group.vectors]
        if any(one not in brought | self.known for link in links for one in link.sent_hashes):
            raise RowRefusedError("a vector is missing")
        self.known |= brought
        keys = [write.key for part in (group.documents, group.vectors) for write in part]
        self.stored += keys
        return GroupResult(tuple(Applied(key, "applied", Outcome.EMBEDDED) for key in keys), 1, 0)

    def highest_generation(self) -> int:
        return 0

    def close_generation(self, generation: int, *, complete: bool = False) -> None:
        return None


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), min_size=1, max_size=12), st.data())
def test_halving_refuses_only_what_lacks_a_vector(linked: list[list[int]], data: st.DataObject) -> None:
    """S2-35, R24: the first to need a text brings its vector; the others of both halves find it all the same."""
    made = data.draw(st.sets(st.integers(0, 5)))
    given_out: set[int] = set()
    writes = []
    for place, numbers in enumerate(linked):
        own = [number for number in dict.fromkeys(numbers) if number in made - given_out]
        given_out.update(own)
        writes.append(vectors_write(f"docs/{place:02}", *numbers, bring=tuple(own)))
    middle = data.draw(st.integers(0, len(writes)))
    documents = [replace(document(w.key), links=(w.links,), new_vectors=w.new_vectors) for w in writes[:middle]]
    store = LinkingStore()
    committed = apply_halving(store, WriteGroup(documents=documents, vectors=writes[middle:]))
    guilty = {w.key for w, numbers in zip(writes, linked, strict=True) if not set(numbers) <= made}
    assert sorted(store.stored) == sorted({write.key for write in writes} - guilty)
    assert {failure.key for failure in committed.refused} == guilty
    assert {failure.reason for failure in committed.refused} <= {Reason.STORE_REFUSED}


def page(number: int, *keys: str, chunks: int = 1) -> FinishedPage:
    vectors = tuple(vectors_write(key, *range(chunks)) for key in keys)
    return replace(finished(number), vectors=vectors)


def test_pages_of_vectors_are_bounded_as_text_is() -> None:
    """R24: they hold the lock, too."""
    fitting = FIRST_GROUP_BYTES // LINK_WEIGHT_BYTES
    assert group_length([page(1, "docs/a"), page(2, "docs/b", chunks=fitting - 1)], FIRST_GROUP_BYTES) == 2
    assert group_length([page(1, "docs/a"), page(2, "docs/b", chunks=fitting)], FIRST_GROUP_BYTES) == 1


@given(st.integers(1, 2048).map(lambda half: 2 * half), st.integers(0, 5))
def test_a_long_vector_weighs_more_than_a_short_one(dimension: int, count: int) -> None:
    """R24: with the document that brings it, or for one that is stored."""
    new = tuple(NewVector(1, name(number), 1, bytes(4 * dimension)) for number in range(count))
    links = VectorLinks(1, tuple(map(name, range(count))), required=True)
    with_document = replace(finished(1), documents=(replace(document("docs/a"), links=(links,), new_vectors=new),))
    of_stored = replace(finished(1), vectors=(replace(vectors_write("docs/a", *range(count)), new_vectors=new),))
    assert weight_bytes(with_document) - with_document.text_bytes == count * vector_weight_bytes(dimension)
    assert weight_bytes(of_stored) == count * vector_weight_bytes(dimension)


def test_vectors_are_recorded_with_their_page() -> None:
    pages = [page(1, "docs/a", "docs/b"), page(2, "docs/c")]
    group = group_of(pages)
    assert [write.key for write in group.vectors] == ["docs/a", "docs/b", "docs/c"]
    store = LinkingStore()
    store.known = {name(0)}
    outcome = page_outcome(pages[0], apply_halving(store, group))
    assert outcome.counts == {"embedded": 2}
    assert set(outcome.recovered) == {"docs/a", "docs/b"}
    store.known = set()
    outcome = page_outcome(pages[1], apply_halving(store, group))
    assert outcome.counts == {"failed": 1}
    assert [failure.key for failure in outcome.failures] == ["docs/c"]
