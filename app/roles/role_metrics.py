"""A role's numbers over prometheus-client: one registry a process, rendered when it is asked for."""

from math import nan

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from app.roles.measures import ROLE_ACTIVE, ROLE_MEASURES, ROLE_STANDBY, ROLE_WAITING
from app.roles.runtime import RoleStatus
from domain.telemetry import Measure, Values


class RoleMetrics:
    """domain.telemetry.Telemetry of one role. What another role is to export is taken and dropped."""

    def __init__(self, role: str) -> None:
        self._role = role
        self._registry = CollectorRegistry()
        # it would add a series to each counter and histogram
        disable_created_metrics()  # type: ignore[no-untyped-call]
        ProcessCollector(registry=self._registry)
        self._counters: dict[Measure, Counter] = {}
        self._gauges: dict[Measure, Gauge] = {}
        self._histograms: dict[Measure, Histogram] = {}
        for measure in ROLE_MEASURES[role]:
            self._make(measure)

    def count(self, measure: Measure, amount: float = 1, *labels: str) -> None:
        counter = self._counters.get(measure)
        if counter is not None:
            (counter.labels(*labels) if labels else counter).inc(amount)

    def observe(self, measure: Measure, value: float, *labels: str) -> None:
        histogram = self._histograms.get(measure)
        if histogram is not None:
            (histogram.labels(*labels) if labels else histogram).observe(value)

    def gauge(self, measure: Measure, values: Values) -> None:
        gauge = self._gauges.get(measure)
        if gauge is None:
            return
        if not measure.labels:
            gauge.set(values.get((), nan))
            return
        gauge.clear()
        for labels, value in values.items():
            gauge.labels(*labels).set(value)

    def rendered(self, status: RoleStatus) -> bytes:
        """Everything, in Prometheus' text format."""
        self.gauge(ROLE_ACTIVE, {(self._role,): status.is_active})
        self.gauge(ROLE_STANDBY, {(self._role,): status.stands_by})
        self.gauge(ROLE_WAITING, {(self._role,): bool(status.waits_for) and not status.stands_by})
        return generate_latest(self._registry)

    def _make(self, measure: Measure) -> None:
        told = (measure.name, measure.meaning, measure.labels)
        match measure.kind:
            case "counter":
                counter = self._counters[measure] = Counter(*told, registry=self._registry)
                for value in measure.known:
                    counter.labels(value)
            case "gauge":
                gauge = self._gauges[measure] = Gauge(*told, registry=self._registry)
                if not measure.labels:
                    gauge.set(nan)
            case "histogram":
                self._histograms[measure] = Histogram(*told, registry=self._registry, buckets=measure.buckets)
