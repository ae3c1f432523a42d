"""Patterns that people write, matched within a limit of computing time (see retrieval.timed_matching).

In the main thread a timer stops a pattern. In any other, where no signal comes in, a process beside this one has the
timer: it is started with the first words and gone when the pattern is closed.
"""

import json
import re
import sys
import threading
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from domain.errors import UsageError
from retrieval import timed_matching
from retrieval.timed_matching import TimedPattern, TimeIsUpError

if TYPE_CHECKING:
    import subprocess

MAX_PATTERN_CHARS = 1_000
# each is made a table of 65,536 signs; two hundred took the engine two seconds, in which nothing stops it
MAX_WIDE_RANGES = 20
LIMIT_S = 1.0  # of computing, for all words together; a usual pattern takes 0.1 s for 200,000 words
_WIDE_RANGE = re.compile(r"-(?:[^\x00-\x7f]|\\[uUxN0-7])")  # up to a sign that is no ASCII, or may be none
_TOO_DEEP = "it is nested too deeply"
_FILTERS = threading.Lock()  # the filters of warnings are those of all threads


def compile_pattern(written: str) -> re.Pattern[str]:
    """The pattern, blind to case. Raises UsageError naming the place where it cannot be read."""
    if len(written) > MAX_PATTERN_CHARS:
        raise UsageError(f"the pattern has {len(written):,} characters, more than {MAX_PATTERN_CHARS:,}")
    if len(_WIDE_RANGE.findall(written)) > MAX_WIDE_RANGES:
        raise UsageError(
            f"the pattern has more than {MAX_WIDE_RANGES} ranges of signs beyond ASCII",
            hint="write one set in the place of several",
        )
    try:
        with _FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a later Python may read otherwise
            return re.compile(written, re.IGNORECASE)
    except re.error as error:
        raise _unreadable(written, error.msg, error.pos) from None
    except (OverflowError, ValueError) as error:  # a number beyond the engine's, flags that exclude each other
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
    """A pattern with what is left of its time, for any thread, one at a time. Close it, or use it in a `with`."""

    def __init__(self, written: str, *, limit_s: float = LIMIT_S) -> None:
        """Raises UsageError for a pattern that cannot be read."""
        self._here = TimedPattern(compile_pattern(written), limit_s)
        self._beside = _PatternBeside(written, limit_s)
        self._limit_s = limit_s

    def __enter__(self) -> "LimitedPattern":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._beside.close()

    def matching(self, counted: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
        """Those whose word the pattern is found in. Raises UsageError where the time is up."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        places = self._here.places if in_main_thread else self._beside.places
        try:
            return [counted[place] for place in places(word for word, _ in counted)]
        except TimeIsUpError as error:
            raise UsageError(
                f"the pattern takes too long: stopped after {self._limit_s:g} s, at the word {error.word[:40]!r}",
                hint="a repeat inside of a repeat, as in (a+)+, tries every way to split a word: write it with one",
            ) from None


class _PatternBeside:
    """The same pattern in a process of its own, which ends with this one if it is not closed before."""

    def __init__(self, written: str, limit_s: float) -> None:
        self._written = written
        self._limit_s = limit_s
        self._process: subprocess.Popen[bytes] | None = None

    def places(self, words: Iterable[str]) -> list[int]:
        """As TimedPattern's. Raises UsageError where the process ends for another reason."""
        if self._process is None:
            self._process = _started()
            self._send([self._written, self._limit_s])
        self._send(list(words))
        answer = self._received()
        if isinstance(answer, str):
            raise TimeIsUpError(answer)
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # of what it was never told
                        pipe.close()
            self._process = None

    def _send(self, value: object) -> None:
        process = self._process
        if process is None or process.stdin is None:
            raise _ended()
        try:
            process.stdin.write(json.dumps(value).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise _ended() from None

    def _received(self) -> list[int] | str:
        process = self._process
        line = process.stdout.readline() if process is not None and process.stdout is not None else b""
        if not line.endswith(b"\n"):
            raise _ended()
        answer: list[int] | str = json.loads(line)
        return answer


def _started() -> "subprocess.Popen[bytes]":
    import subprocess  # a command's main thread has no need of it

    # -I -S: nothing of the environment, of this directory or of installed packages is looked at
    command = [sys.executable, "-I", "-S", timed_matching.__file__]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)


def _ended() -> UsageError:
    """It was out of memory, most likely, or somebody has ended it."""
    return UsageError("the pattern could not be matched: its process has ended", hint="try a simpler pattern")
