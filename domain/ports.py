"""Small protocols that several layers share; each says when it is called and by whom."""

from collections.abc import Callable
from typing import Protocol

WallClock = Callable[[], int]
"""Nanoseconds since the epoch: for what is stored and compared with file times."""

MonotonicClock = Callable[[], float]
"""Seconds that never go back: for durations and deadlines."""


class Telemetry(Protocol):
    """Spans around searches and embedding batches (S0-84); does nothing unless one is wired in."""

    def span(self, name: str, attributes: dict[str, str | int | bool]) -> None: ...


class SilentTelemetry:
    """The default: nothing is recorded."""

    def span(self, name: str, attributes: dict[str, str | int | bool]) -> None:
        return None
