"""Builds what gives pages their vectors, in whichever process checks them."""

from collections.abc import AsyncIterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from pathlib import Path

from app.assignment import VectorPlan
from domain.telemetry import SILENCE, Telemetry
from embedding.port import Expected
from scheduler.queue.client import PageQueue
from workers.embedding import AT_ONCE, PageEmbedder, VectorTarget, Waits
from workers.hold_up import HoldUpVoice


@asynccontextmanager
async def page_embedder(
    plan: VectorPlan | None,
    database: Path,
    queue: PageQueue,
    executor: Executor,
    *,
    share: float,
    telemetry: Telemetry = SILENCE,
    is_patient: bool = False,
) -> AsyncIterator[PageEmbedder | None]:
    """The embedder of a run's pages; None without a vector tier. `share`: of the server's limits, for this process.
    `is_patient`: a server that is away at the run's beginning is waited for as one that goes away later.

    Raises ConfigurationError where the key's variable is not set or the local model is not installed.
    """
    if plan is None:
        yield None
        return
    from app.config import embeddings_key
    from app.tracing import process_tracer
    from embedding.build import make_embedder
    from store.sqlite import SqliteStore

    voice = HoldUpVoice(queue.say_hold_up)
    embedder = make_embedder(
        plan.settings,
        embeddings_key(plan.settings),
        expected=Expected.of(plan.target.identity),
        waiting=voice.tell,
        share=share,
        telemetry=telemetry,
        tracer=process_tracer(),
    )
    store = SqliteStore(database, base_id=None)
    target = VectorTarget(plan.target, plan.beside, plan.settings.commit == "words_first", plan.verified)
    waits = Waits(plan.settings.outage_limit_s, voice.tell) if is_patient else AT_ONCE
    pages = PageEmbedder(target, embedder, store.reader, executor, queue, waits)
    try:
        yield pages
    finally:
        await pages.aclose()
        await voice.aclose()
        store.close()
