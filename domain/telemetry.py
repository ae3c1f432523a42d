"""The port of the numbers that a process tells about its work. By default nobody listens, and nothing is kept.

What is measured is told where it arises, once a page or a request, never once a chunk.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

MeasureKind = Literal["counter", "gauge", "histogram"]


class Measure(Struct, frozen=True, eq=False):
    """One number, by its exported name, which ends in its unit. Measures are compared by being the same one."""

    name: str
    kind: MeasureKind
    meaning: str
    labels: tuple[str, ...] = ()
    known: tuple[str, ...] = ()  # the values of its only label that are there from the beginning, at 0
    buckets: tuple[float, ...] = ()  # upper bounds, ascending; of a histogram


Values = Mapping[tuple[str, ...], float]
"""Of one measure, by the values of its labels in their order."""


class Telemetry(Protocol):
    """Takes numbers; never raises, never waits. To be called from the event loop of a process."""

    def count(self, measure: Measure, amount: float = 1, *labels: str) -> None:
        """Add to a counter."""
        ...

    def observe(self, measure: Measure, value: float, *labels: str) -> None:
        """Put a value into a histogram."""
        ...

    def gauge(self, measure: Measure, values: Values) -> None:
        """What a gauge is now, with every set of labels that it has; what it had before is forgotten. {} = unknown."""
        ...


class Silence:
    """Nobody listens."""

    def count(self, measure: Measure, amount: float = 1, *labels: str) -> None:
        return

    def observe(self, measure: Measure, value: float, *labels: str) -> None:
        return

    def gauge(self, measure: Measure, values: Values) -> None:
        return


SILENCE: Telemetry = Silence()
