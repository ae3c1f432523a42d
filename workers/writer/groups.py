"""What one transaction carries, and what becomes of a page once it is committed."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from domain.files import FileFailure, Outcome, Reason
from domain.vectors import LINK_WEIGHT_BYTES
from store.connection import RowRefusedError
from store.failure_port import FailureRecord
from store.state_port import PageOutcome, RemovalCandidate
from store.write_port import Applied, GroupResult, NewVector, StoreWriter, VectorLinks, WriteGroup
from workers.checking import FinishedPage

FIRST_GROUP_BYTES = 1_000_000  # text; about 80 ms of lock on the machine it was measured on
LEAST_GROUP_BYTES = 64 * 1024
MOST_GROUP_BYTES = 1_500_000
HOLD_TOO_LONG_S = 0.150  # R24: the lock's p99 stays under 250 ms
HOLD_SHORT_S = 0.075
MOST_GROUP_FILES = 4096


def next_group_bytes(current: int, hold_s: float) -> int:
    """How much text the next group carries, after one that held the lock for `hold_s`."""
    if hold_s > HOLD_TOO_LONG_S:
        return max(LEAST_GROUP_BYTES, current * 3 // 4)
    if hold_s < HOLD_SHORT_S:
        return min(MOST_GROUP_BYTES, current * 9 // 8)
    return current


def weight_bytes(page: FinishedPage) -> int:
    """How much text holds the lock for as long as this page."""
    links = sum(len(own.sent_hashes) for write in page.documents for own in write.links)
    links += sum(len(write.links.sent_hashes) for write in page.vectors)
    vector_bytes = sum(
        len(new.vector) for part in (page.documents, page.vectors) for w in part for new in w.new_vectors
    )
    return page.text_bytes + LINK_WEIGHT_BYTES * links + vector_bytes // 8


def group_length(waiting: Iterable[FinishedPage], group_bytes: int) -> int:
    """How many of the waiting pages, from the first on, make one group: the first in any case, then as many as fit
    into `group_bytes` of text (or what takes as long) and 4,096 files; never one page twice."""
    taken: set[tuple[int, int]] = set()
    text_bytes = files = 0
    for page in waiting:
        text_bytes += weight_bytes(page)
        files += page.file_count
        is_over = text_bytes > group_bytes or files > MOST_GROUP_FILES
        if taken and (is_over or (page.run, page.number) in taken):
            break
        taken.add((page.run, page.number))
    return len(taken)


def group_of(pages: Sequence[FinishedPage]) -> WriteGroup:
    return WriteGroup(
        documents=[write for page in pages for write in page.documents],
        rechecks=[write for page in pages for write in page.rechecks],
        skips=[write for page in pages for write in page.skips],
        vectors=[write for page in pages for write in page.vectors],
    )


class Committed(Struct, frozen=True):
    """What the store answered for every key of a group, and the documents that it refused."""

    results: tuple[Applied, ...]
    refused: tuple[FileFailure, ...]
    commit_seq: int
    chunks_written: int


def apply_halving(store: StoreWriter, group: WriteGroup) -> Committed:
    """Commit a group; where one of its rows cannot be stored, halve it down to the guilty document (R24).

    Each half is its own transaction. A storage error is raised as it comes: halving would not help.
    """
    try:
        done: GroupResult = store.apply(group)
    except RowRefusedError as refusal:
        halves = _halves(group)
        if halves is None:
            return Committed((), _refused(group, refusal), 0, 0)
        first, second = (apply_halving(store, half) for half in halves)
        return Committed(
            first.results + second.results,
            first.refused + second.refused,
            max(first.commit_seq, second.commit_seq),
            first.chunks_written + second.chunks_written,
        )
    return Committed(done.results, (), done.commit_seq, done.chunks_written)


def _halves(group: WriteGroup) -> tuple[WriteGroup, WriteGroup] | None:
    """Two smaller groups, or None for a group of one. Each takes along the vectors that its own writes link to: the
    first document of a group to need one brings it, and may be in the other half."""
    if len(group) < 2:
        return None
    middle = len(group) // 2
    group = _with_own_vectors(group)
    return _part(group, 0, middle), _part(group, middle, len(group))


def _with_own_vectors(group: WriteGroup) -> WriteGroup:
    """Every write with all the new vectors of the group that it links to."""
    known = {
        (vector.identity, vector.sent_hash): vector
        for part in (group.documents, group.vectors)
        for write in part
        for vector in write.new_vectors
    }
    if not known:
        return group
    return replace(
        group,
        documents=[replace(write, new_vectors=_linked_vectors(write.links, known)) for write in group.documents],
        vectors=[replace(write, new_vectors=_linked_vectors((write.links,), known)) for write in group.vectors],
    )


def _linked_vectors(
    links: Iterable[VectorLinks], known: Mapping[tuple[int, bytes], NewVector]
) -> tuple[NewVector, ...]:
    wanted = dict.fromkeys((own.identity, sent_hash) for own in links for sent_hash in own.sent_hashes)
    return tuple(known[key] for key in wanted if key in known)


def _part(group: WriteGroup, first: int, end: int) -> WriteGroup:
    """The writes from `first` up to `end`, counted over documents, rechecks, skips, removes, vectors in this order."""
    before_rechecks = len(group.documents)
    before_skips = before_rechecks + len(group.rechecks)
    before_removes = before_skips + len(group.skips)
    before_vectors = before_removes + len(group.removes)

    def within(start: int) -> slice:
        return slice(max(first - start, 0), max(end - start, 0))

    return WriteGroup(
        documents=group.documents[within(0)],
        rechecks=group.rechecks[within(before_rechecks)],
        skips=group.skips[within(before_skips)],
        removes=group.removes[within(before_removes)],
        vectors=group.vectors[within(before_vectors)],
    )


def _refused(group: WriteGroup, refusal: RowRefusedError) -> tuple[FileFailure, ...]:
    parts = (group.documents, group.rechecks, group.skips, group.removes, group.vectors)
    return tuple(
        FileFailure(write.key, Reason.STORE_REFUSED, refusal.message, getattr(write, "stat", None))
        for part in parts
        for write in part
    )


def page_outcomes(
    pages: Sequence[FinishedPage], committed: Committed, clock_ns: Callable[[], int] = time.time_ns
) -> list[PageOutcome]:
    """What is recorded of the pages of a committed group: counts, failures, candidates for removal."""
    # one answer a key: two parts of a page that was tried again may stand in one group
    answers = {answer.key: answer for answer in committed.results}
    refused = {failure.key: failure for failure in committed.refused}
    return [_page_outcome(page, answers, refused, clock_ns()) for page in pages]


def page_outcome(page: FinishedPage, committed: Committed, clock_ns: Callable[[], int] = time.time_ns) -> PageOutcome:
    """The same of one page."""
    return page_outcomes([page], committed, clock_ns)[0]


def _page_outcome(
    page: FinishedPage, by_key: Mapping[str, Applied], refused: Mapping[str, FileFailure], now_ns: int
) -> PageOutcome:
    keys = [write.key for part in (page.documents, page.rechecks, page.skips, page.vectors) for write in part]
    answers = [by_key[key] for key in keys if key in by_key]
    failed = [*page.failures, *(refused[key] for key in keys if key in refused)]
    counts: dict[str, int] = {}
    for answer in answers:
        counts[answer.outcome.value] = counts.get(answer.outcome.value, 0) + 1
    if failed:
        counts[Outcome.FAILED.value] = len(failed)
    skips = {skip.key: skip for skip in page.skips}
    return PageOutcome(
        page=page.number,
        counts=counts,
        failures=tuple(FailureRecord(f.key, f.reason.value, f.detail, 1, now_ns, now_ns, stat=f.stat) for f in failed),
        recovered=tuple(answer.key for answer in answers),
        candidates=tuple(
            RemovalCandidate(answer.key, skips[answer.key].reason, skips[answer.key].stat)
            for answer in answers
            if answer.verdict == "candidate"
        ),
        changes={
            "added": [answer.key for answer in answers if answer.outcome is Outcome.ADDED],
            "updated": [answer.key for answer in answers if answer.outcome is Outcome.UPDATED],
        },
    )
