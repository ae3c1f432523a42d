"""Reading Prometheus' text format and the names that an expression over it uses."""

import re
from typing import NamedTuple

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SELECTOR = re.compile(r"\b((?:knowledge|process)_\w+)(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")


class Exported(NamedTuple):
    """What a page of metrics holds."""

    types: dict[str, str]  # by the name of the metric, as in its TYPE line
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]

    def labels(self, name: str) -> list[dict[str, str]]:
        return [dict(labels) for known, labels in self.samples if known == name]


def parsed(text: str) -> Exported:
    """Fails for a line that is neither a comment nor a sample."""
    types: dict[str, str] = {}
    samples = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            types[name] = kind
        elif not line.startswith("#"):
            found = _SAMPLE.match(line)
            assert found, line
            samples[found[1], frozenset(_LABEL.findall(found[2] or ""))] = float(found[3])
    return Exported(types, samples)


class Used(NamedTuple):
    """A series that an expression asks for."""

    name: str  # as exported: with _bucket, _sum, _count
    labels: dict[str, str]  # in its selector


def used_series(expression: str) -> list[Used]:
    return [
        Used(name, dict(re.findall(r'(\w+)(?:=~|!=|!~|=)"([^"]*)"', inside)))
        for name, inside in _SELECTOR.findall(expression)
    ]


def grouped_labels(expression: str) -> set[str]:
    """The labels after by, without, on, ignoring."""
    return {label for inside in _GROUPED.findall(expression) for label in re.findall(r"\w+", inside)}
