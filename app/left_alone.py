"""Files that failed before, as a run meets them: which it leaves alone, and which failures it lets go at its end."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from app.planning import FailuresBelow, RootRun
from domain.files import FileFailure, FileStat, Reason
from domain.keys import path_below_root, root_of
from domain.retry_rules import is_waiting
from scheduler.plan import PlanTally
from scheduler.walk import file_stat
from store.failure_port import FailureLedgerPort, FailureRecord
from store.port import Snapshot
from store.run_port import RunLedgerPort
from store.state_port import RootRecord

_PAGE = 1000  # failures that are read at a time


def failures_below(ledger: FailureLedgerPort) -> FailuresBelow:
    """What a plan reads beside the walk: some at a time, and none before a file needs work."""

    def below(prefix: str) -> Iterator[FailureRecord]:
        after = ""
        while page := ledger.failures_page(prefix, after=after, limit=_PAGE):
            yield from page
            after = page[-1].key

    return below


def refused_for_now(ledger: FailureLedgerPort, snapshot: Snapshot, now_ns: int) -> tuple[FailureRecord, ...]:
    """Stored documents whose texts the embeddings server refused before a run that began at `now_ns`, and which that
    one does not send."""
    return tuple(
        failure
        for failure in failures_below(ledger)("")
        if failure.reason == Reason.EMBEDDING_REFUSED
        and failure.last_ns < now_ns
        and (failure.standing != "open" or is_waiting(failure.next_ns, now_ns))
        and (trace := snapshot.file_trace(failure.key)) is not None
        and trace.vector_state == "pending"
    )


def count_refused(tally: PlanTally, refused: Sequence[FailureRecord], roots: Sequence[RootRun]) -> None:
    """Add such documents to what a run has not tried: their files are unchanged, and nothing else tells of them."""
    for failure in refused:
        is_counted = any(failure.key in root.tally.kept_failures for root in roots)
        if failure.standing != "ignored" and not is_counted:
            tally.leave(failure)


def forget_unmet(ledger: FailureLedgerPort, roots: Sequence[RootRun], before_ns: int) -> None:
    """Let go of the failures of files that a run over whole roots has not met: they are gone, or indexed meanwhile.
    Where a folder could not be read, or too many were left alone to remember, none is."""
    for root in roots:
        if root.report.ended_well and not root.tally.is_kept_cut:
            ledger.forget_old_failures([root.scope.prefix], before_ns, kept=root.tally.kept_failures)


def follows_a_death(ledger: RunLedgerPort) -> bool:
    """Whether the run before this one ended with its process, so that a file that it read may be to blame: this one
    reads in a process of its own, where that can be found out."""
    return any(run.state == "interrupted" and run.cause != "interrupted" for run in ledger.runs(2)[1:])


def given_up_records(failures: Sequence[FileFailure], roots: Sequence[RootRecord], now_ns: int) -> list[FailureRecord]:
    """What is recorded of files that ended whoever had them, with what stat says of each now."""
    folders = {root.name: Path(root.path) for root in roots}
    return [
        FailureRecord(
            failure.key, failure.reason.value, failure.detail, 1, now_ns, now_ns,
            stat=failure.stat or _stat(folders[root_of(failure.key)] / path_below_root(failure.key)),
        )
        for failure in failures
    ]  # fmt: skip


def _stat(path: Path) -> FileStat | None:
    try:
        return file_stat(path.lstat())
    except (OSError, ValueError):
        return None
