"""Patterns that people write, matched within a limit of computing time.

Some patterns try every way to split a word (`(a+)+$`), which may take longer than the universe has. Python's engine
asks every few thousand steps whether a signal has come in, if it runs in the main thread: so a timer stops it, and no
process is needed beside this one. The timer counts this process's own computing, so a busy machine stops no pattern.
"""

import re
import signal
import threading
import warnings
from collections.abc import Sequence
from types import FrameType, TracebackType

from domain.errors import UsageError

MAX_PATTERN_CHARS = 1_000
LIMIT_S = 1.0  # of computing, for all words together; a usual pattern takes 0.1 s for 200,000 words
_TOO_DEEP = "it is nested too deeply"


class _TimeIsUpError(Exception):
    """Comes out of whatever the engine was at."""


def compile_pattern(written: str) -> re.Pattern[str]:
    """The pattern, blind to case. Raises UsageError naming the place where it cannot be read."""
    if len(written) > MAX_PATTERN_CHARS:
        raise UsageError(f"the pattern has {len(written):,} characters, more than {MAX_PATTERN_CHARS:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a later Python may read otherwise
            return re.compile(written, re.IGNORECASE)
    except re.error as error:
        raise _unreadable(written, error.msg, error.pos) from None
    except OverflowError as error:
        raise _unreadable(written, str(error), None) from None
    except RecursionError:
        raise _unreadable(written, _TOO_DEEP, None) from None


def _unreadable(written: str, why: str, place: int | None) -> UsageError:
    where = "" if place is None else f" at character {place + 1} ({written[place : place + 10] or 'its end'!r})"
    return UsageError(
        f"the pattern cannot be read: {why}{where}",
        hint="it is a regular expression as Python has them; a backslash in front takes a sign as it is",
    )


class LimitedPattern:
    """A pattern with what is left of its time. For the main thread of a process only."""

    def __init__(self, written: str, *, limit_s: float = LIMIT_S) -> None:
        self._pattern = compile_pattern(written)
        self._limit_s = limit_s
        self._left = _TimeLeft(limit_s)

    def matching(self, counted: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Those whose word the pattern is found in. Raises UsageError where the time is up."""
        search = self._pattern.search
        found: list[tuple[str, int]] = []
        word = ""
        try:
            with self._left:
                for pair in counted:
                    word = pair[0]
                    if search(word):
                        found.append(pair)
        except _TimeIsUpError:
            raise UsageError(
                f"the pattern takes too long: stopped after {self._limit_s:g} s, at the word {word[:40]!r}",
                hint="a repeat inside of a repeat, as in (a+)+, tries every way to split a word: write it with one",
            ) from None
        return found


class _TimeLeft:
    """Seconds of computing that may still be spent inside of `with`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._before: signal._HANDLER = signal.SIG_DFL

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("only in the main thread can a pattern be stopped")
        self._before = signal.signal(signal.SIGVTALRM, _stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, max(self._seconds, 1e-6))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._seconds, _ = signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        finally:
            signal.signal(signal.SIGVTALRM, self._before)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TimeIsUpError
