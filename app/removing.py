"""What a run removes at its end: after the adds, under the guard, each file looked at once more (R34).

The candidates that are left on record afterwards are those that were held: the list that `runs approve` lets go.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import count as numbers_from
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from app.assignment import VectorPlan
from app.planning import RootRun, walk_rules
from app.wiring import RunBase
from domain.files import FileCheck, FileStat, Outcome, Page, Reason
from domain.keys import path_below_root
from domain.settings import Settings
from scheduler.removals import judge_removals
from scheduler.walk import WalkReport, walk, walk_files
from store.failure_port import FailureRecord
from store.port import Visibility
from store.run_port import Change, RunRecord
from store.sqlite import SqliteSnapshot
from store.state_port import RemovalCandidate
from store.write_port import RemoveWrite, SkipWrite, WriteGroup

REMOVALS_PER_GROUP = 200
FIRST_CHANGE_NUMBER = 2_000_000_000_000_000  # above the numbers of pages, whichever process has given them
CHANGES_OF_REMOVALS: tuple[Change, ...] = ("removed", "moved")
_NO_STAT = FileStat(0, 0, 0, 0, 0)


class HeldRemovals(Struct, frozen=True):
    """A root whose removals were not applied, and why."""

    root: str
    path: str
    count: int
    documents: int
    cause: str


class RemovalReport(Struct, frozen=True):
    """What became of the candidates of a run."""

    removed: int = 0
    skipped: int = 0  # documents that went because their file can no longer be indexed
    moved: int = 0
    returned: dict[str, int] | None = None  # outcomes of files that were back
    failures: tuple[FailureRecord, ...] = ()  # of such files
    held: tuple[HeldRemovals, ...] = ()

    @property
    def cause(self) -> str:
        return self.held[0].cause if self.held else ""

    def settled(self, counts: dict[str, int]) -> dict[str, int]:
        """The counts of a run with its removals: a moved file is neither added nor removed."""
        total = dict(counts)
        for name, count in (
            (Outcome.REMOVED.value, self.removed - self.moved),
            (Outcome.MOVED.value, self.moved),
            (Outcome.ADDED.value, -self.moved),
            *(self.returned or {}).items(),
        ):
            total[name] = total.get(name, 0) + count
        return {name: count for name, count in total.items() if count}


def settle_removals(
    base: RunBase,
    snapshot: SqliteSnapshot,
    settings: Settings,
    run: RunRecord,
    roots: Sequence[RootRun],
    *,
    allow_mass: bool,
    vectors: VectorPlan | None = None,
) -> RemovalReport:
    """Judge and apply the removals of a run, root by root; candidates are read in pages, never all at once. Between two
    pages the run may stand still, or be ended (RootRun.await_permission)."""
    total = RemovalReport()
    listed = _Listed(run, run.id, _change_numbers(base, run.id))
    for root in {root.scope.prefix: root for root in roots}.values():  # once, in how many parts it was named
        settlement = _Settlement(base, snapshot, settings, listed, root, vectors)
        verdict = judge_removals(
            candidates=base.state.candidate_count(run.id, root.scope.prefix),
            moved=settlement.count_moved(),
            documents_before=root.documents_before,
            files_met=root.tally.met if root.scope.is_full and not root.scope.is_gone else 1,
            walk_ended_well=all(r.report.ended_well for r in roots if r.scope.prefix == root.scope.prefix),
            allow_mass=allow_mass or not root.scope.settings.held_removals,
        )
        if verdict.held:
            record = root.scope.record
            held = HeldRemovals(record.name, record.path, verdict.held, root.documents_before, verdict.cause)
            total = replace(total, held=(*total.held, held))
        if verdict.apply != "nothing":
            total = _sum(total, settlement.apply(only_moved=verdict.apply == "moved"))
        else:  # nobody may approve what could not be looked at
            base.state.drop_candidates_below(run.id, root.scope.prefix)
    return total


def settle_approved(
    base: RunBase, snapshot: SqliteSnapshot, settings: Settings, run: RunRecord, roots: Sequence[RootRun], held_by: int
) -> RemovalReport:
    """Remove what the run `held_by` has held and somebody has approved, in the roots of this run; each file is looked
    at again, and one that is back stays. Nothing goes from a root that shows no file, or cannot be read."""
    total = RemovalReport()
    listed = _Listed(run, held_by, _change_numbers(base, run.id))
    for root in {root.scope.prefix: root for root in roots}.values():
        candidates = base.state.candidate_count(held_by, root.scope.prefix)
        if candidates:
            settlement = _Settlement(base, snapshot, settings, listed, root, None)
            cause = settlement.unfit_cause()
            record = root.scope.record
            if cause:
                held = HeldRemovals(record.name, record.path, candidates, root.documents_before, cause)
                total = replace(total, held=(*total.held, held))
            else:
                total = _sum(total, settlement.apply_approved())
    return total


def _change_numbers(base: RunBase, run_id: int) -> Iterator[int]:
    """Numbers for what is removed, above those of every page; none that a process before has given."""
    number = FIRST_CHANGE_NUMBER - 1
    for change in CHANGES_OF_REMOVALS:
        while pages := base.state.changes(run_id, change, after_page=number, limit=100):
            number = pages[-1][0]
    return numbers_from(number + 1)


class _Listed(NamedTuple):
    """The run that removes, and the one on whose list it is."""

    run: RunRecord
    held_by: int
    change_numbers: Iterator[int]


class _Settlement:
    """The candidates of one root on their way out. A new document stands for one moved one at most."""

    def __init__(
        self,
        base: RunBase,
        snapshot: SqliteSnapshot,
        settings: Settings,
        listed: _Listed,
        root: RootRun,
        vectors: VectorPlan | None,
    ) -> None:
        self._base = base
        self._snapshot = snapshot
        self._settings = settings
        self._run = listed.run
        self._root = root
        self._vectors = vectors
        self._numbers = listed.change_numbers
        self._list = listed.held_by
        self._path = Path(root.scope.record.path)

    def unfit_cause(self) -> str:
        """Why nothing may go from this root now, as judge_removals names it; "" where it shows files."""
        look = WalkReport()
        is_empty = next(walk(walk_rules(self._settings, self._root.scope), look), None) is None
        return "source_unreadable" if look.problems else "source_empty" if is_empty else ""

    def apply_approved(self) -> RemovalReport:
        done = RemovalReport()
        for page, _ in self._pages():
            self._root.await_permission()
            wanted = [
                candidate for candidate in self._root.heeding(iter(page)) if candidate.reason is not Reason.FORGOTTEN
            ]
            back = self._back_again([candidate.key for candidate in wanted])
            going = [candidate for candidate in wanted if candidate.key not in back]
            removed, skipped, _gone = self._remove(going, set())
            done = _sum(done, RemovalReport(removed, skipped))
        return done

    def count_moved(self) -> int:
        return sum(len(moved) for _, moved in self._pages())

    def apply(self, *, only_moved: bool) -> RemovalReport:
        done = RemovalReport()
        for page, moved in self._pages():
            self._root.await_permission()
            wanted = [
                candidate
                for candidate in self._root.heeding(iter(page))
                if not only_moved or candidate.key in moved or candidate.reason is Reason.FORGOTTEN
            ]
            back = self._back_again([c.key for c in wanted if c.reason is Reason.GONE])
            going = [candidate for candidate in wanted if candidate.key not in back]
            removed, skipped, gone = self._remove(going, moved)
            done = _sum(done, RemovalReport(removed, skipped, len(gone & moved)))
            if back:
                done = _sum(done, self._check_again(sorted(back)))
            self._base.state.drop_candidates(self._run.id, [candidate.key for candidate in wanted])
        return done

    def _pages(self) -> Iterator[tuple[Sequence[RemovalCandidate], set[str]]]:
        """The candidates in key order, each page with those of its keys that have moved."""
        after, used = "", set[int]()
        while True:
            page = self._base.state.candidates(
                self._list, self._root.scope.prefix, after=after, limit=REMOVALS_PER_GROUP
            )
            if not page:
                return
            after = page[-1].key
            keys = [candidate.key for candidate in page if candidate.reason is Reason.GONE]
            yield page, self._snapshot.moved_keys(keys, self._run.generation, used)

    def _remove(self, going: Sequence[RemovalCandidate], moved: set[str]) -> tuple[int, int, set[str]]:
        """Remove documents in one group; how many went, how many left a reason behind, and their keys. `moved` are
        keys of which the content is at another path now."""
        if not going:
            return 0, 0, set()
        now_ns = time.time_ns()
        writes = [_remove(candidate, self._root.scope.record.name, self._run, now_ns) for candidate in going]
        answers = [
            answer
            for answer in self._base.writer.apply(WriteGroup(removes=writes)).results
            if answer.verdict == "applied"
        ]
        removed = [answer for answer in answers if answer.outcome is Outcome.REMOVED]
        keys = [answer.key for answer in answers]
        if keys:
            gone_for_good = [key for key in keys if key not in moved]
            changes: dict[Change, list[str]] = {"removed": gone_for_good, "moved": sorted(moved.intersection(keys))}
            self._base.state.add_changes(self._run.id, next(self._numbers), changes)
        return len(removed), len(answers) - len(removed), set(keys)

    def _back_again(self, keys: Sequence[str]) -> frozenset[str]:
        """Those that the walk did not meet and would meet now; all of them where that cannot be seen."""
        look = WalkReport()
        rules = walk_rules(self._settings, self._root.scope)
        met = list(walk_files(rules, look, tuple(path_below_root(key) for key in keys)))
        return frozenset(keys) if look.problems else frozenset(file.key for file in met if file.skip is None)

    def _check_again(self, keys: Sequence[str]) -> RemovalReport:
        """A path that is back is checked, not deleted."""
        from workers.checking import CheckRules, check_page  # what cuts texts: no other removal needs it
        from workers.embedding import linked
        from workers.writer.groups import apply_halving, group_of, page_outcome

        settings, run, name = self._settings, self._run, self._root.scope.record.name
        rules = CheckRules(self._path, run.generation, settings.max_file_bytes, settings.substring_index)
        known = {key: self._snapshot.document(key, visibility=Visibility.everything()) for key in keys}
        files = tuple(FileCheck(key, stored.file_hash if stored else b"") for key, stored in known.items())
        page = check_page(Page(0, name, files), run.id, rules)
        if self._vectors is not None:
            page = linked(page, self._vectors.target, self._vectors.beside)
        outcome = page_outcome(page, apply_halving(self._base.writer, group_of([page])))
        self._base.state.finish_pages(run.id, [outcome])
        return RemovalReport(returned=outcome.counts, failures=outcome.failures)


def _remove(candidate: RemovalCandidate, root: str, run: RunRecord, now_ns: int) -> RemoveWrite:
    skip = None
    if candidate.reason not in (Reason.GONE, Reason.FORGOTTEN):
        stat = candidate.stat or _NO_STAT
        skip = SkipWrite(candidate.key, root, candidate.reason, stat, now_ns, now_ns, run.generation)
    return RemoveWrite(candidate.key, now_ns, run.generation, skip)


def _sum(first: RemovalReport, second: RemovalReport) -> RemovalReport:
    return RemovalReport(
        removed=first.removed + second.removed,
        skipped=first.skipped + second.skipped,
        moved=first.moved + second.moved,
        returned=_added(first.returned, second.returned),
        failures=(*first.failures, *second.failures),
        held=(*first.held, *second.held),
    )


def _added(first: dict[str, int] | None, second: dict[str, int] | None) -> dict[str, int] | None:
    total = dict(first or {})
    for name, count in (second or {}).items():
        total[name] = total.get(name, 0) + count
    return total or None
