"""How a run ends: what it hands over when its effects are in knowledge.db, and what state.db is told of it then."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.left_alone import forget_unmet
from app.outcomes import IndexReport, Outcomes
from app.planning import RootRun
from domain.errors import CancelledRunError, InterruptedRunError, KnowledgeError
from store.run_port import RunRecord
from store.state import SqliteStateStore


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run whose effects are in knowledge.db, and whose end is not in state.db yet."""

    report: IndexReport
    cause: str  # why its state is what it is: a stable code, "" = nothing to explain
    roots: tuple[RootRun, ...]


@contextmanager
def recorded_failure(state: SqliteStateStore, run: RunRecord, outcomes: Outcomes) -> Iterator[None]:
    """Record a run that fails, is cancelled or is interrupted as ended so. Raises InterruptedRunError for the last."""
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
    except Exception as error:
        code = error.code if isinstance(error, KnowledgeError) else KnowledgeError.code
        state.end_run(run.id, "failed", outcomes.counts, code)
        raise


def record_end(state: SqliteStateStore, ended: EndedRun) -> None:
    """Let state.db say that a run is over, and which roots are in the index as a whole since then."""
    report = ended.report
    run = report.run
    if run.full:
        roots = [root for root in ended.roots if root.scope.is_full]
        state.mark_full([root.scope.record.name for root in roots if root.report.ended_well], run.generation)
        forget_unmet(state, roots, run.started_ns)
    state.end_run(run.id, report.state, report.counts, ended.cause)
