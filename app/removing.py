"""What a run removes at its end: after the adds, under the guard, each file looked at once more (R34)."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.wiring import WritableBase
from domain.files import FileCheck, FileStat, Outcome, Page, Reason
from domain.keys import path_below_root
from domain.settings import Settings
from scheduler.removals import judge_removals
from store.port import RemovalCandidate, RemoveWrite, RunRecord, SkipWrite, WriteGroup
from store.sqlite import SqliteSnapshot
from workers.checking import CheckRules, check_page
from workers.writer.groups import apply_halving, group_of, page_outcome

if TYPE_CHECKING:
    from app.planning import RootRun

REMOVALS_PER_GROUP = 200
_NO_STAT = FileStat(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class HeldRemovals:
    """A root whose removals were not applied, and why."""

    root: str
    path: str
    count: int
    documents: int
    cause: str


@dataclass(frozen=True, slots=True)
class RemovalReport:
    """What became of the candidates of a run."""

    removed: int = 0
    skipped: int = 0  # documents that went because their file can no longer be indexed
    moved: int = 0
    returned: dict[str, int] | None = None  # outcomes of files that were back
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
    base: WritableBase,
    snapshot: SqliteSnapshot,
    settings: Settings,
    run: RunRecord,
    roots: "Sequence[RootRun]",
    *,
    allow_mass: bool,
) -> RemovalReport:
    """Judge and apply the removals of a run, root by root."""
    candidates = base.state.candidates(run.id)
    report = RemovalReport()
    for root in roots:
        prefix = root.scope.prefix
        own = [candidate for candidate in candidates if candidate.key.startswith(prefix)]
        if not own and not (root.documents_before and not root.report.ended_well):
            continue
        moved = snapshot.moved_keys([c.key for c in own if c.reason is Reason.GONE], run.generation)
        verdict = judge_removals(
            own,
            documents_before=root.documents_before,
            files_met=root.tally.met if root.scope.is_full else 1,
            moved=frozenset(moved),
            walk_ended_well=root.report.ended_well,
            allow_mass=allow_mass,
        )
        held = report.held
        if verdict.held:
            held = (
                *held,
                HeldRemovals(
                    root.scope.record.name,
                    root.scope.record.path,
                    verdict.held,
                    root.documents_before,
                    verdict.cause,
                ),
            )
        done = _apply(base, settings, run, root, verdict.apply)
        report = RemovalReport(
            removed=report.removed + done.removed,
            skipped=report.skipped + done.skipped,
            moved=report.moved + len(moved.keys() & {candidate.key for candidate in verdict.apply}),
            returned=_added(report.returned, done.returned),
            held=held,
        )
    return report


def _apply(
    base: WritableBase,
    settings: Settings,
    run: RunRecord,
    root: "RootRun",
    candidates: Sequence[RemovalCandidate],
) -> RemovalReport:
    removed = skipped = 0
    returned: dict[str, int] = {}
    root_path = Path(root.scope.record.path)
    for batch in _batches(candidates):
        back = [c for c in batch if c.reason is Reason.GONE and _is_back(root_path, c.key)]
        going = [candidate for candidate in batch if candidate not in back]
        if going:
            now_ns = time.time_ns()
            writes = [_remove(candidate, root.scope.record.name, run, now_ns) for candidate in going]
            for answer in base.writer.apply(WriteGroup(removes=writes)).results:
                if answer.verdict == "applied":
                    removed += answer.outcome is Outcome.REMOVED
                    skipped += answer.outcome is Outcome.SKIPPED
        if back:
            returned = _added(returned, _check_again(base, settings, run, root, back)) or {}
    return RemovalReport(removed=removed, skipped=skipped, returned=returned)


def _batches(candidates: Sequence[RemovalCandidate]) -> Iterator[Sequence[RemovalCandidate]]:
    for start in range(0, len(candidates), REMOVALS_PER_GROUP):
        yield candidates[start : start + REMOVALS_PER_GROUP]


def _is_back(root: Path, key: str) -> bool:
    """Whether a file that the walk did not meet is there now."""
    path = root / path_below_root(key)
    return path.is_file() and not path.is_symlink()


def _remove(candidate: RemovalCandidate, root: str, run: RunRecord, now_ns: int) -> RemoveWrite:
    skip = None
    if candidate.reason is not Reason.GONE:
        stat = candidate.stat or _NO_STAT
        skip = SkipWrite(candidate.key, root, candidate.reason, stat, now_ns, now_ns, run.generation)
    return RemoveWrite(candidate.key, now_ns, run.generation, skip)


def _check_again(
    base: WritableBase, settings: Settings, run: RunRecord, root: "RootRun", back: Sequence[RemovalCandidate]
) -> dict[str, int]:
    """A path that is back is checked, not deleted."""
    rules = CheckRules(Path(root.scope.record.path), run.generation, settings.max_file_bytes, settings.substring_index)
    page = check_page(Page(0, root.scope.record.name, tuple(FileCheck(c.key) for c in back)), run.id, rules)
    outcome = page_outcome(page, apply_halving(base.writer, group_of([page])))
    base.state.finish_pages(run.id, [outcome])
    return outcome.counts


def _added(first: dict[str, int] | None, second: dict[str, int] | None) -> dict[str, int] | None:
    total = dict(first or {})
    for name, count in (second or {}).items():
        total[name] = total.get(name, 0) + count
    return total or None
