"""Patterns for `words`: what can be read, what is told of what cannot, and that the time limit holds."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from domain.errors import UsageError
from retrieval import word_pattern
from retrieval.word_pattern import MAX_PATTERN_CHARS, LimitedPattern, compile_pattern

InThread = Callable[[Callable[[], Any]], Any]

RUNAWAYS = [
    (r"(a+)+$", "a" * 40 + "b"),
    (r"(a|aa)+$", "a" * 60 + "b"),
    (r"(.*)*x", "y" * 30_000),
    (r"(\w*\w*\w*\w*\w*)*!", "w" * 200),
]


@pytest.fixture(params=["main thread", "another thread"])
def in_thread(request: pytest.FixtureRequest) -> InThread:
    """Runs a function in the main thread or in another."""

    def run(function: Callable[[], Any]) -> Any:
        if request.param == "main thread":
            return function()
        with ThreadPoolExecutor(max_workers=1) as threads:
            return threads.submit(function).result()

    return run


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that are started beside this one."""
    processes: list[Any] = []
    start = word_pattern._started

    def noted() -> Any:
        processes.append(start())
        return processes[-1]

    monkeypatch.setattr(word_pattern, "_started", noted)
    return processes


@pytest.mark.parametrize(("written", "word"), RUNAWAYS)
def test_a_runaway_pattern_is_stopped_with_the_word_it_was_at(written: str, word: str, in_thread: InThread) -> None:
    def match() -> UsageError:
        with LimitedPattern(written, limit_s=0.05) as pattern, pytest.raises(UsageError, match="too long") as raised:
            pattern.matching([("calm", 1), (word, 1)])
        return raised.value

    error = in_thread(match)
    assert repr(word[:40]) in error.message
    assert error.hint


def test_the_limit_is_of_all_words_together(in_thread: InThread) -> None:
    """Also where no single word takes long."""
    slow = [("a" * 16 + "b", number) for number in range(10_000)]

    def match() -> None:
        with LimitedPattern(r"(a+)+$", limit_s=0.05) as pattern, pytest.raises(UsageError, match="too long"):
            for _ in range(50):
                pattern.matching(slow)

    in_thread(match)


def test_nothing_of_the_timer_stays() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    found = LimitedPattern("^be").matching([("bee", 3), ("abbey", 2), ("beta", 1)])
    assert found == [("bee", 3), ("beta", 1)]
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_the_pattern_is_blind_to_case_and_found_anywhere(in_thread: InThread) -> None:
    words = [("foo", 1), ("barfoot", 1), ("fob", 1), ("\ud800foo\n", 2)]

    def match() -> list[list[tuple[str, int]]]:
        with LimitedPattern("FOO") as pattern:
            return [pattern.matching(words), pattern.matching([]), pattern.matching(words[1:3])]

    assert in_thread(match) == [[("foo", 1), ("barfoot", 1), ("\ud800foo\n", 2)], [], [("barfoot", 1)]]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("[a", "unterminated character set at character 1 ('[a')"),
        ("(?P<", "missing group name at character 5 ('its end')"),
        ("ab[z-a]", "bad character range z-a at character 4 ('z-a]')"),
        ("a{99999999999}", "the repetition number is too large"),
        ("(" * 900, "nested too deeply"),
        ("(a", "unterminated subpattern at character 1"),
        ("\\", "bad escape"),
        ("a" * (MAX_PATTERN_CHARS + 1), "1,001 characters"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(written: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        compile_pattern(written)
    assert told in raised.value.message


def test_what_a_later_python_may_read_otherwise_is_no_warning() -> None:
    assert compile_pattern("[[a]b").search("ab") is not None  # a FutureWarning, were it told


def test_threads_do_not_disturb_one_another_and_nothing_is_left_running(started: list[Any]) -> None:
    """Each has a limit of its own, also while another's is used up."""
    words = [(f"word{number}", number) for number in range(5_000)]

    def match(written: str) -> int:
        try:
            with LimitedPattern(written, limit_s=0.5) as pattern:
                return len(pattern.matching([*words, ("a" * 40 + "b", 1)]))
        except UsageError:
            return -1

    with ThreadPoolExecutor(max_workers=4) as threads:
        assert list(threads.map(match, ["^word", r"^(a+)+$", "7$", r"^(a|aa)+$"])) == [5_000, -1, 500, -1]
    assert [process.returncode for process in started] == [-signal.SIGKILL] * 4  # each was waited for


def test_the_main_thread_needs_no_process(started: list[Any]) -> None:
    with LimitedPattern("a") as pattern:
        assert pattern.matching([("abc", 1)]) == [("abc", 1)]
    assert started == []


def test_a_process_that_is_ended_is_told(started: list[Any]) -> None:
    def match() -> None:
        with LimitedPattern("a") as pattern:
            assert pattern.matching([("abc", 1)]) == [("abc", 1)]
            os.kill(started[0].pid, signal.SIGKILL)
            started[0].wait()
            with pytest.raises(UsageError, match="its process has ended"):
                pattern.matching([("abc", 1)])

    with ThreadPoolExecutor(max_workers=1) as threads:
        threads.submit(match).result()
    assert started[0].stdin.closed and started[0].stdout.closed


def test_the_process_ends_with_whoever_started_it() -> None:
    """Its standard input is all that keeps it."""
    process = word_pattern._started()
    with process:
        assert process.stdin is not None
        process.stdin.write(b'["a", 1.0]\n')
        process.stdin.close()
        assert process.wait(20) == 0
