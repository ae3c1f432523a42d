"""Failures in state.db: one row a file, with its tries, its first and last time, and its next try (C-06)."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from domain.files import FileStat
from domain.retry_rules import next_try_ns
from store.failure_port import FailureCount, FailureRecord
from store.state import SqliteStateStore
from store.state_port import PageOutcome
from tests.support.queues import RUN

STAT = FileStat(1, 2, 3, -4, 5)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteStateStore]:
    with closing(SqliteStateStore(tmp_path / "state.db")) as opened:
        yield opened


def failed(key: str, reason: str = "unreadable", at_ns: int = 100, detail: str = "") -> FailureRecord:
    return FailureRecord(key, reason, detail, 1, at_ns, at_ns, stat=STAT)


def test_a_file_has_one_row_however_often_it_fails(state: SqliteStateStore) -> None:
    """Fault 6: a file that is refused for ever is one failure, not N."""
    for at_ns in (100, 200, 300):
        state.record_failures([failed("docs/a", at_ns=at_ns)])
    (row,) = state.failures()
    assert (row.tries, row.first_ns, row.last_ns, row.stat) == (3, 100, 300, STAT)
    assert (row.standing, row.next_ns) == ("open", next_try_ns("unreadable", 3, "docs/a", 300))
    assert state.failure("docs/a") == row
    assert state.failure("docs/b") is None


def test_what_ends_a_worker_is_quarantined(state: SqliteStateStore) -> None:
    state.record_failures([failed("docs/a", "worker_died"), failed("docs/b", "too_slow")])
    assert [(row.standing, row.next_ns > 0) for row in state.failures()] == [("quarantined", False), ("open", True)]
    for at_ns in (200, 300):
        state.record_failures([failed("docs/b", "too_slow", at_ns)])
    assert [row.standing for row in state.failures()] == ["quarantined", "quarantined"]


def test_a_retry_makes_due_and_an_ignored_file_stays_ignored(state: SqliteStateStore) -> None:
    state.record_failures([failed("docs/a", "worker_died"), failed("docs/b"), failed("docs/c")])
    state.retry_failures(["docs/a", "docs/b"])
    state.ignore_failures(["docs/c"])
    assert [(row.standing, row.next_ns) for row in state.failures()] == [("open", 0), ("open", 0), ("ignored", 0)]
    state.record_failures([failed("docs/a", "worker_died"), failed("docs/c", at_ns=900)])
    assert [(row.standing, row.tries) for row in state.failures()] == [("quarantined", 2), ("open", 1), ("ignored", 2)]
    assert state.failure_counts() == [
        FailureCount("unreadable", "ignored", 1),
        FailureCount("unreadable", "open", 1),
        FailureCount("worker_died", "quarantined", 1),
    ]


def test_pages_record_failures_and_let_them_go(state: SqliteStateStore) -> None:
    run = state.begin_run(RUN, floor_generation=0)
    state.finish_pages(run.id, [PageOutcome(1, failures=(failed("docs/a"), failed("docs/b")))])
    state.finish_pages(run.id, [PageOutcome(2, recovered=("docs/a", "docs/never"))])
    assert [row.key for row in state.failures()] == ["docs/b"]


def test_a_page_of_failures_is_cut_at_the_prefix(state: SqliteStateStore) -> None:
    keys = ["docs/a", "docs/b", "docs/c", "docs2/d", "doc/e"]
    state.record_failures([failed(key) for key in keys])
    assert [row.key for row in state.failures("docs/")] == ["docs/a", "docs/b", "docs/c"]
    assert [row.key for row in state.failures_page("docs/", limit=2)] == ["docs/a", "docs/b"]
    assert [row.key for row in state.failures_page("docs/", after="docs/b", limit=2)] == ["docs/c"]
    assert [row.key for row in state.failures()] == sorted(keys)


def test_what_a_run_has_not_met_again_is_forgotten_and_what_it_left_alone_is_not(state: SqliteStateStore) -> None:
    state.record_failures([failed(f"docs/{name}") for name in "abc"])
    state.record_failures([failed("docs/d", at_ns=500), failed("other/a")])
    state.forget_old_failures(["docs/"], 400, kept={"docs/b"})
    assert [row.key for row in state.failures()] == ["docs/b", "docs/d", "other/a"]


def test_a_document_that_waits_for_its_vectors_is_forgotten_when_it_was_to_be_tried(state: SqliteStateStore) -> None:
    """Its file has not changed, so a run does not look at its failure on the way."""
    keys = ["docs/due", "docs/ignored", "docs/waits"]
    state.record_failures([failed(key, "embedding_refused") for key in keys])
    state.retry_failures(["docs/due"])
    state.ignore_failures(["docs/ignored"])
    state.forget_old_failures(["docs/"], 400)
    assert [row.key for row in state.failures()] == ["docs/ignored", "docs/waits"]


def test_a_long_detail_is_cut(state: SqliteStateStore) -> None:
    state.record_failures([failed("docs/a", detail="x" * 100_000)])
    assert len(state.failures()[0].detail) == 500
