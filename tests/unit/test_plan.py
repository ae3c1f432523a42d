"""The plan: walk and stored keys merged into what is to be done. Pure, the clock is a number."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.files import WALK_REASONS, FileCheck, FileStat, Page, Reason
from scheduler.plan import (
    PAGE_CAP_BYTES,
    PAGE_KEYS_CAP_BYTES,
    RACY_WINDOW_NS,
    Planned,
    PlanPolicy,
    PlanTally,
    into_pages,
    plan,
)
from scheduler.queue.payloads import PAYLOAD_CAP_BYTES, encode_check
from scheduler.walk import WalkedFile
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


@given(KEYS, KEYS, KEYS, KEYS, KEYS)
def test_the_merge_is_set_arithmetic(
    on_disk: set[str], documents: set[str], changed: set[str], left_out: set[str], skipped_before: set[str]
) -> None:
    """C-01: only walked is new, only stored is gone, both is unchanged, changed or to be left out."""
    skipped_before = skipped_before - documents
    files = [
        walked(
            key,
            stat=STAT._replace(size_bytes=101) if key in changed else STAT,
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


@pytest.mark.parametrize("field", FileStat._fields)
def test_a_file_is_unchanged_only_when_all_of_stat_is(field: str) -> None:
    """R26."""
    other = STAT._replace(**{field: getattr(STAT, field) + 1})
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
    stat = STAT._replace(**{field: POLICY.now_ns + 1})
    known = stored("a", stat=stat, checked_ns=POLICY.now_ns + 10 * RACY_WINDOW_NS)
    assert planned([walked("a", stat=stat)], [known])[0] == [check("a", HASH)]
    later = replace(POLICY, now_ns=POLICY.now_ns + 1)
    assert planned([walked("a", stat=stat)], [known], later)[0] == []


def test_hashing_everything_and_cutting_everything() -> None:
    """R26 `--rehash` and `change_detection: hash`; S0-21 `--reindex`: then no stored hash counts."""
    files, known = [walked("a")], [stored("a")]
    assert planned(files, known, replace(POLICY, trust_stat=False))[0] == [check("a", HASH)]
    assert planned(files, known, replace(POLICY, force=True))[0] == [check("a", b"")]


@pytest.mark.parametrize("reason", [Reason.NOT_UTF8, Reason.EMPTY, Reason.TOO_LARGE])
def test_a_skipped_file_that_did_not_change_is_not_read_again(reason: Reason) -> None:
    """R33: as cheap as a document, and still reported."""
    large = STAT._replace(size_bytes=501)
    items, tally = planned([walked("a", stat=large)], [stored("a", stat=large, reason=reason.value)])
    assert items == []
    assert tally.skips == {reason: 1}
    assert tally.first_skips == {reason: "a"}
    assert (tally.skipped, tally.unchanged) == (1, 0)


def test_a_skipped_file_is_read_again_when_that_may_help() -> None:
    changed = walked("a", stat=STAT._replace(size_bytes=1))
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
