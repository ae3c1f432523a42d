"""The seam of runs: what a run is, what is asked of it, and who keeps that (state.db)."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

RunKind = Literal["index", "reindex", "verify", "compact"]
RunTrigger = Literal["cli", "schedule", "watch", "api", "start"]
RunState = Literal[
    "queued",
    "walking",
    "checking",
    "embedding",
    "writing",
    "paused",
    "waiting",
    "needs_approval",
    "interrupted",
    "cancelled",
    "partial",
    "done",
    "failed",
]
RUN_ENDINGS: frozenset[str] = frozenset({"needs_approval", "interrupted", "cancelled", "partial", "done", "failed"})
Wish = Literal["", "pause", "cancel"]
"""What is asked of a run that goes on: "" to go on, also after a pause."""

Change = Literal["added", "updated", "moved", "removed"]


class RunRecord(Struct, frozen=True):
    """A run as state.db knows it. Times are nanoseconds since the epoch; 0 = not yet."""

    id: int
    generation: int  # 0 while it is queued
    kind: str
    trigger: str
    roots: tuple[str, ...]
    state: str
    started_ns: int
    ended_ns: int | None
    counts: dict[str, int]
    cause: str = ""  # a stable code or a few words: why it is in its state
    full: bool = False
    requested: str = ""  # Wish
    schedule: str = ""  # whose tick it is; "" = none
    queued_ns: int = 0
    since_ns: int = 0  # in this state
    progress: Mapping[str, int] = field(default_factory=dict)  # as app.progress counts
    progressed_ns: int = 0  # when a number of these last changed
    pid: int = 0
    message: str = ""  # why it has ended as it has, in a sentence without text of documents; "" = nothing to add
    hint: str = ""  # what mends that

    @property
    def is_open(self) -> bool:
        """Begun, and not ended."""
        return self.ended_ns is None and self.state != "queued"


class RunLedgerPort(Protocol):
    """Authority over runs. Synchronous, each call one short transaction."""

    def begin_run(self, run: RunRecord, *, floor_generation: int) -> RunRecord:
        """Record a run that begins now, by the holder of the writer's lock, and issue its generation: one above every
        number known (R25), in one transaction. Open runs have lost their process and are closed."""
        ...

    def begin_beside(self, run: RunRecord, *, floor_generation: int) -> RunRecord:
        """Record a run that begins now beside an open one, which stays open: a removal by a service's writer. It reads
        as interrupted until `end_run` says more, so that nobody has to find out should its process be killed."""
        ...

    def queue_run(self, run: RunRecord, request: Mapping[str, object]) -> RunRecord:
        """Record a run that the service is to begin; `request` comes back from `request_of`."""
        ...

    def start_run(self, run_id: int, *, floor_generation: int) -> RunRecord | None:
        """A queued run begins: it gets its generation. None where it is queued no more (cancelled meanwhile)."""
        ...

    def describe_run(self, run_id: int, roots: Sequence[str], *, full: bool) -> None:
        """Which roots a run that was asked for turns out to be about."""
        ...

    def end_run(
        self, run_id: int, state: RunState, counts: dict[str, int], cause: str, message: str = "", hint: str = ""
    ) -> None:
        """Record the end of a run; `message` and `hint` are shown beside its cause, and hold no text of documents."""
        ...

    def set_run_state(self, run_id: int, state: RunState, cause: str) -> None:
        """Say what a run that goes on is at, and why."""
        ...

    def run(self, run_id: int) -> RunRecord | None: ...

    def runs(self, limit: int = 20) -> Sequence[RunRecord]:
        """The newest first."""
        ...

    def open_run(self) -> RunRecord | None:
        """The run that has begun and not ended."""
        ...

    def queued_runs(self) -> Sequence[RunRecord]:
        """In the order in which they were asked for."""
        ...

    def request_of(self, run_id: int) -> dict[str, object]: ...

    def plan_of(self, run_id: int) -> dict[str, object]: ...

    def record_plan(self, run_id: int, plan: Mapping[str, object]) -> None:
        """What every process that works for a run must know of it beside its roots."""
        ...

    def ask(self, run_id: int, wish: Wish) -> bool:
        """Ask a run to pause, to go on ("") or to end. A queued one that is cancelled ends at once. False where there
        is no such run or it has ended."""
        ...

    def wish(self, run_id: int) -> Wish: ...

    def note_progress(self, run_id: int, progress: Mapping[str, int]) -> None:
        """Remember a run's counters, and when one of them last changed."""
        ...

    def add_changes(self, run_id: int, page: int, changes: Mapping[Change, Sequence[str]]) -> None:
        """Remember which documents a run has changed; a page's changes once, however often it is written."""
        ...

    def changes(
        self, run_id: int, change: Change, *, after_page: int = -1, limit: int
    ) -> Sequence[tuple[int, tuple[str, ...]]]:
        """Pages of keys that ended one way, in page order; kept for the newest runs only."""
        ...
