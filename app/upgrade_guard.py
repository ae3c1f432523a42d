"""Which documents of the old index the new one lacks, and whether an upgrade may switch all the same (R34, S0-32)."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from app.planning import RootRun
from app.removing import HeldRemovals
from app.upgrade_report import MissingDocuments
from domain.keys import root_of
from scheduler.removals import judge_removals
from store.connection import open_reader, translated
from store.upgrade_source import document_keys, missing_keys

NAMED = 5  # missing documents that are named


class Comparison(NamedTuple):
    missing: MissingDocuments
    held: tuple[HeldRemovals, ...]


def compare(
    old: Path, new: Path, roots: Sequence[RootRun], *, old_documents: int | None, allow_mass: bool
) -> Comparison:
    """Both indexes by the keys of their documents, of which the old one has `old_documents`, as far as they can be
    read: how many cannot is told, and holds nothing."""
    documents: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    first: list[str] = []
    with closing(open_reader(new)) as connection, translated(new):
        for keys in document_keys(old):
            gone = missing_keys(connection, keys)
            documents.update(map(root_of, keys))
            missing.update(map(root_of, gone))
            first = sorted([*first, *gone])[:NAMED]
    held = () if allow_mass else tuple(_held(roots, documents, missing))
    not_compared = None if old_documents is None else max(0, old_documents - documents.total())
    return Comparison(MissingDocuments(missing.total(), tuple(first), not_compared), held)


def _held(roots: Sequence[RootRun], documents: Counter[str], missing: Counter[str]) -> list[HeldRemovals]:
    """The roots of which too much is missing, by the rule of every run (R34)."""
    by_name = {root.scope.record.name: root for root in roots}
    held: list[HeldRemovals] = []
    for name in sorted(missing):
        root = by_name.get(name)
        verdict = judge_removals(
            candidates=missing[name],
            moved=0,
            documents_before=documents[name],
            files_met=1 if root is None else root.tally.met,
            walk_ended_well=root is None or root.report.ended_well,
            allow_mass=root is not None and not root.scope.settings.held_removals,
        )
        if verdict.held:
            path = "" if root is None else root.scope.record.path
            held.append(HeldRemovals(name, path, verdict.held, documents[name], verdict.cause))
    return held
