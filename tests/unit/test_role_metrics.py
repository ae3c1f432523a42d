"""A role's numbers: what it exports from the beginning, and what becomes of what it is told."""

import ast
from math import isnan
from pathlib import Path

import pytest

from app.roles.measures import (
    FAILURES,
    LAST_RUN,
    QUEUE_JOBS,
    QUEUE_PARKED,
    ROLE_MEASURES,
    ROLE_NAMES,
    RUNS_ENDED,
    SCHEDULE_NEXT,
)
from app.roles.role_metrics import RoleMetrics
from app.roles.runtime import RoleStatus
from app.roles.table import ROLES
from domain import measures
from domain.telemetry import SILENCE, Measure
from tests.support.prometheus import Exported, parsed

ROOT = Path(__file__).resolve().parents[2]
PROCESS = {
    "process_virtual_memory_bytes",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_max_fds",
}
UNITS = ("_seconds", "_bytes", "_total", "_ratio", "_texts", "_pages", "_documents")


def rendered(metrics: RoleMetrics, status: RoleStatus | None = None) -> Exported:
    return parsed(metrics.rendered(status or RoleStatus()).decode())


def all_measures() -> set[Measure]:
    return {measure for own in ROLE_MEASURES.values() for measure in own}


@pytest.mark.parametrize("role", ROLE_NAMES)
def test_a_role_exports_its_measures_and_its_process_and_nothing_else(role: str) -> None:
    types = rendered(RoleMetrics(role)).types
    assert {name for name in types if not name.startswith("process_")} == {own.name for own in ROLE_MEASURES[role]}
    assert {name for name in types if name.startswith("process_")} <= PROCESS
    assert all(types[own.name] == own.kind for own in ROLE_MEASURES[role])


def test_the_roles_are_those_of_the_table() -> None:
    assert set(ROLE_NAMES) == set(ROLES) == set(ROLE_MEASURES)


def test_every_measure_of_the_work_is_exported_by_some_role() -> None:
    of_work = {value for value in vars(measures).values() if isinstance(value, Measure)}
    assert of_work <= all_measures()


def test_names_end_in_their_unit_and_labels_are_few() -> None:
    for measure in all_measures():
        assert measure.name.startswith("knowledge_")
        assert measure.name.endswith("_total") == (measure.kind == "counter"), measure.name
        assert measure.kind != "histogram" or measure.name.endswith(UNITS), measure.name
        assert set(measure.labels) <= {
            "role",
            "stage",
            "standing",
            "state",
            "reason",
            "outcome",
            "schedule",
            "root",
            "of",
        }
        assert bool(measure.buckets) == (measure.kind == "histogram")
        assert list(measure.buckets) == sorted(set(measure.buckets))


def test_the_first_failure_is_one_more_than_none() -> None:
    """`increase` sees nothing of a series that begins with 1."""
    metrics = RoleMetrics("scheduler")
    assert rendered(metrics).value("knowledge_runs_ended_total", state="failed") == 0
    metrics.count(RUNS_ENDED, 1, "failed")
    assert rendered(metrics).value("knowledge_runs_ended_total", state="failed") == 1


def test_what_cannot_be_told_has_no_value() -> None:
    metrics = RoleMetrics("serve")
    assert isnan(rendered(metrics).value("knowledge_queue_parked"))
    metrics.gauge(QUEUE_PARKED, {(): 3})
    metrics.gauge(QUEUE_JOBS, {("check",): 4, ("write",): 0})
    metrics.gauge(SCHEDULE_NEXT, {("nightly",): 100.0})
    seen = rendered(metrics)
    assert (seen.value("knowledge_queue_parked"), seen.value("knowledge_queue_jobs", stage="check")) == (3, 4)
    metrics.gauge(QUEUE_PARKED, {})
    metrics.gauge(QUEUE_JOBS, {})
    metrics.gauge(SCHEDULE_NEXT, {("weekly",): 100.0})
    seen = rendered(metrics)
    assert isnan(seen.value("knowledge_queue_parked"))
    assert not seen.labels("knowledge_queue_jobs")
    assert seen.labels("knowledge_schedule_next_timestamp_seconds") == [{"schedule": "weekly"}]


def test_a_histogram_counts_every_value() -> None:
    metrics = RoleMetrics("writer")
    for seconds in (0.004, 0.2, 1000.0):
        metrics.observe(measures.LOCK_HOLD_SECONDS, seconds)
    seen = rendered(metrics)
    assert seen.value("knowledge_write_lock_hold_seconds_count") == 3
    assert seen.value("knowledge_write_lock_hold_seconds_bucket", le="0.25") == 2
    assert seen.value("knowledge_write_lock_hold_seconds_bucket", le="+Inf") == 3


def test_what_is_another_roles_is_dropped() -> None:
    metrics = RoleMetrics("worker")
    before = rendered(metrics).types
    metrics.count(measures.COMMITS)
    metrics.observe(measures.GROUP_BYTES, 1)
    metrics.gauge(FAILURES, {("gone", "open"): 1})
    metrics.gauge(LAST_RUN, {})
    assert rendered(metrics).types == before


@pytest.mark.parametrize(
    ("status", "active", "standby", "waiting"),
    [
        (RoleStatus(is_active=True, waits_for=""), 1, 0, 0),
        (RoleStatus(is_active=True, waits_for="the queue"), 1, 0, 1),
        (RoleStatus(waits_for="another process", stands_by=True), 0, 1, 0),
        (RoleStatus(), 0, 0, 1),
    ],
)
def test_how_a_role_stands(status: RoleStatus, active: int, standby: int, waiting: int) -> None:
    seen = rendered(RoleMetrics("writer"), status)
    names = ("knowledge_role_active", "knowledge_role_standby", "knowledge_role_waiting")
    assert tuple(seen.value(name, role="writer") for name in names) == (active, standby, waiting)


def test_a_name_in_a_label_cannot_forge_a_line() -> None:
    metrics = RoleMetrics("serve")
    metrics.gauge(SCHEDULE_NEXT, {('a"} 1\nknowledge_forged 1\n\\',): 5.0})
    assert "knowledge_forged" not in {
        line.split(" ")[0] for line in metrics.rendered(RoleStatus()).decode().splitlines()
    }


def test_silence_takes_everything() -> None:
    SILENCE.count(measures.COMMITS)
    SILENCE.observe(measures.GROUP_BYTES, 1.0)
    SILENCE.gauge(FAILURES, {})


def test_only_the_roles_know_the_client() -> None:
    """A command line pays nothing for it."""
    importing = {
        path.relative_to(ROOT).as_posix()
        for package in ("domain", "store", "embedding", "retrieval", "scheduler", "workers", "app", "server", "cli")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("prometheus_client"))
        or (isinstance(node, ast.Import) and any(name.name.startswith("prometheus_client") for name in node.names))
    }
    assert importing == {"app/roles/role_metrics.py"}
