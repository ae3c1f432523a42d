"""What a run does about vectors where some are wanted. Most indexes are of words alone: their runs start sooner, since
what makes vectors is imported only when it is needed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.assignment import VectorPlan
from app.outcomes import Outcomes, VectorReport
from app.wiring import RunBase
from domain.settings import Settings
from scheduler.plan import PAGE_CAP_BYTES
from store.run_port import RunRecord
from store.sqlite import SqliteSnapshot

if TYPE_CHECKING:
    from app.index_request import IndexRequest


def vector_plan_of(
    base: RunBase,
    settings: Settings,
    request: "IndexRequest",
    told: Callable[[str, str], None],
    heed: Callable[[], None] = lambda: None,
) -> VectorPlan | None:
    """What the run embeds for; refuses before anything is written. `told` hears of host and model before the first
    text goes there; `heed` may end the wait for the server."""
    wanted = settings.embeddings
    if wanted is None or request.approve:
        return None
    from app.vector_run import prepare_vectors

    return prepare_vectors(
        base.writer,
        wanted,
        has_documents=base.writer.has_documents(),
        reindex=request.reindex,
        re_embed=request.re_embed,
        announce=told,
        heed=heed,
    )


def bytes_per_page_of(plan: VectorPlan | None) -> int:
    """How much text one page may carry."""
    if plan is None:
        return PAGE_CAP_BYTES
    from app.vector_pages import bytes_per_page

    return bytes_per_page(plan.target.identity.dimension)


def settled_vectors(
    base: RunBase, snapshot: SqliteSnapshot, plan: VectorPlan | None, run: RunRecord, outcomes: Outcomes
) -> VectorReport | None:
    """The end of a run; see app.vector_run.settle_vectors."""
    if plan is None:
        return None
    from app.vector_run import settle_vectors

    return settle_vectors(base, snapshot, plan, run, outcomes)
