"""How a run ends: what it hands over when its effects are in knowledge.db, and what state.db is told of it then."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from app.left_alone import forget_unmet
from app.outcomes import IndexReport, Outcomes
from app.planning import RootRun
from app.present_unreadable import unreadable_hint, unreadable_message
from domain.errors import CancelledRunError, InterruptedRunError, KnowledgeError
from store.run_port import RunRecord
from store.state import SqliteStateStore

ROOT_UNREADABLE = "root_unreadable"  # the cause of a run that could read no file of a root


class EndedRun(Struct, frozen=True):
    """A run whose effects are in knowledge.db, and whose end is not in state.db yet."""

    report: IndexReport
    cause: str  # why its state is what it is: a stable code, "" = nothing to explain
    roots: tuple[RootRun, ...]

    @property
    def told(self) -> tuple[str, str]:
        """What its cause comes to, in a sentence, and what mends it; empty where the cause says everything."""
        report = self.report
        if self.cause == ROOT_UNREADABLE:
            return unreadable_message(report.unreadable[0]), unreadable_hint(report.unreadable[0])
        if report.stopped_by is not None and self.cause == report.stopped_by.code:
            return report.stopped_by.message, report.stopped_by.hint
        return "", ""


@contextmanager
def recorded_failure(
    state: SqliteStateStore, run: RunRecord, outcomes: Outcomes, *, waits_for: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Record a run that fails, is cancelled or is interrupted as ended so. Raises InterruptedRunError for the last.

    What a run of a service waits for (`waits_for`) leaves it open: it is gone on with.
    """
    try:
        yield
    except KeyboardInterrupt:
        state.end_run(run.id, "interrupted", outcomes.counts, "interrupted")
        raise InterruptedRunError(
            "interrupted; what was committed stays", hint="run the same command to do the rest"
        ) from None
    except CancelledRunError as error:
        state.end_run(run.id, "cancelled", outcomes.counts, error.code)
        raise
    except waits_for:
        raise
    except Exception as error:
        state.end_run(run.id, "failed", outcomes.counts, *failure_words(error))
        raise


def failure_words(error: Exception) -> tuple[str, str, str]:
    """Code, message and hint of what has ended a run; of what is no error of ours no words, which may be a
    document's."""
    if isinstance(error, KnowledgeError):
        return error.code, error.message, error.hint
    return KnowledgeError.code, f"{type(error).__name__}, a fault of this program", "the log of the service says where"


def record_end(state: SqliteStateStore, ended: EndedRun) -> None:
    """Let state.db say that a run is over, and which roots are in the index as a whole since then."""
    report = ended.report
    run = report.run
    if run.full:
        roots = [root for root in ended.roots if root.scope.is_full]
        state.mark_full([root.scope.record.name for root in roots if root.report.ended_well], run.generation)
        forget_unmet(state, roots, run.started_ns)
    state.end_run(run.id, report.state, report.counts, ended.cause, *ended.told)
