"""The seam of schedules: which tick was taken last and what came of it, and who keeps that (state.db)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from store.run_port import RunRecord

QUEUED, SKIPPED = "queued", "skipped"  # outcomes beside the states in which a run ends
TickResult = Literal["queued", "skipped", "taken"]
"""What became of a tick: a run waits for it; skipped, as another run goes on or waits; somebody else took it."""


class ScheduleRecord(Struct, frozen=True):
    """A schedule as state.db knows it. Times are nanoseconds since the epoch; 0 = not yet."""

    name: str
    last_tick_ns: int  # no tick up to this one is taken any more; of a new schedule, when it was first seen
    last_run: int = 0
    last_outcome: str = ""  # "queued" until its run's end is recorded; "skipped", or the state that the run ended in
    outcome_ns: int = 0
    skipped: int = 0  # ticks that found another run
    last_success_ns: int = 0

    @property
    def is_run_recorded(self) -> bool:
        """Whether the end of its last run, if there was one, is on record."""
        return self.last_outcome != QUEUED


class Tick(Struct, frozen=True):
    """What became of a tick, and of which run: the one that was queued, or the one that was in the way."""

    result: TickResult
    run_id: int = 0


class ScheduleLedgerPort(Protocol):
    """Authority over ticks. Synchronous, each call one short transaction."""

    def schedules(self) -> Sequence[ScheduleRecord]:
        """By name."""
        ...

    def see_schedule(self, name: str, now_ns: int) -> None:
        """From now on its ticks count, none before; known or not."""
        ...

    def forget_schedules(self, kept: Collection[str]) -> None:
        """Forget all but these."""
        ...

    def tick(self, name: str, tick_ns: int, now_ns: int, *, run: RunRecord, request: Mapping[str, object]) -> Tick:
        """Take a tick of a schedule that was seen, exactly once: queue its run, or record it as skipped over a run of
        the base that has not ended. A tick that is not behind the last one was taken before."""
        ...

    def close_tick(self, name: str, run_id: int, outcome: str, ended_ns: int) -> bool:
        """Record how a schedule's last run ended; once. False: it was on record, or is not the last one."""
        ...
