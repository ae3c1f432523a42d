"""The fence under any order of jobs (R25): in the end the highest pair stands, and nothing newer is undone."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from domain.files import FileStat, Outcome, Reason
from store.fence import (
    NOTHING_STORED,
    Fence,
    decide_document,
    decide_recheck,
    decide_remove,
    decide_skip,
    decide_vectors,
)
from store.write_port import (
    Applied,
    DocumentWrite,
    RecheckWrite,
    RemoveWrite,
    SkipWrite,
    VectorLinks,
    VectorsWrite,
)

STAT = FileStat(1, 1, 1, 1, 1)
Write = DocumentWrite | RecheckWrite | RemoveWrite | SkipWrite


def document(generation: int, observed_ns: int, content: bytes) -> DocumentWrite:
    return DocumentWrite("docs/a.md", "docs", STAT, 1, observed_ns, generation, content, content, "", "[]", "", (), 1)


def remove(generation: int, observed_ns: int) -> RemoveWrite:
    return RemoveWrite("docs/a.md", observed_ns, generation)


def recheck(generation: int, observed_ns: int, content: bytes) -> RecheckWrite:
    return RecheckWrite("docs/a.md", STAT, 1, observed_ns, generation, content)


def skip(generation: int, observed_ns: int) -> SkipWrite:
    return SkipWrite("docs/a.md", "docs", Reason.EMPTY, STAT, 1, observed_ns, generation)


def apply(write: Write, stored: Fence) -> tuple[Applied, Fence]:
    """What the store does with a decision: an oracle of `store.documents`, for one key."""
    generation, observed_ns = write.generation, write.observed_ns
    if isinstance(write, DocumentWrite):
        answer = decide_document(write, stored)
        if answer.verdict == "unchanged":
            return answer, replace(stored, generation=generation, observed_ns=observed_ns)
        if answer.verdict == "applied":
            created = stored.created_generation if stored.created_generation > 0 else write.generation
            return answer, Fence(1, generation, observed_ns, created, write.file_hash)
    elif isinstance(write, RecheckWrite):
        answer = decide_recheck(write, stored)
        if answer.verdict == "applied":
            return answer, replace(stored, generation=generation, observed_ns=observed_ns)
    elif isinstance(write, RemoveWrite):
        answer = decide_remove(write, stored)
        if answer.verdict == "applied":
            return answer, Fence(0, generation, observed_ns)
    else:
        answer = decide_skip(write, stored)
    return answer, stored


def run(writes: list[Write], stored: Fence = NOTHING_STORED) -> Fence:
    for write in writes:
        _, stored = apply(write, stored)
    return stored


contents = st.sampled_from([b"one", b"two", b"three"])
pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))
writes = st.one_of(
    st.builds(lambda pair, content: document(pair[0], pair[1], content), pairs, contents),
    st.builds(lambda pair: remove(*pair), pairs),
    st.builds(lambda pair, content: recheck(pair[0], pair[1], content), pairs, contents),
    st.builds(lambda pair: skip(*pair), pairs),
)


@given(st.lists(writes, max_size=12))
def test_the_stored_pair_never_goes_back(jobs: list[Write]) -> None:
    stored = NOTHING_STORED
    for job in jobs:
        before = stored
        answer, stored = apply(job, stored)
        assert stored.pair >= before.pair
        if (job.generation, job.observed_ns) < before.pair:
            assert answer.verdict == "stale"
            assert stored == before


@given(st.dictionaries(pairs, contents, min_size=1, max_size=5))
def test_the_newest_document_wins_in_any_order(readings: dict[tuple[int, int], bytes]) -> None:
    """Readings of one file, each with a pair of its own."""
    newest = max(readings)
    for order in permutations(readings):
        stored = run([document(*pair, readings[pair]) for pair in order])
        assert stored.file_hash == readings[newest]
        assert stored.pair == newest


@given(st.lists(writes, max_size=8), st.lists(writes, max_size=4))
def test_a_job_that_runs_twice_has_one_effect(jobs: list[Write], later: list[Write]) -> None:
    for index, job in enumerate(jobs):
        once = run(jobs[: index + 1])
        answer_again, twice = apply(job, once)
        assert twice == once
        assert run(later, twice) == run(later, once)
        if isinstance(job, DocumentWrite):
            assert answer_again.verdict in ("unchanged", "stale")


@given(pairs, contents, pairs)
def test_an_older_document_does_not_come_back_over_a_removal(
    late: tuple[int, int], content: bytes, removal: tuple[int, int]
) -> None:
    stored = run([document(1, 1, content), remove(*removal)])
    answer, after = apply(document(*late, content), stored)
    if late < removal:
        assert answer.verdict == "stale"
        assert after.document_id == 0
    else:
        assert after.document_id == 1


@given(pairs, contents, pairs, contents)
def test_a_recheck_never_changes_content(
    first: tuple[int, int], stored: bytes, then: tuple[int, int], seen: bytes
) -> None:
    before = run([document(*first, stored)])
    answer, after = apply(recheck(*then, seen), before)
    assert after.file_hash == before.file_hash
    assert (answer.verdict == "applied") == (then >= first and seen == stored)


@given(st.lists(writes, max_size=8), pairs)
def test_a_skip_alone_never_takes_a_document_away(jobs: list[Write], pair: tuple[int, int]) -> None:
    stored = run(jobs)
    answer, after = apply(skip(*pair), stored)
    assert after == stored
    assert (answer.verdict == "candidate") == (pair >= stored.pair and bool(stored.document_id))


def test_what_a_job_answers() -> None:
    assert apply(document(1, 1, b"one"), NOTHING_STORED)[0].outcome is Outcome.ADDED
    stored = run([document(1, 1, b"one")])
    assert apply(document(2, 1, b"two"), stored)[0].outcome is Outcome.UPDATED
    assert apply(document(1, 2, b"one"), stored)[0] == Applied("docs/a.md", "unchanged", Outcome.ADDED)
    assert apply(remove(2, 1), stored)[0] == Applied("docs/a.md", "applied", Outcome.REMOVED)
    assert apply(remove(2, 1), NOTHING_STORED)[0].verdict == "unchanged"
    skipped = RemoveWrite("docs/a.md", 1, 2, skip(2, 1))
    assert apply(skipped, stored)[0].outcome is Outcome.SKIPPED


def test_vectors_are_good_for_the_very_text_they_were_made_from() -> None:
    """P5, P6: whichever run brings them; another content, another number of chunks or another identity is stale."""
    write = VectorsWrite("docs/a.md", b"one", 3, VectorLinks(2, (b"x" * 16, b"y" * 16), True))
    stored = Fence(1, 9, 9, 1, b"one", 2)
    assert decide_vectors(write, stored, {2}) == Applied("docs/a.md", "applied", Outcome.EMBEDDED)
    stale = Applied("docs/a.md", "stale", Outcome.UNCHANGED)
    for other in (NOTHING_STORED, replace(stored, file_hash=b"two"), replace(stored, chunk_count=3)):
        assert decide_vectors(write, other, {2}) == stale
    assert decide_vectors(write, stored, {1, 3}) == stale
