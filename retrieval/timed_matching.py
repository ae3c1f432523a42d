"""A pattern looked for in words within a limit of computing time; as a program too, for whom it works beside.

Some patterns try every way to split a word (`(a+)+$`), which may take longer than the universe has. Python's engine
asks every few thousand steps whether a signal has come in, if it runs in the main thread: so a timer stops it. The
timer counts this process's own computing, so a busy machine stops no pattern.

As a program this reads lines of JSON: first the pattern and the limit, then words; each line of words is answered by
one with the places of those that it is found in, or with the word at which the time was up. Only the standard library
is imported: it is there in 20 ms.
"""

import json
import re
import signal
import sys
from collections.abc import Iterable
from types import FrameType, TracebackType


class TimeIsUpError(Exception):
    """Comes out of whatever the engine was at."""

    def __init__(self, word: str = "") -> None:
        super().__init__(word)
        self.word = word


class TimedPattern:
    """A pattern with what is left of its time. For the main thread of a process only."""

    def __init__(self, pattern: re.Pattern[str], limit_s: float) -> None:
        self._pattern = pattern
        self._left = _TimeLeft(limit_s)

    def places(self, words: Iterable[str]) -> list[int]:
        """Of the words that it is found in, from 0. Raises TimeIsUpError with the word where the time is up."""
        search = self._pattern.search
        found: list[int] = []
        word = ""
        try:
            with self._left:
                for place, word in enumerate(words):
                    if search(word):
                        found.append(place)
        except TimeIsUpError:
            raise TimeIsUpError(word) from None
        return found


class _TimeLeft:
    """Seconds of computing that may still be spent inside of `with`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._before: signal._HANDLER = signal.SIG_DFL

    def __enter__(self) -> None:
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
    raise TimeIsUpError


def main() -> None:
    """Until standard input ends, as it does with whoever started this."""
    written, limit_s = json.loads(sys.stdin.readline())
    pattern = TimedPattern(re.compile(written, re.IGNORECASE), limit_s)
    for line in sys.stdin:
        try:
            answer: object = pattern.places(json.loads(line))
        except TimeIsUpError as error:
            answer = error.word
        print(json.dumps(answer), flush=True)  # noqa: T201 - this is what it is for


if __name__ == "__main__":
    main()
