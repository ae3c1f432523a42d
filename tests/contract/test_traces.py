"""S0-84: the table of spans and attributes against what the code tells."""

import re
from pathlib import Path
from typing import get_args

from domain.status import DegradeCause
from domain.tracing import SpanName

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "docs/reference-metrics.md").read_text(encoding="utf-8").split("## Traces")[1].split("\n## ")[0]
TELLING = ("app/tracing.py", "app/tracing_export.py", "embedding/measuring.py")


def test_every_span_and_attribute_is_explained_and_none_that_is_not_there() -> None:
    code = "".join((ROOT / path).read_text(encoding="utf-8") for path in TELLING)
    told = set(re.findall(r'"(knowledge\.[a-z_.]+)"', code)) - {"knowledge.tracing"}  # the name of a logger
    assert set(re.findall(r"`(knowledge\.[a-z_.]+)`", TABLE)) == told
    assert told > set(get_args(SpanName))


def test_every_reason_of_a_degraded_search_is_listed() -> None:
    row = next(line for line in TABLE.splitlines() if "`knowledge.degraded.reason`" in line)
    listed = set(re.findall(r"`(\w+)`", row))
    assert listed == {cause.value for cause in DegradeCause} - {DegradeCause.CHANGED}  # a search refuses


def test_the_variables_that_ask_stand_in_the_how_to() -> None:
    how_to = (ROOT / "docs/how-to.md").read_text(encoding="utf-8").split("## Trace searches")[1].split("\n## ")[0]
    code = (ROOT / "app/tracing.py").read_text(encoding="utf-8")
    variables = set(re.findall(r'"(OTEL_[A-Z_]+)"', code))
    assert variables == {name for name in variables if f"`{name}" in how_to} and len(variables) == 4
