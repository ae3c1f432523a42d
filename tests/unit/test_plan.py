"""The plan: walk and stored keys merged into what is to be done. Pure, the clock is a number."""

from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from domain.files import WALK_REASONS, FileCheck, FileStat, Page, Reason
from domain.retry_rules import FailureStanding
from scheduler.plan import (
    CLOCKS_APART_NS,
    PAGE_CAP_BYTES,
    PAGE_KEYS_CAP_BYTES,
    RACY_WINDOW_NS,
    NotTried,
    Planned,
    PlanPolicy,
    PlanTally,
    into_pages,
    plan,
)
from scheduler.queue.payloads import PAYLOAD_CAP_BYTES, encode_check
from scheduler.walk import WalkedFile
from store.failure_port import FailureRecord
from store.port import StoredFile
from store.state_port import RemovalCandidate

SECOND_NS = 1_000_000_000
CHANGED_NS = 1_000 * SECOND_NS
CHECKED_NS = CHANGED_NS + RACY_WINDOW_NS
STAT = FileStat(100, CHANGED_NS, CHANGED_NS, 7, 8)
POLICY = PlanPolicy(now_ns=CHECKED_NS + SECOND_NS, max_file_bytes=500)
HASH = b"h" * 32


def walked(key: str, *, stat: FileStat = STAT, skip: Reason | None = None) -> WalkedFile:
    return WalkedFile(key, stat, skip)


def stored(
    key: str, *, stat: FileStat = STAT, checked_ns: int = CHECKED_NS, reason: str = "", warnings: str = "[]"
) -> StoredFile:
    return StoredFile(key, stat, checked_ns, b"" if reason else HASH, reason, warnings)


def planned(
    files: Iterable[WalkedFile], known: Iterable[StoredFile], policy: PlanPolicy = POLICY
) -> tuple[list[Planned], PlanTally]:
    tally = PlanTally()
    return list(plan(files, known, policy, tally)), tally


def check(key: str, known_hash: bytes = b"", size_bytes: int = 100) -> Planned:
    return FileCheck(key, known_hash), size_bytes


KEYS = st.sets(st.text("ab/-é", min_size=1, max_size=3), max_size=12)
LATER_NS = POLICY.now_ns + SECOND_NS


def failure(
    key: str,
    *,
    standing: FailureStanding = "open",
    next_ns: int = LATER_NS,
    stat: FileStat | None = STAT,
    reason: Reason = Reason.UNREADABLE,
) -> FailureRecord:
    return FailureRecord(key, reason, "", 2, 1, 2, next_ns, standing, stat)


def judged(
    files: Iterable[WalkedFile],
    failures: Iterable[FailureRecord],
    known: Iterable[StoredFile] = (),
    policy: PlanPolicy = POLICY,
) -> tuple[list[Planned], PlanTally]:
    tally = PlanTally()
    return list(plan(files, known, policy, tally, failures)), tally


@pytest.mark.parametrize(
    ("recorded", "is_tried"),
    [
        (failure("a"), False),
        (failure("a", next_ns=POLICY.now_ns), True),
        (failure("a", next_ns=0), True),
        (failure("a", stat=replace(STAT, ctime_ns=CHANGED_NS + 1)), True),
        (failure("a", stat=None), True),
        (failure("a", standing="quarantined", next_ns=0), False),
        (failure("a", standing="quarantined", next_ns=0, stat=replace(STAT, size_bytes=9)), True),
        (failure("a", standing="quarantined", next_ns=0, stat=None), True),
        (failure("a", standing="ignored", next_ns=0), False),
        (failure("a", standing="ignored", next_ns=0, stat=None), False),
    ],
)
def test_a_file_that_failed_waits_for_its_time_or_its_change(recorded: FailureRecord, is_tried: bool) -> None:
    """C-06: due, changed or asked for, else left alone and counted."""
    found, tally = judged([walked("a")], [recorded])
    assert found == ([check("a")] if is_tried else [])
    assert (tally.met, tally.to_check) == (1, int(is_tried))
    assert tally.kept_failures == (set() if is_tried else {"a"})
    assert tally.failed == int(not is_tried and recorded.standing != "ignored")
    assert tally.skips == ({Reason.IGNORED: 1} if recorded.standing == "ignored" else {})


@pytest.mark.parametrize("standing", ["open", "quarantined", "ignored"])
@pytest.mark.parametrize("change", [{"retry_failed": True}, {"trust_stat": False}])
def test_only_who_asks_for_it_has_failures_tried_early(standing: FailureStanding, change: dict[str, bool]) -> None:
    """`change_detection: hash` reads every file in every run, but for those that failed."""
    found, _ = judged([walked("a")], [failure("a", standing=standing)], policy=replace(POLICY, **change))
    assert bool(found) == ("retry_failed" in change and standing != "ignored")


@pytest.mark.parametrize("reason", [Reason.WORKER_DIED, Reason.OVER_LIMIT])
def test_a_file_that_ended_its_reader_is_read_alone_when_it_is_tried_again(reason: Reason) -> None:
    """R23: changed or retried, it never meets a process that others need."""
    failures = [failure("b", next_ns=0, reason=reason), failure("c", next_ns=0)]
    found, tally = judged([walked(key) for key in "abcd"], failures, [stored("b", stat=replace(STAT, size_bytes=1))])
    assert found[1] == (FileCheck("b", HASH, is_suspect=True), 100)
    assert list(into_pages(found, "docs", files_per_page=64)) == [
        Page(1, "docs", (FileCheck("b", HASH),), alone=True),
        Page(2, "docs", (FileCheck("a"), FileCheck("c"), FileCheck("d"))),
    ]
    assert tally.to_check == 4


def test_a_changed_document_whose_check_failed_is_left_alone_too() -> None:
    newer = replace(STAT, mtime_ns=CHANGED_NS + 5)
    found, tally = judged([walked("a", stat=newer)], [failure("a", stat=newer)], [stored("a")])
    assert (found, tally.failed, tally.unchanged) == ([], 1, 0)


def test_failures_of_one_kind_are_told_together() -> None:
    failures = [failure("a", next_ns=LATER_NS + 5), failure("c"), failure("d", standing="quarantined", next_ns=0)]
    found, tally = judged([walked(key) for key in "abcd"], failures)
    assert found == [check("b")]
    assert tally.not_tried == {
        ("unreadable", "open"): NotTried(2, "a", LATER_NS),
        ("unreadable", "quarantined"): NotTried(1, "d", 0),
    }


def test_a_run_that_finds_nothing_to_do_reads_no_failure() -> None:
    """The cost of a no-change run does not grow with what failed."""

    def asked() -> Iterator[FailureRecord]:
        raise AssertionError("failures were read")
        yield failure("a")

    found, tally = judged([walked("a"), walked("b")], asked(), [stored("a"), stored("b")])
    assert (found, tally.unchanged) == ([], 2)


@given(KEYS, KEYS, KEYS)
def test_failures_are_merged_in_key_order(on_disk: set[str], documents: set[str], failed: set[str]) -> None:
    found, tally = judged(
        [walked(key) for key in sorted(on_disk)],
        [failure(key) for key in sorted(failed)],
        [stored(key) for key in sorted(documents)],
    )
    checked = {item[0].key for item in found if not isinstance(item, RemovalCandidate)}
    assert checked == on_disk - documents - failed
    assert tally.kept_failures == (on_disk - documents) & failed
    assert tally.met == tally.unchanged + tally.to_check + tally.failed + tally.skipped


def test_no_more_failures_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.plan.KEPT_KEYS_CAP", 2)
    _, tally = judged([walked(key) for key in "abc"], [failure(key) for key in "abc"])
    assert (tally.kept_failures, tally.is_kept_cut, tally.failed) == ({"a", "b"}, True, 3)


@given(KEYS, KEYS, KEYS, KEYS, KEYS)
def test_the_merge_is_set_arithmetic(
    on_disk: set[str], documents: set[str], changed: set[str], left_out: set[str], skipped_before: set[str]
) -> None:
    """C-01: only walked is new, only stored is gone, both is unchanged, changed or to be left out."""
    skipped_before = skipped_before - documents
    files = [
        walked(
            key,
            stat=replace(STAT, size_bytes=101) if key in changed else STAT,
            skip=Reason.EXCLUDED if key in left_out else None,
        )
        for key in sorted(on_disk)
    ]
    known = [
        stored(key, reason="" if key in documents else Reason.NOT_UTF8.value)
        for key in sorted(documents | skipped_before)
    ]
    items, tally = planned(files, known)
    checks = {item[0].key for item in items if not isinstance(item, RemovalCandidate)}
    candidates = {item.key: item.reason for item in items if isinstance(item, RemovalCandidate)}
    taken_in = on_disk - left_out
    assert checks == {key for key in taken_in if key not in documents | skipped_before or key in changed}
    expected = dict.fromkeys(documents - on_disk, Reason.GONE)
    expected |= dict.fromkeys(skipped_before - on_disk, Reason.FORGOTTEN)
    expected |= dict.fromkeys(documents & on_disk & left_out, Reason.EXCLUDED)
    assert candidates == expected
    assert tally.met == len(on_disk)
    assert tally.unchanged == len((taken_in & documents) - changed)
    assert tally.skipped == len(on_disk & left_out) + len((taken_in & skipped_before) - changed)
    assert tally.to_check == len(checks)
    assert tally.candidates == len(expected) - len(skipped_before - on_disk)
    # every file met is counted once
    assert tally.met == tally.unchanged + tally.skipped + tally.to_check


@pytest.mark.parametrize("field", FileStat.__struct_fields__)
def test_a_file_is_unchanged_only_when_all_of_stat_is(field: str) -> None:
    """R26."""
    other = replace(STAT, **{field: getattr(STAT, field) + 1})
    assert planned([walked("a")], [stored("a")])[0] == []
    assert planned([walked("a", stat=other)], [stored("a")])[0] == [check("a", HASH, other.size_bytes)]


@pytest.mark.parametrize(
    ("checked_ns", "is_trusted"),
    [
        (CHANGED_NS + RACY_WINDOW_NS, True),
        (CHANGED_NS + RACY_WINDOW_NS - 1, False),
        (CHANGED_NS, False),
        (CHANGED_NS - SECOND_NS, False),
    ],
)
def test_a_check_soon_after_a_change_proves_nothing(checked_ns: int, is_trusted: bool) -> None:
    """R26: a change within the same tick of the file system's clock would not show."""
    items, _ = planned([walked("a")], [stored("a", checked_ns=checked_ns)])
    assert (items == []) is is_trusted


@pytest.mark.parametrize("field", ["mtime_ns", "ctime_ns"])
def test_times_in_the_future_prove_nothing(field: str) -> None:
    """R26, P29: whichever of the two lies ahead of the clock."""
    stat = replace(STAT, **{field: POLICY.now_ns + 1})
    known = stored("a", stat=stat, checked_ns=POLICY.now_ns + 10 * RACY_WINDOW_NS)
    assert planned([walked("a", stat=stat)], [known])[0] == [check("a", HASH)]
    later = replace(POLICY, now_ns=POLICY.now_ns + 1)
    assert planned([walked("a", stat=stat)], [known], later)[0] == []


def test_a_check_by_a_clock_that_is_far_ahead_proves_nothing() -> None:
    """P29: a worker of another machine has said when; by our clock it was just now, and perhaps in the racy window."""
    known = stored("a", checked_ns=POLICY.now_ns + CLOCKS_APART_NS)
    assert planned([walked("a")], [known])[0] == []
    known = stored("a", checked_ns=POLICY.now_ns + CLOCKS_APART_NS + 1)
    assert planned([walked("a")], [known])[0] == [check("a", HASH)]


def test_hashing_everything_and_cutting_everything() -> None:
    """R26 `--rehash` and `change_detection: hash`; S0-21 `--reindex`: then no stored hash counts."""
    files, known = [walked("a")], [stored("a")]
    assert planned(files, known, replace(POLICY, trust_stat=False))[0] == [check("a", HASH)]
    assert planned(files, known, replace(POLICY, force=True))[0] == [check("a", b"")]


@pytest.mark.parametrize("reason", [Reason.NOT_UTF8, Reason.EMPTY, Reason.TOO_LARGE])
def test_a_skipped_file_that_did_not_change_is_not_read_again(reason: Reason) -> None:
    """R33: as cheap as a document, and still reported."""
    large = replace(STAT, size_bytes=501)
    items, tally = planned([walked("a", stat=large)], [stored("a", stat=large, reason=reason.value)])
    assert items == []
    assert tally.skips == {reason: 1}
    assert tally.first_skips == {reason: "a"}
    assert (tally.skipped, tally.unchanged) == (1, 0)


def test_a_skipped_file_is_read_again_when_that_may_help() -> None:
    changed = walked("a", stat=replace(STAT, size_bytes=1))
    assert planned([changed], [stored("a", reason="not_utf8")])[0] == [check("a", size_bytes=1)]
    assert planned([walked("a")], [stored("a", reason="not_utf8", checked_ns=CHANGED_NS)])[0] == [check("a")]
    assert planned([walked("a")], [stored("a", reason="not_utf8")], replace(POLICY, force=True))[0] == [check("a")]
    # its size has come under a cap that was raised since
    assert planned([walked("a")], [stored("a", reason="too_large")])[0] == [check("a")]


@pytest.mark.parametrize("reason", sorted(WALK_REASONS))
def test_a_file_that_no_rule_leaves_out_any_more_is_read(reason: Reason) -> None:
    """A file that was excluded and is included again has the stat that it had."""
    assert planned([walked("a")], [stored("a", reason=reason.value)])[0] == [check("a")]
    items, tally = planned([walked("a", skip=reason)], [stored("a", reason=reason.value)])
    assert items == []
    assert tally.skips == {reason: 1}


def test_a_document_that_is_left_out_now_is_a_candidate_and_counted() -> None:
    """R33: its stored document goes, under the guard, and the reason is kept with what stat said."""
    items, tally = planned([walked("a", skip=Reason.EXCLUDED)], [stored("a")])
    assert items == [RemovalCandidate("a", Reason.EXCLUDED, STAT)]
    assert (tally.candidates, tally.skips) == (1, {Reason.EXCLUDED: 1})


def test_warnings_of_unchanged_files_are_still_counted() -> None:
    _, tally = planned([walked("a"), walked("b")], [stored("a", warnings='["x"]'), stored("b")])
    assert (tally.unchanged, tally.warned) == (2, 1)


def test_the_first_of_each_reason_is_named() -> None:
    files = [walked("a", skip=Reason.SYMLINK), walked("b", skip=Reason.SYMLINK), walked("c", skip=Reason.EXCLUDED)]
    _, tally = planned(files, [])
    assert tally.first_skips == {Reason.SYMLINK: "a", Reason.EXCLUDED: "c"}


def test_a_name_shown_in_another_order_disturbs_nobody() -> None:
    """T1: the printable form of a name that is no UTF-8 does not stand in its place of the order."""
    files = [walked("b"), walked("b\\xff", skip=Reason.NAME_NOT_UTF8), walked("a\\xff", skip=Reason.NAME_NOT_UTF8)]
    files.append(walked("c"))
    items, tally = planned(files, [stored("b"), stored("bb"), stored("c")])
    assert items == [RemovalCandidate("bb", Reason.GONE)]
    assert (tally.unchanged, tally.skipped) == (2, 2)


def cut(items: Sequence[Planned], files_per_page: int = 64) -> list[Page | RemovalCandidate]:
    return list(into_pages(items, "docs", files_per_page=files_per_page, first_number=5))


SIZES = st.lists(st.integers(0, PAGE_CAP_BYTES * 2), max_size=30)


@given(SIZES, st.integers(1, 7))
def test_pages_hold_every_file_once_and_no_more_than_they_may(sizes: list[int], files_per_page: int) -> None:
    """R23, C-05."""
    items: list[Planned] = [check(f"docs/{number:03}", size_bytes=size) for number, size in enumerate(sizes)]
    pages = [page for page in cut(items, files_per_page) if isinstance(page, Page)]
    assert [file.key for page in pages for file in page.files] == [f"docs/{n:03}" for n in range(len(sizes))]
    assert [page.number for page in pages] == list(range(5, 5 + len(pages)))
    assert {page.root for page in pages} <= {"docs"}
    bytes_of = {f"docs/{number:03}": size for number, size in enumerate(sizes)}
    for page in pages:
        assert 1 <= len(page.files) <= files_per_page
        assert len(page.files) == 1 or sum(bytes_of[file.key] for file in page.files) <= PAGE_CAP_BYTES


@given(SIZES, st.integers(1, PAGE_CAP_BYTES))
def test_a_page_may_be_asked_to_be_smaller(sizes: list[int], bytes_per_page: int) -> None:
    """R24: where it holds vectors, too."""
    items: list[Planned] = [check(f"docs/{number:03}", size_bytes=size) for number, size in enumerate(sizes)]
    bytes_of = {f"docs/{number:03}": size for number, size in enumerate(sizes)}
    pages = list(into_pages(items, "docs", files_per_page=64, bytes_per_page=bytes_per_page))
    for page in pages:
        assert isinstance(page, Page)
        assert len(page.files) == 1 or sum(bytes_of[file.key] for file in page.files) <= bytes_per_page


def test_one_file_a_job_is_possible() -> None:
    """R23: 1 = one job a file."""
    assert [len(page.files) for page in cut([check("a"), check("b")], 1) if isinstance(page, Page)] == [1, 1]


def test_a_page_of_long_names_fits_into_a_payload() -> None:
    """A payload over the cap would be parked by the worker, and the page never done."""
    items: list[Planned] = [check(f"docs/{number:05}" + "é" * 2000, HASH, 1) for number in range(1000)]
    pages = [page for page in cut(items, 10_000) if isinstance(page, Page)]
    assert sum(len(page.files) for page in pages) == 1000
    for page in pages:
        assert len(encode_check("b" * 32, 2**40, 2**40, 9, page)) < PAYLOAD_CAP_BYTES
        assert sum(len(file.key.encode()) for file in page.files) <= PAGE_KEYS_CAP_BYTES


def test_candidates_pass_through_in_their_place() -> None:
    gone = RemovalCandidate("b", Reason.GONE)
    assert cut([check("a"), gone, check("c")]) == [gone, Page(5, "docs", (FileCheck("a"), FileCheck("c")))]


def test_what_this_run_has_done_before_it_was_taken_over_is_not_done_again() -> None:
    """A reindex whose scheduler was killed goes on; a file that changed since is read again."""
    policy = replace(POLICY, force=True, trust_stat=False, generation=7)
    done = replace(stored("docs/a"), generation=7)
    changed = replace(stored("docs/b"), generation=7, stat=FileStat(1, 2, 3, 4, 5))
    older = replace(stored("docs/c"), generation=6)
    tally = PlanTally()
    planned = list(plan([walked("docs/a"), walked("docs/b"), walked("docs/c")], [done, changed, older], policy, tally))
    assert [item[0].key for item in planned if isinstance(item, tuple)] == ["docs/b", "docs/c"]
    assert tally.unchanged == 1


def test_what_this_run_has_skipped_before_its_process_was_replaced_is_counted_once() -> None:
    """P2: its page has counted it; a run that was taken over told of one skipped file more than there were."""
    policy = replace(POLICY, generation=7)
    done = replace(stored("docs/a", reason="not_utf8"), generation=7)
    older = replace(stored("docs/b", reason="not_utf8"), generation=6)
    actions, tally = planned([walked("docs/a"), walked("docs/b")], [done, older], policy)
    assert (actions, tally.skipped, tally.first_skips) == ([], 1, {Reason("not_utf8"): "docs/b"})


def test_what_has_failed_in_this_run_before_its_process_was_replaced_is_counted_once() -> None:
    """P2: nor is it tried twice in one run, unless it has changed; what failed before the run is told as ever."""
    policy = replace(POLICY, is_taken_over=True, retry_failed=True)
    early = failure("docs/b", next_ns=0)
    now = [replace(failure(key), last_ns=policy.now_ns) for key in ("docs/a", "docs/c")]
    files = [walked("docs/a"), walked("docs/b"), walked("docs/c", stat=FileStat(1, 2, 3, 4, 5))]
    actions, tally = judged(files, [now[0], early, now[1]], policy=policy)
    assert actions == [check("docs/b"), check("docs/c", size_bytes=1)]
    assert (tally.failed, tally.kept_failures) == (0, {"docs/a"})
    _, alone = judged([walked("docs/a")], [now[0]], policy=replace(policy, is_taken_over=False, retry_failed=False))
    assert alone.failed == 1
