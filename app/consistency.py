"""Whether knowledge.db can be what the runs in state.db have left, and so what the index as a whole is (S2-21).

Where both are asked, state.db comes first: a run that ends meanwhile makes the index newer than what was read of the
record, which is no fault; the other way round it would seem older.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from msgspec.structs import replace

from domain.errors import KnowledgeError
from domain.files import Outcome
from domain.layout import BaseLayout
from domain.settings import Settings
from domain.status import Absence, MatchStatus, SearchStatus, Standing
from retrieval.answer import SearchAnswer
from store.files import lstat_or_none
from store.port import StoreIdentity
from store.run_port import RunRecord
from store.state_port import RootRecord

if TYPE_CHECKING:
    from app.wiring import ReadableBase
    from retrieval.match_answer import MatchAnswer
    from retrieval.vocabulary import WordsAnswer

_STORED = (Outcome.ADDED, Outcome.UPDATED, Outcome.MOVED, Outcome.UNCHANGED, Outcome.EMBEDDED)
_EMPTYING = ("reset", "rm")
_SEARCH_STATUS = {
    Standing.INCONSISTENT: SearchStatus.INDEX_INCONSISTENT,
    Standing.OUTDATED: SearchStatus.INDEX_OUTDATED,
}
_MATCH_STATUS = {
    Standing.INCONSISTENT: MatchStatus.INDEX_INCONSISTENT,
    Standing.OUTDATED: MatchStatus.INDEX_OUTDATED,
}


def is_blank_under_runs(identity: StoreIdentity, documents: int, runs: Iterable[RunRecord]) -> bool:
    """Whether an index that no full run has finished and that holds nothing should hold what a run on record, the
    newest first, has stored: it was lost and made anew. After a reset, or where all was removed, it should not."""
    if documents or identity.complete_ns is not None:
        return False
    return have_stored(runs)


def have_stored(runs: Iterable[RunRecord]) -> bool:
    """Whether these runs, the newest first, have left documents behind."""
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


def standing_among(
    identity: StoreIdentity, documents: int, runs: Iterable[RunRecord], roots: Iterable[RootRecord]
) -> Standing:
    """What an index with this identity and so many documents (or 0 and 1, for none and some) is beside its record."""
    if is_blank_under_runs(identity, documents, runs):
        return Standing.INCONSISTENT
    if is_older_than_recorded(identity.generation, roots):
        return Standing.OUTDATED
    if identity.complete_ns is None:
        return Standing.INCOMPLETE
    return Standing.COMPLETE if documents else Standing.EMPTY


def standing_of(base: "ReadableBase") -> Standing:
    """What the index as a whole is, now."""
    runs, roots = base.state.runs(), base.state.roots()
    reader = base.store.reader()
    return standing_among(reader.identity(), int(reader.has_documents()), runs, roots)


def absence_of(settings: Settings) -> Absence:
    """Of a base without an index to ask: why there is none, as far as it can be told. Never raises."""
    from store.state import SqliteStateStore
    from store.state_connection import is_record_lost

    layout = BaseLayout(settings.home)
    try:
        state = lstat_or_none(layout.state)
        if is_record_lost(layout.state):
            return Absence.RECORD_LOST
        if state is None:
            return Absence.NEVER_BUILT
        with closing(SqliteStateStore(layout.state, read_only=True)) as record:
            return Absence.LOST if have_stored(record.runs()) else Absence.CUT_SHORT
    except KnowledgeError:
        return Absence.NEVER_BUILT


def told_consistently(found: SearchAnswer, base: "ReadableBase") -> SearchAnswer:
    """An answer from an index that cannot be what the runs have left does not read as an ordinary one."""
    is_blank = not found.results and found.status in (SearchStatus.INDEX_EMPTY, SearchStatus.INDEX_INCOMPLETE)
    if found.status is SearchStatus.QUERY_EMPTY or not _is_suspect(found.identity, base, is_blank=is_blank):
        return found
    return replace(found, status=_SEARCH_STATUS.get(standing_of(base), found.status))


def matched_consistently(found: "MatchAnswer", base: "ReadableBase") -> "MatchAnswer":
    """The same of an enumeration."""
    is_blank = found.status is MatchStatus.CORPUS_EMPTY
    if found.status is MatchStatus.QUERY_EMPTY or not _is_suspect(found.identity, base, is_blank=is_blank):
        return found
    return replace(found, status=_MATCH_STATUS.get(standing_of(base), found.status))


def listed_consistently(found: "WordsAnswer", base: "ReadableBase") -> "WordsAnswer":
    """The same of a vocabulary."""
    if not _is_suspect(found.identity, base, is_blank=not found.has_documents):
        return found
    return found._replace(status=_SEARCH_STATUS.get(standing_of(base), found.status))


def _is_suspect(identity: StoreIdentity, base: "ReadableBase", *, is_blank: bool) -> bool:
    """Cheap, for every answer. The answer's state of the store may be older than the record read now: a suspicion is
    looked into before it is told."""
    roots: Sequence[RootRecord] = base.state.roots()
    return is_blank or is_older_than_recorded(identity.generation, roots)
