"""Files that fail, over several runs: bisected out of their pages, put off, quarantined, tried again, ignored."""

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from domain.retry_rules import FIRST_DELAY_S, JITTER
from domain.settings import QueueSettings
from store.failure_port import FailureRecord
from tests.support.audit import audit
from tests.support.command_line import CommandLine
from tests.support.poison import poisoned
from tests.support.runs import Base, base_in, nothing_left
from tests.support.trees import make_tree
from workers.reading import RootReader

pytestmark = pytest.mark.redis

GOOD = {f"{number:03}.md": f"# Page {number}\n\nword{number} text\n" for number in range(63)}
ONE_PAGE: dict[str, str | bytes] = {**GOOD, "031-poison.md": "# P\n"}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = base_in(tmp_path, queue=QueueSettings(files_per_job=64))
    with nothing_left(made):
        yield made


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", ONE_PAGE)


def rows(base: Base) -> list[tuple[str, str, str, int]]:
    with base.state() as state:
        return [(row.key, row.reason, row.standing, row.tries) for row in state.failures()]


def unreadable(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """These files are refused by the system, whoever asks (also root)."""
    opening = RootReader._open

    def refused(self: RootReader, relative: str) -> int:
        if relative in names:
            raise PermissionError(13, "Permission denied")
        return opening(self, relative)

    monkeypatch.setattr(RootReader, "_open", refused)


@pytest.mark.parametrize("poison", ["kill", "crash"])
def test_a_poisonous_file_is_quarantined_and_the_rest_of_its_page_is_indexed(
    base: Base, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, poison: str
) -> None:
    """R23, C-06: bisected out of a page of 64, tried once alone, quarantined; fault 1: in one run, each file once."""
    poisoned(tmp_path, monkeypatch, poison)
    report = base.index(docs, worker_processes=1)
    assert report.counts == {"added": 63, "failed": 1}
    assert (report.state, report.exit_status) == ("partial", 3)
    assert rows(base) == [("docs/031-poison.md", "worker_died", "quarantined", 1)]
    assert len(base.stored_keys()) == 63
    assert audit(base.layout.database) == []
    base.settle()
    again = base.index(docs, worker_processes=1)  # it would still end whoever reads it
    assert again.counts == {"unchanged": 63, "failed": 1}
    assert (again.failures, again.exit_status) == ((), 3)
    ((kind, left),) = again.not_tried.items()
    assert kind == ("worker_died", "quarantined")
    assert (left.files, left.first, left.next_ns) == (1, "docs/031-poison.md", 0)
    assert rows(base) == [("docs/031-poison.md", "worker_died", "quarantined", 1)]


SHORT_LIMITS = (
    "import workers.check_watch, workers.limited_check",
    "workers.check_watch.CHECK_LIMIT_S = 6.0",
    "workers.check_watch.check_alone.__defaults__ = (workers.limited_check.CheckLimits(cpu_s=1, wall_s=4.0),)",
)


@pytest.mark.parametrize("poison", ["spin", "hang"])
def test_a_file_that_is_read_for_ever_is_quarantined(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, poison: str
) -> None:
    """C-06: the worker leaves that has it, also where no processor time is used; alone, the file is told why."""
    docs = make_tree(tmp_path / "docs", {"a.md": "# A\n", "b-poison.md": "# B\n"})
    poisoned(tmp_path, monkeypatch, poison, *SHORT_LIMITS)
    report = base.index(docs, worker_processes=1)
    assert report.counts == {"added": 1, "failed": 1}
    (row,) = failures(base)
    assert (row.key, row.reason, row.standing, row.tries) == ("docs/b-poison.md", "over_limit", "quarantined", 1)
    assert row.detail  # which limit comes first depends on the machine; each is tested by itself


def test_a_quarantined_file_that_changes_is_tried_at_once(
    base: Base, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        poisoned(tmp_path, patched, "kill")
        base.index(docs, worker_processes=1)
    base.settle()
    (docs / "031-poison.md").write_text("# Mended\n")
    report = base.index()
    assert report.counts == {"unchanged": 63, "added": 1}
    assert (rows(base), report.exit_status) == ([], 0)


def test_a_file_that_kills_the_only_process_is_found_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small run reads in its own process, which dies with it; the next one reads in another, and quarantines it."""
    docs = make_tree(tmp_path / "docs", ONE_PAGE)
    poisoned(tmp_path, monkeypatch, "kill")
    command = CommandLine(tmp_path, {"PYTHONPATH": os.environ["PYTHONPATH"]})
    assert command("index", str(docs)).status == -signal.SIGKILL
    ended = command("index", "--json")
    assert ended.status == 3
    assert (ended.value["counts"]["added"], ended.value["counts"]["failed"]) == (63, 1)
    (row,) = command("failures", "--json").value["failures"]
    assert (row["path"], row["reason"], row["standing"]) == ("docs/031-poison.md", "worker_died", "quarantined")
    later = command("index", "--json")  # in its own process again, and lives
    assert (later.status, later.value["counts"]["unchanged"], later.value["counts"]["failed"]) == (3, 63, 1)
    retried = command("retry", "docs/031-poison.md", "--json")  # so does whoever tries it again, or asks what would be
    assert (retried.status, retried.value["run"]["counts"]["failed"]) == (3, 1)
    (row,) = command("failures", "--json").value["failures"]
    assert (row["standing"], row["tries"]) == ("quarantined", 2)
    (docs / "031-poison.md").write_text("# Changed\n")
    explained = command("explain", "docs/031-poison.md", "--json").value["next_run"]
    assert (explained["action"], explained["reason"]) == ("fail", "worker_died")
    assert command("index", "--json").value["counts"]["failed"] == 1


def test_a_refused_file_is_one_failure_and_waits(base: Base, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault 6, C-06: not one failure a run; a file that can be read again is there in the run after its time."""
    with monkeypatch.context() as patched:
        unreadable(patched, "000.md")
        assert base.index(docs).counts == {"added": 63, "failed": 1}
        (first,) = [(row.tries, row.next_ns - row.last_ns) for row in failures(base)]
        assert first[0] == 1
        assert FIRST_DELAY_S * (1 - JITTER) * 1e9 <= first[1] <= FIRST_DELAY_S * 1e9
        base.settle()
        for _ in range(3):
            report = base.index()
            assert report.counts == {"unchanged": 63, "failed": 1}
            assert report.failures == ()
            assert list(report.not_tried) == [("unreadable", "open")]
        assert rows(base) == [("docs/000.md", "unreadable", "open", 1)]
        later = base.index(rehash=True)  # it is tried whatever its time
        assert later.counts == {"unchanged": 63, "failed": 1}
        assert rows(base) == [("docs/000.md", "unreadable", "open", 2)]
    make_due(base)
    assert base.index().counts == {"unchanged": 63, "added": 1}
    assert rows(base) == []


def test_a_failed_file_whose_mode_is_mended_is_tried_at_once(
    base: Base, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 14: nobody has to wait, nor to touch anything else."""
    with monkeypatch.context() as patched:
        unreadable(patched, "000.md")
        base.index(docs)
    base.settle()
    (docs / "000.md").chmod(0o640)
    assert base.index().counts == {"unchanged": 63, "added": 1}


def test_the_failure_of_a_file_that_is_gone_is_forgotten(
    base: Base, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        unreadable(patched, "000.md", "001.md")
        base.index(docs)
    base.settle()
    (docs / "000.md").unlink()
    report = base.index()
    assert report.counts == {"unchanged": 62, "failed": 1}
    assert rows(base) == [("docs/001.md", "unreadable", "open", 1)]


def test_an_ignored_file_is_never_tried_and_does_not_make_a_run_partial(
    base: Base, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        unreadable(patched, "000.md")
        base.index(docs)
    with base.state() as state:
        state.ignore_failures(["docs/000.md"])
    base.settle()
    (docs / "000.md").write_text("# Changed\n")
    for rehash, reindex in ((False, False), (True, False), (False, True)):
        report = base.index(rehash=rehash, reindex=reindex)
        assert (report.state, report.exit_status) == ("done", 0)
        assert report.skips == {"ignored": (1, "docs/000.md")}
        assert rows(base) == [("docs/000.md", "unreadable", "ignored", 1)]


@pytest.mark.parametrize("processes", [0, 1])
def test_files_without_text_are_skipped(base: Base, tmp_path: Path, processes: int) -> None:
    """Fault 14: they are no failures, and nothing waits for them."""
    texts = {"zero.md": b"", "white.md": b" \n\t\r\n", "bom.md": b"\xef\xbb\xbf\n", "a.md": b"# A\n"}
    docs = make_tree(tmp_path / "docs", texts)
    report = base.index(docs, worker_processes=processes)
    assert report.counts == {"added": 1, "skipped": 3}
    assert base.skipped() == {f"docs/{name}": "empty" for name in ("bom.md", "white.md", "zero.md")}
    assert (rows(base), report.exit_status) == ([], 0)


def make_due(base: Base) -> None:
    with base.state() as state:
        state.retry_failures([row.key for row in state.failures()])


def failures(base: Base) -> Sequence[FailureRecord]:
    with base.state() as state:
        return state.failures()
