"""A telemetry that remembers what it was told, by the names of the measures."""

from collections import defaultdict

from domain.telemetry import Measure, Values


class Recorder:
    """domain.telemetry.Telemetry."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, ...], float] = defaultdict(float)  # by name and labels
        self.observed: dict[str, list[float]] = defaultdict(list)
        self.gauges: dict[str, Values] = {}

    def count(self, measure: Measure, amount: float = 1, *labels: str) -> None:
        self.counts[measure.name, *labels] += amount

    def observe(self, measure: Measure, value: float, *labels: str) -> None:
        self.observed[measure.name].append(value)

    def gauge(self, measure: Measure, values: Values) -> None:
        self.gauges[measure.name] = dict(values)
