"""Whether knowledge.db can be what the runs in state.db have left (S2-21)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from domain.files import Outcome
from domain.status import SearchStatus
from retrieval.answer import SearchAnswer
from store.port import StoreIdentity
from store.state_port import RootRecord, RunRecord

if TYPE_CHECKING:
    from app.wiring import ReadableBase

_WITHOUT_DOCUMENTS = (SearchStatus.INDEX_EMPTY, SearchStatus.INDEX_INCOMPLETE)
_STORED = (Outcome.ADDED, Outcome.UPDATED, Outcome.MOVED, Outcome.UNCHANGED, Outcome.EMBEDDED)
_EMPTYING = ("reset", "rm")


def is_blank_under_runs(identity: StoreIdentity, documents: int, runs: Iterable[RunRecord]) -> bool:
    """Whether an index that no full run has finished and that holds nothing should hold what a run on record, the
    newest first, has stored: it was lost and made anew. After a reset, or where all was removed, it should not."""
    if documents or identity.complete_ns is not None:
        return False
    for run in runs:
        if run.kind in _EMPTYING:
            return False
        if any(run.counts.get(outcome.value) for outcome in _STORED):
            return True
        if run.counts.get(Outcome.REMOVED.value):
            return False
    return False


def is_older_than_recorded(generation: int, roots: Iterable[RootRecord]) -> bool:
    """Whether a full run on record has a generation that knowledge.db has never heard of, though each full run writes
    its own into both files: an older copy was put in its place by hand. A reset raises the generation."""
    return generation < max((root.last_full_generation for root in roots), default=0)


def told_consistently(found: SearchAnswer, base: "ReadableBase") -> SearchAnswer:
    """An answer from a blank index that should not be blank does not read as an ordinary empty one."""
    if found.results or found.status not in _WITHOUT_DOCUMENTS or base.store.reader().has_documents():
        return found
    if not is_blank_under_runs(found.identity, 0, base.state.runs()):
        return found
    return replace(found, status=SearchStatus.INDEX_INCONSISTENT)
