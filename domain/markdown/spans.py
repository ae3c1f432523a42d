"""What the scanner yields, and the clock that it looks at."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from domain.errors import KnowledgeError

Kind = Literal["heading", "fence", "table", "html", "code"]
Deadline = Callable[[], None]
"""Called every 1,000 lines; raises ScanTooSlowError when the time is over."""

LINES_PER_LOOK = 1000


class Span(NamedTuple):
    """One block that is more than ordinary text: whole lines, their ends included; offsets in characters."""

    kind: Kind
    start: int
    stop: int
    level: int  # headings: 1 to 6; else how many quotes and list items it lies in
    text: str  # headings: their words, never empty; else ""


class ScanTooSlowError(KnowledgeError):
    """A text took longer to read than its time; the file is skipped, never half indexed."""

    code = "scan_too_slow"


def deadline_after(seconds: float, clock: Callable[[], float]) -> Deadline:
    """A deadline that raises once `clock` (seconds, monotonic) has moved on by more than `seconds`."""
    end = clock() + seconds

    def look() -> None:
        if clock() > end:
            raise ScanTooSlowError(f"reading the text took longer than {seconds:g} s")

    return look
