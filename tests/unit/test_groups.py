"""What one transaction carries, and what becomes of a page once it is committed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import StorageError
from domain.files import FileFailure, Outcome, Reason
from store.failure_port import FailureRecord
from store.state_port import RemovalCandidate
from store.write_port import Applied, WriteGroup
from tests.support.writing import STAT, FakeStore, document, finished, keys_of, recheck, remove, skip
from workers.writer.groups import (
    FIRST_GROUP_BYTES,
    HOLD_SHORT_S,
    HOLD_TOO_LONG_S,
    LEAST_GROUP_BYTES,
    MOST_GROUP_BYTES,
    MOST_GROUP_FILES,
    Committed,
    apply_halving,
    group_length,
    group_of,
    next_group_bytes,
    page_outcome,
)


def test_a_group_grows_while_the_lock_is_held_shortly_and_shrinks_when_it_is_not() -> None:
    """R24: within limits on both sides."""
    assert next_group_bytes(FIRST_GROUP_BYTES, HOLD_SHORT_S / 2) > FIRST_GROUP_BYTES
    assert next_group_bytes(FIRST_GROUP_BYTES, HOLD_TOO_LONG_S * 2) < FIRST_GROUP_BYTES
    assert next_group_bytes(FIRST_GROUP_BYTES, (HOLD_SHORT_S + HOLD_TOO_LONG_S) / 2) == FIRST_GROUP_BYTES


@given(st.lists(st.floats(0, 10), max_size=60))
def test_a_group_stays_within_its_limits(holds_s: list[float]) -> None:
    size = FIRST_GROUP_BYTES
    for hold_s in holds_s:
        size = next_group_bytes(size, hold_s)
        assert LEAST_GROUP_BYTES <= size <= MOST_GROUP_BYTES


def test_a_page_alone_always_fits() -> None:
    assert group_length([], LEAST_GROUP_BYTES) == 0
    large = finished(1, ["docs/a"], text_bytes=10 * MOST_GROUP_BYTES)
    assert group_length([large, finished(2, ["docs/b"])], LEAST_GROUP_BYTES) == 1


def test_pages_fit_up_to_the_size_of_the_group() -> None:
    first, second = finished(1, ["docs/a"], text_bytes=60), finished(2, ["docs/b"], text_bytes=40)
    assert group_length([first, second], 100) == 2
    assert group_length([first, second], 99) == 1


def test_pages_without_text_are_bounded_by_their_files() -> None:
    first = finished(1, rechecks=[f"docs/{n}" for n in range(MOST_GROUP_FILES)])
    assert group_length([first, finished(2, rechecks=["docs/x"])], FIRST_GROUP_BYTES) == 1
    assert group_length([first, finished(2)], FIRST_GROUP_BYTES) == 2


def test_a_page_is_never_in_a_group_twice() -> None:
    """C-04: a key stands in a group at most once."""
    page = finished(1, ["docs/a"])
    assert group_length([page, page], FIRST_GROUP_BYTES) == 1
    assert group_length([page, finished(2, ["docs/b"])], FIRST_GROUP_BYTES) == 2


KINDS = st.lists(st.sampled_from(["document", "recheck", "skip", "remove"]), max_size=24)


@given(KINDS, st.sets(st.integers(0, 23)))
def test_halving_commits_all_but_the_guilty(kinds: list[str], guilty_numbers: set[int]) -> None:
    """R24: whatever kinds of writes a group holds, and however many of them cannot be stored."""
    keys = [f"docs/{number:02}" for number in range(len(kinds))]
    of_kind = {kind: [key for key, other in zip(keys, kinds, strict=True) if other == kind] for kind in set(kinds)}
    group = WriteGroup(
        documents=[document(key) for key in of_kind.get("document", [])],
        rechecks=[recheck(key) for key in of_kind.get("recheck", [])],
        skips=[skip(key) for key in of_kind.get("skip", [])],
        removes=[remove(key) for key in of_kind.get("remove", [])],
    )
    guilty = {keys[number] for number in guilty_numbers if number < len(keys)}
    store = FakeStore(refuses=guilty)
    committed = apply_halving(store, group)
    stored = [key for commit in store.committed for key in commit]
    assert sorted(stored) == sorted(set(keys) - guilty)
    assert {answer.key for answer in committed.results} == set(keys) - guilty
    assert {failure.key for failure in committed.refused} == guilty
    assert {failure.reason for failure in committed.refused} <= {Reason.STORE_REFUSED}
    assert committed.chunks_written == len([key for key in of_kind.get("document", []) if key not in guilty])
    assert len(store.asked) <= 1 + 2 * len(guilty) * max(1, len(keys)).bit_length()


def test_one_guilty_document_of_many_is_found_soon() -> None:
    keys = [f"docs/{number:02}" for number in range(64)]
    store = FakeStore(refuses={"docs/40"})
    apply_halving(store, WriteGroup(documents=[document(key) for key in keys]))
    assert len(store.asked) == 13


def test_a_storage_error_is_not_halved() -> None:
    """R24: only an error that a row can cause halves the group."""
    store = FakeStore()
    store.fails_with = StorageError("the disk says no")
    with pytest.raises(StorageError):
        apply_halving(store, WriteGroup(documents=[document("docs/a"), document("docs/b")]))
    assert len(store.asked) == 1


def test_what_is_recorded_of_a_page() -> None:
    """R35: counts by outcome, failures, recovered keys, and candidates for removal with what stat said."""
    page = finished(7, ["docs/a"], rechecks=["docs/b"], skips=["docs/c", "docs/d"], failures=["docs/e"])
    committed = apply_halving(FakeStore(stored={"docs/d"}), group_of([page, finished(8, ["docs/z"])]))
    outcome = page_outcome(page, committed, lambda: 99)
    assert outcome.page == 7
    assert outcome.counts == {"added": 1, "unchanged": 1, "skipped": 2, "failed": 1}
    assert outcome.failures == (FailureRecord("docs/e", "unreadable", "no", 1, 99, 99),)
    assert set(outcome.recovered) == {"docs/a", "docs/b", "docs/c", "docs/d"}
    assert outcome.candidates == (RemovalCandidate("docs/d", Reason.NOT_UTF8, STAT),)


def test_a_refused_document_is_a_failure_of_its_page() -> None:
    pages = [finished(1, ["docs/a", "docs/b"]), finished(2, ["docs/c"])]
    committed = apply_halving(FakeStore(refuses={"docs/b"}), group_of(pages))
    first, second = (page_outcome(page, committed) for page in pages)
    assert first.counts == {"added": 1, "failed": 1}
    assert [(failure.key, failure.reason) for failure in first.failures] == [("docs/b", "store_refused")]
    assert second.counts == {"added": 1}
    assert not second.failures


def test_a_key_that_two_pages_of_a_group_share_counts_once_for_each() -> None:
    """A page and its half, tried again after a worker's death, may meet in one group."""
    answers = (Applied("docs/a", "applied", Outcome.ADDED), Applied("docs/a", "unchanged", Outcome.ADDED))
    committed = Committed(answers, (), 1, 1)
    assert page_outcome(finished(1, ["docs/a"]), committed).counts == {"added": 1}


def test_every_key_of_a_page_has_exactly_one_outcome() -> None:
    page = finished(1, ["docs/a", "docs/b"], rechecks=["docs/c"], skips=["docs/d"], failures=["docs/e"])
    for refused in ("docs/a", "docs/c", "docs/d"):
        committed = apply_halving(FakeStore(refuses={refused}), group_of([page]))
        assert sum(page_outcome(page, committed).counts.values()) == 5


def test_a_group_keeps_the_order_of_its_pages() -> None:
    group = group_of([finished(1, ["docs/b"], skips=["docs/c"]), finished(2, ["docs/a"])])
    assert keys_of(group) == ["docs/b", "docs/a", "docs/c"]
    assert isinstance(finished(1, failures=["docs/x"]).failures[0], FileFailure)
