"""What a run has done so far, for whoever shows it. One writer (the run), any number of readers."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from scheduler.plan import PlanTally
from store.run_port import RunState

Stage = Literal["walking", "indexing", "embedding", "removing", "done"]
_STATES: dict[str, RunState] = {
    "walking": "walking",
    "indexing": "checking",
    "embedding": "embedding",
    "removing": "writing",
    "done": "writing",
}


@dataclass(slots=True)
class RunProgress:
    """Counters of a run; they only grow. No value: who looks on derives from it."""

    tallies: Sequence[PlanTally] = ()  # one a root, of all roots from the start
    stage: Stage = "walking"
    checked: int = 0
    written: int = 0
    chunks: int = 0
    text_bytes: int = 0
    embedded: int = 0  # texts that were sent to the model
    reused: int = 0  # texts that had a vector
    from_parts: int = 0  # of those embedded: too long for the model
    hold_up: str = ""  # why nothing moves now, in a few words
    is_paused: bool = False
    is_plan_complete: bool = False
    began_s: float = field(default_factory=time.monotonic)

    @property
    def found(self) -> int:
        return sum(tally.met for tally in self.tallies)

    @property
    def to_check(self) -> int:
        return sum(tally.to_check for tally in self.tallies)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began_s

    @property
    def files_per_second(self) -> float:
        return self.checked / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def remaining_s(self) -> float | None:
        """Seconds that the rest will take at the present rate; None while nobody knows how much is left."""
        if not self.is_plan_complete or not self.checked:
            return None
        return max(0, self.to_check - self.checked) / max(self.files_per_second, 0.001)

    @property
    def run_state(self) -> RunState:
        """What the run is at, for those who look at it from outside."""
        if self.is_paused:
            return "paused"
        return "waiting" if self.hold_up else _STATES[self.stage]

    def counters(self) -> dict[str, int]:
        """What is remembered of a run while it goes on."""
        return {
            "found": self.found,
            "to_check": self.to_check,
            "checked": self.checked,
            "written": self.written,
            "chunks": self.chunks,
            "text_bytes": self.text_bytes,
            "embedded": self.embedded,
            "reused": self.reused,
            "is_plan_complete": int(self.is_plan_complete),
        }
