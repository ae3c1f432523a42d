"""The seam of state.db: runs, roots, pages and failures as values, and who keeps them (see store.port)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from domain.files import FileStat, Reason

RunState = Literal["walking", "waiting", "done", "partial", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class RootRecord:
    """A root as it was fixed at its first run."""

    name: str
    path: str  # absolute
    single_files: tuple[str, ...] = ()  # posix paths below it: only these belong to the base; () = the folder
    last_full_generation: int = 0


@dataclass(frozen=True, slots=True)
class RunRecord:
    id: int
    generation: int
    kind: str
    trigger: str
    roots: tuple[str, ...]
    state: str
    started_ns: int
    ended_ns: int | None
    counts: dict[str, int]
    cause: str = ""
    full: bool = False


@dataclass(frozen=True, slots=True)
class FailureRecord:
    key: str
    reason: str
    detail: str
    tries: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True)
class RemovalCandidate:
    """A stored document whose file was not met, or can no longer be indexed."""

    key: str
    reason: Reason
    stat: FileStat | None = None


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """What is recorded of a page once its group is committed (R35)."""

    page: int
    counts: dict[str, int] = field(default_factory=dict)
    failures: tuple[FailureRecord, ...] = ()
    recovered: tuple[str, ...] = ()  # keys whose earlier failure is over
    candidates: tuple[RemovalCandidate, ...] = ()


class StateStore(Protocol):
    """Authority over runs, roots and failures: state.db. Synchronous, each call one short transaction."""

    def base_id(self) -> str: ...

    def roots(self) -> Sequence[RootRecord]: ...

    def add_root(self, root: RootRecord) -> None: ...

    def remove_root(self, name: str) -> None: ...

    def begin_run(self, run: RunRecord, *, floor_generation: int) -> RunRecord:
        """Record a run and issue its generation: one above every number known (R25), in one transaction."""
        ...

    def end_run(self, run_id: int, state: RunState, counts: dict[str, int], cause: str) -> None: ...

    def set_run_state(self, run_id: int, state: RunState, cause: str) -> None:
        """Say what a run that goes on is at, and why."""
        ...

    def runs(self, limit: int = 20) -> Sequence[RunRecord]: ...

    def plan_pages(self, run_id: int, pages: Sequence[tuple[int, bytes]]) -> None: ...

    def finish_pages(self, run_id: int, outcomes: Sequence[PageOutcome]) -> None: ...

    def failures(self, prefix: str = "") -> Sequence[FailureRecord]: ...

    def forget_failures(self, keys: Sequence[str]) -> None: ...

    def add_candidates(self, run_id: int, candidates: Sequence[RemovalCandidate]) -> None: ...

    def candidate_count(self, run_id: int, prefix: str) -> int:
        """How many stored documents below a prefix are candidates of a run; forgotten skips do not count."""
        ...

    def candidates(self, run_id: int, prefix: str, *, after: str = "", limit: int) -> Sequence[RemovalCandidate]:
        """A page of a run's candidates below a prefix, in key order."""
        ...

    def close(self) -> None: ...
