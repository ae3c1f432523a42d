"""The seam of state.db: runs, roots, pages and failures as values, and who keeps them (see store.port)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from domain.files import FileStat, Reason
from store.failure_port import FailureLedgerPort, FailureRecord
from store.run_port import Change, RunLedgerPort
from store.schedule_port import ScheduleLedgerPort


class RootRecord(Struct, frozen=True):
    """A root as it was fixed at its first run."""

    name: str
    path: str  # absolute
    single_files: tuple[str, ...] = ()  # posix paths below it: only these belong to the base; () = the folder
    last_full_generation: int = 0


class RemovalCandidate(Struct, frozen=True):
    """A stored document whose file was not met, or can no longer be indexed."""

    key: str
    reason: Reason
    stat: FileStat | None = None


class PageOutcome(Struct, frozen=True):
    """What is recorded of a page once its group is committed (R35)."""

    page: int
    counts: dict[str, int] = field(default_factory=dict)
    failures: tuple[FailureRecord, ...] = ()
    recovered: tuple[str, ...] = ()  # keys whose earlier failure is over
    candidates: tuple[RemovalCandidate, ...] = ()
    changes: Mapping[Change, Sequence[str]] = field(
        default_factory=dict
    )  # the keys of documents, by what became of them


class StateStore(RunLedgerPort, FailureLedgerPort, ScheduleLedgerPort, Protocol):
    """Authority over runs, roots and failures: state.db. Synchronous, each call one short transaction."""

    def base_id(self) -> str: ...

    def roots(self) -> Sequence[RootRecord]: ...

    def add_root(self, root: RootRecord) -> None: ...

    def remove_root(self, name: str) -> None: ...

    def plan_pages(self, run_id: int, pages: Sequence[tuple[int, bytes]]) -> None: ...

    def done_pages(self, run_id: int, numbers: Sequence[int]) -> Mapping[int, dict[str, int]]:
        """Which of these pages are in the store, with their counts by outcome."""
        ...

    def finish_pages(self, run_id: int, outcomes: Sequence[PageOutcome]) -> None: ...

    def add_candidates(self, run_id: int, candidates: Sequence[RemovalCandidate]) -> None: ...

    def candidate_count(self, run_id: int, prefix: str) -> int:
        """How many stored documents below a prefix are candidates of a run; forgotten skips do not count."""
        ...

    def candidates(self, run_id: int, prefix: str, *, after: str = "", limit: int) -> Sequence[RemovalCandidate]:
        """A page of a run's candidates below a prefix, in key order."""
        ...

    def drop_candidates(self, run_id: int, keys: Sequence[str]) -> None:
        """What was removed, or is there again, is no candidate any more: those that are left are held."""
        ...

    def drop_candidates_below(self, run_id: int, prefix: str) -> None: ...

    def close(self) -> None: ...
