"""Whether somebody should look: a base's state in one word, for cron and monitoring."""

from collections.abc import Iterator
from enum import IntEnum

from msgspec import Struct

from app.overdue import overdue_since_ns
from app.status import BaseStatus
from app.wiring import ReadableBase
from domain.errors import KnowledgeError
from domain.settings import Settings
from domain.status import Standing


class Level(IntEnum):
    """The exit status of `knowledge status --exit-code`, as Nagios and its relatives read it."""

    OK = 0
    WARNING = 1
    CRITICAL = 2


class Finding(Struct, frozen=True):
    """One thing that is not as it should be: a stable code, and what it is about (a count, or a name)."""

    level: Level
    code: str
    count: int = 0
    name: str = ""


class Verdict(Struct, frozen=True):
    findings: tuple[Finding, ...]  # the worst first

    @property
    def level(self) -> Level:
        return max((finding.level for finding in self.findings), default=Level.OK)


_STANDINGS = {
    Standing.EMPTY: Finding(Level.WARNING, "corpus_empty"),
    Standing.INCOMPLETE: Finding(Level.WARNING, "index_incomplete"),
    Standing.OUTDATED: Finding(Level.WARNING, "index_outdated"),
    Standing.INCONSISTENT: Finding(Level.CRITICAL, "index_inconsistent"),
}
_ENDINGS = {
    "failed": Finding(Level.CRITICAL, "run_failed"),
    "partial": Finding(Level.WARNING, "run_partial"),
    "needs_approval": Finding(Level.WARNING, "removals_held"),
    "interrupted": Finding(Level.WARNING, "run_interrupted"),
}


def verdict_of(status: BaseStatus, overdue: tuple[str, ...]) -> Verdict:
    """`overdue`: names of schedules."""
    return Verdict(tuple(sorted(_findings(status, overdue), key=lambda finding: -finding.level)))


def verdict_of_error(error: KnowledgeError) -> Verdict:
    """What keeps a status from being given is critical, whatever it is."""
    return Verdict((Finding(Level.CRITICAL, error.code),))


def overdue_schedules(base: ReadableBase, settings: Settings, now_ns: int) -> tuple[str, ...]:
    if not settings.schedules:
        return ()
    told = base.state.told_states()
    seen = {subject.removeprefix("seen:"): known.told_ns for subject, known in told.items() if subject[:5] == "seen:"}
    overdue = overdue_since_ns(settings, base.state.schedules(), seen, now_ns)
    return tuple(name for name, since_ns in overdue.items() if since_ns is not None)


def _findings(status: BaseStatus, overdue: tuple[str, ...]) -> Iterator[Finding]:
    if status.standing in _STANDINGS and not (status.standing is Standing.INCOMPLETE and status.running):
        yield _STANDINGS[status.standing]
    if status.last_run is not None and status.last_run.state in _ENDINGS:
        ending = _ENDINGS[status.last_run.state]
        held = status.last_run.cause == "removals_held"
        yield Finding(ending.level, "removals_held") if held else ending
    if status.failed:
        yield Finding(Level.WARNING, "files_failed", status.failed)
    if status.vectors.pending_documents and not status.running:
        yield Finding(Level.WARNING, "vectors_pending", status.vectors.pending_documents)
    yield from (Finding(Level.WARNING, "root_missing", name=root.name) for root in status.roots if not root.is_there)
    yield from (Finding(Level.WARNING, "schedule_overdue", name=schedule) for schedule in overdue)
