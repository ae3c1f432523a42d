"""Patterns for `words`: what can be read, what is told of what cannot, and that the time limit holds."""

import signal
import threading

import pytest

from domain.errors import UsageError
from retrieval.word_pattern import MAX_PATTERN_CHARS, LimitedPattern, compile_pattern

RUNAWAYS = [
    (r"(a+)+$", "a" * 40 + "b"),
    (r"(a|aa)+$", "a" * 60 + "b"),
    (r"(.*)*x", "y" * 30_000),
    (r"(\w*\w*\w*\w*\w*)*!", "w" * 200),
]


@pytest.mark.parametrize(("written", "word"), RUNAWAYS)
def test_a_runaway_pattern_is_stopped_with_the_word_it_was_at(written: str, word: str) -> None:
    pattern = LimitedPattern(written, limit_s=0.05)
    with pytest.raises(UsageError, match="takes too long") as raised:
        pattern.matching([("calm", 1), (word, 1)])
    assert repr(word[:40]) in raised.value.message
    assert raised.value.hint


def test_the_limit_is_of_all_words_together() -> None:
    """Also where no single word takes long."""
    pattern = LimitedPattern(r"(a+)+$", limit_s=0.05)
    slow = [("a" * 16 + "b", number) for number in range(10_000)]
    with pytest.raises(UsageError, match="takes too long"):
        for _ in range(50):
            pattern.matching(slow)


def test_nothing_of_the_timer_stays() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    found = LimitedPattern("^be").matching([("bee", 3), ("abbey", 2), ("beta", 1)])
    assert found == [("bee", 3), ("beta", 1)]
    assert signal.getsignal(signal.SIGVTALRM) is before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_the_pattern_is_blind_to_case_and_found_anywhere() -> None:
    words = [("foo", 1), ("barfoot", 1), ("fob", 1)]
    assert LimitedPattern("FOO").matching(words) == [("foo", 1), ("barfoot", 1)]


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


def test_in_another_thread_it_says_so_and_matches_nothing() -> None:
    raised: list[BaseException] = []

    def match() -> None:
        try:
            LimitedPattern("a").matching([("a", 1)])
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=match)
    thread.start()
    thread.join()
    assert len(raised) == 1
