"""A suspected file in a process of its own: whatever it does there is a failure of that file (R23)."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from domain.files import FileCheck, Page, Reason
from domain.settings import MAX_FILE_BYTES
from tests.support.poison import poisoned
from tests.support.runs import children, is_running
from tests.support.trees import make_tree
from tests.support.waiting import eventually
from workers import limited_check
from workers.checking import CheckRules, check_page
from workers.limited_check import CheckLimits, LimitedCheck, check_alone

MIB = 1024 * 1024
QUICK = CheckLimits(cpu_s=1, memory_bytes=512 * MIB, wall_s=20.0)


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    before = set(children())
    yield
    assert set(children()) <= before


@pytest.fixture
def rules(tmp_path: Path) -> CheckRules:
    files: dict[str, str | bytes] = {
        "a.md": "---\ntitle: A\n---\n# A\n\ntext \u6771\u4eac\n",
        "poison.md": "# P\n",
        "empty.md": "",
        "white.md": " \n\t\n",
        "bad.md": b"\xff",
    }
    return CheckRules(make_tree(tmp_path / "docs", files).resolve(), 7, MAX_FILE_BYTES, "auto")


def page_of(*names: str) -> Page:
    return Page(5, "docs", tuple(FileCheck(f"docs/{name}") for name in names), alone=True)


def test_what_comes_of_it_is_what_comes_of_it_among_others(rules: CheckRules) -> None:
    page = page_of("a.md", "bad.md", "empty.md", "gone.md", "white.md")
    alone, among = check_alone(page, 3, rules), check_page(page, 3, rules)
    assert (alone.run, alone.number, alone.root) == (3, 5, "docs")
    assert [(write.key, write.title, write.file_hash, tuple(write.chunks)) for write in alone.documents] == [
        (write.key, write.title, write.file_hash, tuple(write.chunks)) for write in among.documents
    ]
    assert [(skip.key, skip.reason, skip.stat) for skip in alone.skips] == [
        (skip.key, skip.reason, skip.stat) for skip in among.skips
    ]
    assert alone.failures == among.failures
    assert [failure.reason for failure in alone.failures] == [Reason.VANISHED]


def test_a_file_with_its_stored_hash_is_only_looked_at(rules: CheckRules) -> None:
    (document,) = check_page(page_of("a.md"), 3, rules).documents
    page = Page(5, "docs", (FileCheck("docs/a.md", document.file_hash),), alone=True)
    assert [write.key for write in check_alone(page, 3, rules).rechecks] == ["docs/a.md"]


@pytest.mark.parametrize(
    ("poison", "reason", "detail"),
    [
        ("kill", Reason.WORKER_DIED, "ended by SIGKILL in a process of its own"),
        ("crash", Reason.WORKER_DIED, "ended by SIGABRT in a process of its own"),
        ("exit", Reason.WORKER_DIED, "ended with status 3 in a process of its own"),
        ("spin", Reason.OVER_LIMIT, "more than 1 s of processor time"),
        ("bloat", Reason.OVER_LIMIT, "more than 512 MiB of memory"),
        ("fault", Reason.UNEXPECTED, "RuntimeError: a fault of ours"),
    ],
)
def test_each_end_has_its_reason(
    rules: CheckRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, poison: str, reason: Reason, detail: str
) -> None:
    """The next file of the page is checked all the same, and what stat said of the guilty one is kept."""
    poisoned(tmp_path, monkeypatch, poison)
    finished = check_alone(page_of("poison.md", "a.md"), 3, rules, QUICK)
    (failure,) = finished.failures
    assert (failure.key, failure.reason, failure.detail) == ("docs/poison.md", reason, detail)
    assert failure.stat is not None
    assert failure.stat.size_bytes == 4
    assert [write.key for write in finished.documents] == ["docs/a.md"]


def test_one_bad_file_among_many_costs_few_processes(
    rules: CheckRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found by halving: the guilty one, and one process for what stands beside it at each step."""
    names = [f"n{number:02}.md" for number in range(15)]
    make_tree(rules.root_path, {name: f"# {name}\n" for name in names})
    poisoned(tmp_path, monkeypatch, "kill")
    started: list[bytes] = []
    run = limited_check._run

    def counted(told: bytes, wall_s: float) -> object:
        started.append(told)
        return run(told, wall_s)

    monkeypatch.setattr(limited_check, "_run", counted)
    finished = check_alone(page_of(*names, "poison.md"), 3, rules, QUICK)
    assert [failure.key for failure in finished.failures] == ["docs/poison.md"]
    assert [write.key for write in finished.documents] == [f"docs/{name}" for name in names]
    assert len(started) == 1 + 2 * 4


def test_a_file_that_hangs_is_given_up(rules: CheckRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No processor time is used: only the clock ends it."""
    poisoned(tmp_path, monkeypatch, "hang")
    (failure,) = check_alone(page_of("poison.md"), 3, rules, CheckLimits(wall_s=3.0)).failures
    assert (failure.reason, failure.detail) == (Reason.OVER_LIMIT, "no answer after 3 s")


def test_a_process_that_does_not_start_is_no_fault_of_the_file(
    rules: CheckRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is tried again later."""
    poisoned(tmp_path, monkeypatch, "kill", "os._exit(7) if 'workers.limited_child' in str(os.sys.orig_argv) else None")
    (failure,) = check_alone(page_of("a.md"), 3, rules).failures
    assert (failure.reason, failure.detail) == (
        Reason.UNEXPECTED,
        "the process that was to read it alone did not start (status 7)",
    )
    monkeypatch.setattr("workers.limited_check.sys.executable", str(tmp_path / "no-python"))
    (failure,) = check_alone(page_of("a.md"), 3, rules).failures
    assert failure.reason is Reason.UNEXPECTED


@pytest.mark.parametrize("answer", ["b'no msgpack'", "b''", "msgspec.msgpack.encode([1, 2])"])
def test_an_answer_that_is_none_is_a_failure(
    rules: CheckRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    lines = f"import msgspec, workers.limited_child\nworkers.limited_child._check = lambda told: {answer}"
    poisoned(tmp_path, monkeypatch, "fault", lines, _RUN_AS_MAIN)
    (failure,) = check_alone(page_of("a.md"), 3, rules).failures
    assert (failure.reason, failure.detail) == (Reason.WORKER_DIED, "ended without an answer in a process of its own")


_RUN_AS_MAIN = """
if "workers.limited_child" in str(os.sys.orig_argv):
    workers.limited_child.main()
"""


def test_the_process_ends_with_its_starter(rules: CheckRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 of a worker leaves no process behind that reads a hanging file."""
    poisoned(tmp_path, monkeypatch, "hang")
    told = LimitedCheck(
        (("docs/poison.md", b""),), "docs", str(rules.root_path), 7, MAX_FILE_BYTES, "auto", 30, 1024 * MIB
    )  # fmt: skip
    raw = msgspec.msgpack.encode(told)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "workers.limited_child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(len(raw).to_bytes(4, "big") + raw)
        process.stdin.flush()
        assert process.stdout.read(1) == limited_check.READY
        assert is_running(process.pid)
        process.stdin.close()
        eventually(lambda: process.poll() is not None)
    assert process.returncode == 0  # by itself
