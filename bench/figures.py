"""The figures of a bench: printed one a line, and written as JSON of one shape for all of them (`--json FILE`).

    {"figures": [{"name", "value", "unit", "must", "aim", "is_more_better", "runs", "detail", "cpu"}, ...],
     "data": {...}}

`cpu` is the same of the processor's time, in the same unit, null where it was not measured; `must` and `aim` are bars
of the same unit, null where none was set; `data` holds what is no single figure.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MISSED, SHORT_OF_AIM, REACHED, NO_BAR = "MISSED", "must", "aim", ""


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure was promised to reach. Whichever is None was not promised."""

    must: float | None = None
    aim: float | None = None
    is_more_better: bool = False


NONE = Bar()


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value: a median of `runs`, where nothing else is said."""

    name: str
    value: float
    unit: str
    must: float | None = None
    aim: float | None = None
    is_more_better: bool = False
    runs: int = 1
    detail: str = ""
    cpu: float | None = None

    @property
    def verdict(self) -> str:
        """`aim`, `must` (the bar, but not what was aimed for), `MISSED`, or nothing where no bar was set."""
        if self.must is None and self.aim is None:
            return NO_BAR
        if self._reaches(self.must) is False:
            return MISSED
        return SHORT_OF_AIM if self._reaches(self.aim) is False else REACHED

    def _reaches(self, bar: float | None) -> bool | None:
        if bar is None:
            return None
        return self.value >= bar if self.is_more_better else self.value <= bar


@dataclass(slots=True)
class Sheet:
    """The figures found so far."""

    figures: list[Figure] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def add(
        self,
        name: str,
        value: float,
        unit: str,
        bar: Bar = NONE,
        *,
        runs: int = 1,
        detail: str = "",
        cpu: float | None = None,
    ) -> None:
        of_cpu = None if cpu is None else round(float(cpu), 4)
        judged = (bar.must, bar.aim, bar.is_more_better)
        figure = Figure(name, round(float(value), 4), unit, *judged, runs=runs, detail=detail, cpu=of_cpu)
        self.figures.append(figure)
        asked = ", ".join(
            f"{word} {value:g}" for word, value in (("must", bar.must), ("aim", bar.aim)) if value is not None
        )
        more = "" if of_cpu is None else f"({of_cpu:g} {unit} of CPU) "
        told = f"{name:<58} {figure.value:>10g} {unit:<6} {figure.verdict:<7} {asked} {more}{detail}"
        print(told.rstrip(), flush=True)

    def write(self, path: Path | None) -> None:
        """Nothing where no path was given."""
        if path is not None:
            told = {"figures": [asdict(figure) for figure in self.figures], "data": self.data}
            path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
