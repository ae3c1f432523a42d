"""The plan of a run over its roots: what `index` queues and `index --dry-run` counts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec import Struct, field

from app.progress import RunProgress
from app.roots import RootScope
from domain.files import Page, Reason
from domain.keys import printable
from domain.settings import Settings
from scheduler.ignore_rules import scope_of_root
from scheduler.plan import PAGE_CAP_BYTES, PlanPolicy, PlanTally, into_pages, plan
from scheduler.walk import WalkReport, WalkRules, walk, walk_files
from store.failure_port import FailureRecord
from store.port import Snapshot, StoredFile
from store.state_port import RemovalCandidate

Item = TypeVar("Item")


class Heeding(Protocol):
    """The same items, for as long as the run may go on."""

    def __call__(self, items: Iterator[Item], /) -> Iterator[Item]: ...


FailuresBelow = Callable[[str], Iterable[FailureRecord]]
"""Recorded failures below a prefix, in key order; read only as far as files need work."""


def unheeded(items: Iterator[Item], /) -> Iterator[Item]:
    """Of a run that nobody can ask anything."""
    return items


def no_failures(prefix: str) -> Iterable[FailureRecord]:
    """Nobody knows of any: every file that needs work is checked."""
    return ()


class RootRun(Struct):
    """One root on its way through a run."""

    scope: RootScope
    documents_before: int = 0
    tally: PlanTally = field(default_factory=PlanTally)
    report: WalkReport = field(default_factory=WalkReport)
    heeding: Heeding = unheeded  # what is walked, and what is removed, goes through it: it may end the run
    await_permission: Callable[[], None] = lambda: None  # between two groups of removals: the run may stand still
    failures: FailuresBelow = no_failures


def plan_roots(
    settings: Settings,
    policy: PlanPolicy,
    roots: Sequence[RootRun],
    snapshot: Snapshot,
    progress: RunProgress,
    *,
    bytes_per_page: int = PAGE_CAP_BYTES,
    first_number: int = 1,
) -> Iterator[Page | RemovalCandidate]:
    """The pages of all roots, one after the other, numbered through."""
    number = first_number
    progress.tallies = [root.tally for root in roots]
    for root in roots:
        for item in plan_root(settings, policy, root, snapshot, number, bytes_per_page=bytes_per_page):
            if isinstance(item, Page):
                number = item.number + 1
            yield item
    progress.is_plan_complete = True


def plan_root(
    settings: Settings,
    policy: PlanPolicy,
    root: RootRun,
    snapshot: Snapshot,
    first_number: int,
    *,
    bytes_per_page: int = PAGE_CAP_BYTES,
) -> Iterator[Page | RemovalCandidate]:
    scope = root.scope
    rules = walk_rules(settings, scope)
    stored: Iterator[StoredFile] = snapshot.stored_files(scope.prefix + scope.start)
    if scope.files:
        walked = walk_files(rules, root.report, scope.files)
        if not scope.is_full:
            keys = [scope.prefix + printable(relative) for relative in sorted(scope.files)]
            if scope.is_gone:  # it may have been a folder
                keys += [f"{key}/" for key in keys]
            stored = chain.from_iterable(snapshot.stored_files(key) for key in keys)
    else:
        walked = walk(rules, root.report, start=scope.start)
    pages = into_pages(
        plan(root.heeding(walked), stored, policy, root.tally, root.failures(scope.prefix)),
        scope.record.name,
        files_per_page=settings.queue.files_per_job,
        bytes_per_page=bytes_per_page,
        first_number=first_number,
    )
    removes_absent = scope.is_full or scope.is_gone  # a path below a root removes nothing but itself, gone (R29)
    is_empty = True
    for item in pages:
        is_empty = False
        is_absent = isinstance(item, RemovalCandidate) and item.reason in (Reason.GONE, Reason.FORGOTTEN)
        if removes_absent or not is_absent:
            yield item
    if scope.is_gone and is_empty:
        root.report.notes.append(f"{scope.prefix}{printable(scope.files[0])}: no such path, here or in the index")


def walk_rules(settings: Settings, scope: RootScope) -> WalkRules:
    root = scope.settings
    return WalkRules(
        root=Path(scope.record.path),
        prefix=scope.prefix,
        extensions=root.extensions,
        exclude_dirs=frozenset(root.exclude_dirs),
        home=settings.home,
        scope=scope_of_root(root.include, root.exclude),
    )


def merged_tally(roots: Sequence[RootRun]) -> PlanTally:
    total = PlanTally()
    for root in roots:
        tally = root.tally
        total.met += tally.met
        total.unchanged += tally.unchanged
        total.skipped += tally.skipped
        total.to_check += tally.to_check
        total.bytes_to_check += tally.bytes_to_check
        total.candidates += tally.candidates
        total.warned += tally.warned
        total.failed += tally.failed
        for kind, left in tally.not_tried.items():
            known = total.not_tried.get(kind)
            total.not_tried[kind] = left if known is None else known.plus(left)
        for reason, count in tally.skips.items():
            total.skips[reason] = total.skips.get(reason, 0) + count
            total.first_skips.setdefault(reason, tally.first_skips[reason])
    return total
