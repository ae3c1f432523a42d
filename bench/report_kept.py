"""What the parts of the report have found, kept in one JSON file: bench/results/report/report.json.

    {"machine": {...}, "parts": {NAME: {"command", "what", "day", "load_before", "load_after", "seconds", "failed",
                                        "note", "figures": [...], "data": {...}}}}

"earlier" beside "parts" has what a part found in a quieter hour, before it was measured again on a busier machine.
A part that was not run is not there. `failed` holds its last words where it ended with an error; then it has no
figures, and those of an earlier run are gone, since nobody could tell whose they are.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import Figure

FOLDER = Path(__file__).with_name("results") / "report"
KEPT = FOLDER / "report.json"
COMPARED = ("cores", "processor", "memory_gib", "python", "sqlite")  # of a machine: others make another report


@dataclass(frozen=True, slots=True)
class Measured:
    """One part of the report. Loads are averages of 1 and 5 minutes."""

    command: str
    what: str  # the corpus
    day: str
    load_before: list[float]
    load_after: list[float]
    seconds: float
    failed: str = ""
    note: str = ""  # what else there is to say, such as that it was broken off
    figures: list[Figure] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def load(self) -> str:
        """The highest and the lowest that was seen of the average of a minute, before and after."""
        if not self.load_before:
            return "not recorded"
        low, high = sorted((self.load_before[0], self.load_after[0]))
        return f"{low:g}" if low == high else f"{low:g} to {high:g}"

    def highest_load(self) -> float:
        return max((*self.load_before[:1], *self.load_after[:1]), default=0.0)


@dataclass(frozen=True, slots=True)
class Kept:
    """Everything that the report is written from."""

    machine: dict[str, Any]
    parts: dict[str, Measured] = field(default_factory=dict)
    earlier: dict[str, Measured] = field(default_factory=dict)

    def of_machine(self, machine: dict[str, Any]) -> "Kept":
        """The same with the machine of now. Raises ValueError where the figures are of another one."""
        differing = [name for name in COMPARED if self.parts and self.machine.get(name) != machine.get(name)]
        if differing:
            raise ValueError(
                f"the kept figures are of another machine ({', '.join(differing)} differ): --fresh begins anew"
            )
        return Kept(machine, self.parts, self.earlier)

    def with_part(self, name: str, measured: Measured) -> "Kept":
        """With a part's new figures; those it had stay as earlier ones where the machine had less to do then."""
        before, earlier = self.parts.get(name), self.earlier
        if before is not None and before.figures and before.highest_load() < measured.highest_load():
            earlier = {**earlier, name: before}
        return Kept(self.machine, {**self.parts, name: measured}, earlier)


def read(file: Path = KEPT) -> Kept:
    """Raises FileNotFoundError where nothing was ever kept."""
    return msgspec.json.decode(file.read_bytes(), type=Kept)


def write(kept: Kept, file: Path = KEPT) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(kept), indent=1) + "\n", encoding="utf-8")
