"""What is said of monitoring against what there is: tables of metrics and events, alert rules, dashboard."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
import yaml

from app.roles.measures import ROLE_MEASURES, ROLE_NAMES
from app.watching import NoticeKind
from domain.telemetry import Measure
from tests.support.prometheus import grouped_labels, used_series

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = (ROOT / "docs" / "reference-metrics.md").read_text(encoding="utf-8")
OPERATE = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
ALERTS = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
SECTIONS = {
    "Any role": frozenset(ROLE_NAMES),
    "The whole service, told by `serve`": frozenset({"serve"}),
    "Scheduler": frozenset({"scheduler"}),
    "Worker": frozenset({"worker"}),
    "Writer": frozenset({"writer"}),
}
MEASURES = {measure.name: measure for own in ROLE_MEASURES.values() for measure in own}
PROCESS = set(re.findall(r"`(process_\w+)`", REFERENCE))
OF_SCRAPING = {"instance", "job"}  # labels that Prometheus gives by itself


class Documented(NamedTuple):
    kind: str
    labels: tuple[str, ...]
    meaning: str
    roles: frozenset[str]


def documented() -> dict[str, Documented]:
    found = {}
    for title, roles in SECTIONS.items():
        text = REFERENCE.split(f"\n### {title}\n")[1].split("\n##")[0]
        for name, kind, labels, meaning in re.findall(
            r"^\| `(knowledge_\w+)` \| (\w+) \| (.*?) ?\| (.*) \|$", text, re.M
        ):
            found[name] = Documented(kind, tuple(re.findall(r"`(\w+)`", labels)), meaning, roles)
    return found


def test_the_table_of_metrics_is_what_the_roles_export() -> None:
    exported = {
        measure.name: Documented(
            measure.kind,
            measure.labels,
            measure.meaning,
            frozenset(role for role in ROLE_NAMES if measure in ROLE_MEASURES[role]),
        )
        for measure in MEASURES.values()
    }
    assert documented() == exported


def expressions() -> Iterator[tuple[str, str]]:
    for group in ALERTS["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def series_of(measure: Measure) -> set[str]:
    if measure.kind != "histogram":
        return {measure.name}
    return {f"{measure.name}{suffix}" for suffix in ("_bucket", "_sum", "_count")}


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_an_expression_asks_for_what_is_exported(where: str, expression: str) -> None:
    by_series = {series: measure for measure in MEASURES.values() for series in series_of(measure)}
    used = used_series(expression)
    assert used
    labels: set[str] = set(OF_SCRAPING)
    for name, selected in used:
        if name in PROCESS:
            continue
        assert name in by_series, name
        measure = by_series[name]
        own = set(measure.labels) | ({"le"} if name.endswith("_bucket") else set())
        labels |= own
        assert set(selected) <= own, (where, selected)
        for label, wanted in selected.items():
            if measure.known and label == measure.labels[0]:
                assert set(wanted.split("|")) <= set(measure.known), wanted
    assert grouped_labels(expression) <= labels


def test_every_metric_that_can_alarm_stands_in_the_dashboard_or_in_an_alert() -> None:
    asked_for = {name for _, expression in expressions() for name, _ in used_series(expression)}
    missing = {name for name, measure in MEASURES.items() if not series_of(measure) & asked_for}
    assert missing <= {
        "knowledge_role_active",  # knowledge_roles says the same of all
        "knowledge_role_standby",
        "knowledge_run_state_since_timestamp_seconds",
        "knowledge_schedule_next_timestamp_seconds",
        "knowledge_schedule_skipped_ticks",
    }


def test_alerts_are_whole_and_each_one_is_explained() -> None:
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    names = [rule["alert"] for rule in rules]
    assert len(set(names)) == len(names)
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
        for used in re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])):
            assert used in {label for name, _ in used_series(rule["expr"]) for label in MEASURES[name].labels}
    section = OPERATE.split("## What to watch, and what each alert means")[1]
    assert re.findall(r"^\| `(Knowledge\w+)` \|", section, re.M) == names


def test_the_dashboard_can_be_imported_anywhere() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels:
        if panel["type"] != "row":
            assert panel["title"]
            assert panel["datasource"] == source
            assert all(target["datasource"] == source for target in panel["targets"])
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource"]


def events_in_code() -> Iterator[tuple[str, ast.expr]]:
    """The first argument of every call of a role's log, with where it stands."""
    for path in [*(ROOT / "app" / "roles").glob("*.py"), *(ROOT / "server").glob("*.py")]:
        if path.name.startswith("mcp_"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _is_log_call(node.func):
                yield f"{path.name}:{node.lineno}", node.args[0]


def _is_log_call(function: ast.expr) -> bool:
    if not (isinstance(function, ast.Attribute) and function.attr in ("debug", "info", "warning", "error", "critical")):
        return False
    return ast.unparse(function.value).endswith("log")


def event_pattern(argument: ast.expr) -> str:
    """Of an f-string: anything in the place of a value."""
    if isinstance(argument, ast.JoinedStr):
        return "".join(
            re.escape(part.value) if isinstance(part, ast.Constant) and isinstance(part.value, str) else "[a-z_]+"
            for part in argument.values
        )
    value = ast.literal_eval(argument)
    assert isinstance(value, str)
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", value), value
    return re.escape(value)


def test_every_event_is_listed_and_none_that_is_not_there() -> None:
    rows = REFERENCE.split("| event | of | meaning |")[1].splitlines()
    listed = {name for row in rows if row.startswith("| `") for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    patterns = [event_pattern(argument) for _, argument in events_in_code()]
    assert len(patterns) > 20
    unlisted = [pattern for pattern in patterns if not any(re.fullmatch(pattern, name) for name in listed)]
    assert not unlisted
    assert not {name for name in listed if not any(re.fullmatch(pattern, name) for pattern in patterns)}
    assert {f"watch_{kind}" for kind in get_args(NoticeKind)} <= listed
