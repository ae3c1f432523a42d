"""`knowledge sources --coverage`: of the files that lie in the roots now, how many are indexed, and why others are not.

The folders are walked as a run would walk them, and compared with what is stored; no file is opened.
"""

import time
from collections.abc import Iterator
from typing import cast

from msgspec import Struct, field

from app.planning import RootRun, plan_root
from app.roots import scopes_of_run
from app.wiring import ReadableBase
from domain.errors import UsageError
from domain.files import FileCheck, Page, Reason
from domain.settings import Settings
from scheduler.plan import PlanPolicy
from store.port import Snapshot, StoredFile
from store.state_port import RemovalCandidate


class RootCoverage(Struct, frozen=True):
    """Files of one root with an indexed extension: `seen` is the sum of `indexed`, `skipped`, `failed` and `new`."""

    root: str
    seen: int = 0
    indexed: int = 0  # the stored text may be older than the file, see `changed`
    skipped: dict[Reason, int] = field(default_factory=dict)
    failed: int = 0  # not in the index, since the last check failed
    new: int = 0  # no run has read them
    changed: int = 0  # of `indexed`: would be read again
    stale: int = 0  # of `indexed`: whose last check failed
    leaving: int = 0  # besides, documents whose files are gone or are skipped now: the next run removes them
    problems: tuple[tuple[str, str], ...] = ()  # folders that could not be read: nobody knows what lies in them

    @property
    def skipped_files(self) -> int:
        return sum(self.skipped.values())


def coverage(base: ReadableBase, settings: Settings) -> dict[str, RootCoverage]:
    """By root; roots that are no longer in the configuration are not walked and not named."""
    try:
        scopes = scopes_of_run(settings, base.state.roots(), ())
    except UsageError:  # there is no root yet
        return {}
    failed = frozenset(failure.key for failure in base.state.failures())
    policy = PlanPolicy(
        now_ns=time.time_ns(),
        max_file_bytes=settings.max_file_bytes,
        trust_stat=settings.change_detection == "stat",
    )
    snapshot = base.store.reader()
    return {scope.record.name: _of_root(settings, policy, RootRun(scope), snapshot, failed) for scope in scopes}


class _Stored:
    """What a plan asks of a store; remembers why files were skipped that it may want to be read again."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.reasons: dict[str, Reason] = {}

    def stored_files(self, prefix: str) -> Iterator[StoredFile]:
        for file in self._snapshot.stored_files(prefix):
            if file.reason:
                self.reasons[file.key] = Reason(file.reason)
            yield file


def _of_root(
    settings: Settings, policy: PlanPolicy, root: RootRun, snapshot: Snapshot, failed: frozenset[str]
) -> RootCoverage:
    stored = _Stored(snapshot)
    changed = stale = leaving = failed_files = new = 0
    skipped: dict[Reason, int] = {}
    for item in plan_root(settings, policy, root, cast(Snapshot, stored), 1):
        if isinstance(item, RemovalCandidate):
            leaving += item.reason is not Reason.FORGOTTEN
            continue
        for file in _files(item, skipped, stored):
            if file.stored_hash:
                changed += 1
                stale += file.key in failed
            elif file.key in failed:
                failed_files += 1
            else:
                new += 1
    for reason, number in root.tally.skips.items():
        skipped[reason] = skipped.get(reason, 0) + number
    return RootCoverage(
        root=root.scope.record.name,
        seen=root.tally.met,
        indexed=root.tally.unchanged + changed,
        skipped=skipped,
        failed=failed_files,
        new=new,
        changed=changed,
        stale=stale,
        leaving=0 if root.report.problems else leaving,  # absence means nothing then
        problems=tuple(root.report.problems),
    )


def _files(page: Page, skipped: dict[Reason, int], stored: _Stored) -> Iterator[FileCheck]:
    """Files of a page but for those that were skipped when they were last read: they are counted as such."""
    for file in page.files:
        reason = stored.reasons.get(file.key)
        if reason is None or file.stored_hash:
            yield file
        else:
            skipped[reason] = skipped.get(reason, 0) + 1
