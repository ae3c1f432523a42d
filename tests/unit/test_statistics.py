"""What a process remembers of scopes between searches stays within bounds, whatever is asked (issue 6: memory flat)."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from retrieval import statistics
from retrieval.statistics import StoreStatistics
from store.port import Scope


def scope_of(ranges: int) -> Scope:
    return Scope(tuple((2 * number, 2 * number) for number in range(ranges)))


def held(known: StoreStatistics) -> int:
    return sum(len(scope.ranges) for scope in known.scopes.values() if scope is not None)


def test_scopes_are_kept_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MAX_RANGES", 100)
    known = StoreStatistics()
    for number in range(50):
        known.remember_scope(("", f"*{number}*"), scope_of(30))
        assert 30 <= held(known) <= 100
    assert ("", "*49*") in known.scopes
    known.remember_scope(("docs", ""), None)
    assert known.scopes["docs", ""] is None


def test_one_that_is_too_large_is_not_kept_and_pushes_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MAX_RANGES", 100)
    known = StoreStatistics()
    known.remember_scope(("", "a"), scope_of(100))
    known.remember_scope(("", "b"), scope_of(101))
    assert list(known.scopes) == [("", "a")]


def test_there_are_so_many_at_most() -> None:
    known = StoreStatistics()
    for number in range(500):
        known.remember_scope(("", str(number)), None)
        assert len(known.scopes) <= statistics.MAX_SCOPES


def test_a_thread_that_reads_is_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has looked up stays in what it looks into."""
    monkeypatch.setattr(statistics, "MAX_SCOPES", 1)
    known = StoreStatistics()

    def work(part: int) -> None:
        for number in range(300):
            asked = ("", f"{part} {number}")
            known.remember_scope(asked, None)
            mine = known.scopes
            if asked in mine:
                assert mine[asked] is None

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
