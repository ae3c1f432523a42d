"""Numbers are told where the work is done: requests for embeddings, pages that are read, written and dispatched."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from domain.files import FileCheck, Page
from domain.settings import EmbeddingsSettings
from domain.telemetry import Telemetry
from embedding.build import make_embedder
from embedding.client import EmbeddingClient
from embedding.failures import Rejected, Unreachable
from embedding.openai_embedder import OpenAIEmbedder
from embedding.outage import Patience
from embedding.port import Embedder
from scheduler.queue.names import QueueNames
from scheduler.queue.payloads import encode_check
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.queues import Dispatching
from tests.support.telemetry import Recorder
from tests.support.trees import make_tree
from tests.support.writing import FakeStore, finished, running, writer_over
from workers.checking import FinishedPage
from workers.context import CONTEXT_KEY, WorkerContext, WorkerHost
from workers.jobs import check_page

DIMENSION = 16
TEXTS = [f"The board met {number} times." for number in range(8)]
QUICK = Patience(interval_s=0.02, longest_s=0.02)
REQUESTS = "knowledge_embedding_requests_total"
MakeEmbedder = Callable[..., Embedder]


@pytest.fixture
async def make() -> AsyncIterator[MakeEmbedder]:
    async with AsyncExitStack() as stack:

        def made(server: EmbeddingServer, telemetry: Telemetry, **more: Any) -> Embedder:
            settings = EmbeddingsSettings(
                base_url=server.url, model="asked", **({"timeout_s": 10.0, "outage_limit_s": 20.0} | more)
            )
            client = EmbeddingClient(settings, None, patience=QUICK)
            client.telemetry = telemetry
            embedder = OpenAIEmbedder(client, settings, server=client.host, telemetry=telemetry)
            stack.push_async_callback(embedder.aclose)
            return embedder

        yield made


async def test_requests_are_counted_with_their_size_and_time(make: MakeEmbedder) -> None:
    told = Recorder()
    with embedding_server(dimension=DIMENSION) as server:
        await make(server, told, batch=4).embed_documents(TEXTS)
    assert told.counts == {(REQUESTS, "ok"): 2}
    assert told.observed["knowledge_embedding_batch_texts"] == [4, 4]
    assert len(told.observed["knowledge_embedding_request_seconds"]) == 2
    assert all(0 < seconds < 60 for seconds in told.observed["knowledge_embedding_request_seconds"])


async def test_a_batch_that_is_refused_is_a_rejection_and_halvings(make: MakeEmbedder) -> None:
    """One refused text among 8 costs 3 halvings down to it; it is asked about once more before it is given up."""
    told = Recorder()
    with embedding_server(dimension=DIMENSION, poison="poison") as server:
        texts = [*TEXTS[:-1], "a text with poison in it"]
        results = await make(server, told, batch=8, concurrency=1).embed_documents(texts)
    assert [bool(result.vector) for result in results] == [True] * 7 + [False]
    assert told.counts["knowledge_embedding_halvings_total",] == 3
    assert told.counts[REQUESTS, "rejected"] >= 4
    assert told.counts[REQUESTS, "ok"] >= 3
    assert told.counts["knowledge_embedding_retries_total",] == 0


async def test_a_server_that_goes_away_makes_retries(make: MakeEmbedder) -> None:
    told = Recorder()
    with embedding_server(dimension=DIMENSION) as server:
        server.take_down("refuse", for_s=0.2)
        results = await make(server, told).embed_documents(TEXTS)
    assert all(result.vector for result in results)
    failures = told.counts[REQUESTS, "connection"]
    assert failures >= 1
    assert told.counts["knowledge_embedding_retries_total",] == failures
    assert told.counts[REQUESTS, "ok"] == 1


@pytest.mark.parametrize(
    ("behaviour", "outcome", "error"),
    [
        ({"status": 503}, "busy", Unreachable),
        ({"status": 500}, "rejected", Rejected),
        ({"trick": "hang"}, "timeout", Unreachable),
        ({"trick": "half_body"}, "connection", Unreachable),
    ],
)
async def test_kinds_of_failure(behaviour: dict[str, Any], outcome: str, error: type[Exception]) -> None:
    told = Recorder()
    with embedding_server(dimension=DIMENSION, **behaviour) as server:
        settings = EmbeddingsSettings(base_url=server.url, model="asked", timeout_s=0.5)
        client = EmbeddingClient(settings, None, patience=QUICK)
        client.telemetry = told
        try:
            with pytest.raises(error):
                await client.request_once(TEXTS)
        finally:
            await client.aclose()
    assert told.counts == {(REQUESTS, outcome): 1}


async def test_a_request_that_is_given_up_is_cancelled() -> None:
    told = Recorder()
    with embedding_server(dimension=DIMENSION, delay_s=30.0) as server:
        client = EmbeddingClient(EmbeddingsSettings(base_url=server.url, model="asked"), None)
        client.telemetry = told
        asking = asyncio.create_task(client.request_once(TEXTS))
        await asyncio.to_thread(server_has_seen_one, server)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await client.aclose()
    assert told.counts == {(REQUESTS, "cancelled"): 1}


def server_has_seen_one(server: EmbeddingServer) -> None:
    from tests.support.waiting import eventually

    eventually(lambda: bool(server.texts_seen))


async def test_the_local_model_is_measured_too() -> None:
    told = Recorder()
    embedder = make_embedder(EmbeddingsSettings(provider="local"), None, telemetry=told)
    await embedder.embed_documents([*TEXTS, *(f"{text} Again." for text in TEXTS * 8)])
    await embedder.aclose()
    assert told.counts[REQUESTS, "ok"] == len(told.observed["knowledge_embedding_batch_texts"])
    assert sum(told.observed["knowledge_embedding_batch_texts"]) == 2 * len(TEXTS)


async def test_a_page_is_told_of_once_not_a_chunk(tmp_path: Path) -> None:
    root = make_tree(
        tmp_path / "docs",
        {"a.md": "# A\n\nwords\n\n## B\n\n" + "more words " * 400, "empty.md": "", "bad.md": b"\xff\xfe\xff"},
    )
    told = Recorder()
    pages: list[FinishedPage] = []

    class Sink:
        async def commit(self, page: FinishedPage, *, attempt: int) -> None:
            pages.append(page)

    def stop(error: Exception) -> None:
        raise error

    names = QueueNames("base")
    with ThreadPoolExecutor(1) as executor:
        context = WorkerContext(names, 1, 1, {"docs": root}, 10**6, "auto", Sink(), executor, stop, telemetry=told)
        files = tuple(FileCheck(f"docs/{name}") for name in ("a.md", "bad.md", "empty.md", "gone.md"))
        raw = encode_check("base", 1, 1, 1, Page(1, "docs", files))
        await check_page({CONTEXT_KEY: WorkerHost.of_one_run(context)}, raw)
    (page,) = pages
    assert told.counts["knowledge_pages_checked_total",] == 1
    checked = {labels[0]: number for (name, *labels), number in told.counts.items() if "files_checked" in name}
    assert checked == {"document": 1, "unchanged": 0, "skipped": 2, "failed": 1}
    assert told.counts["knowledge_chunks_cut_total",] == len(page.documents[0].chunks) > 1
    assert len(told.observed["knowledge_page_check_seconds"]) == 1


async def test_a_group_is_told_with_its_size_and_how_long_its_pages_waited() -> None:
    told = Recorder()
    async with writer_over(FakeStore(), told) as it:
        pages = [finished(number, [f"docs/{number}", f"docs/{number}b"]) for number in range(3)]
        answers = [asyncio.create_task(it.writer.submit(page)) for page in pages]
        await asyncio.sleep(0.05)
        async with running(it.writer):
            await asyncio.gather(*answers)
    assert told.counts == {("knowledge_write_commits_total",): 1}
    assert told.observed["knowledge_write_group_pages"] == [3]
    assert told.observed["knowledge_write_group_documents"] == [6]
    assert told.observed["knowledge_write_group_bytes"] == [sum(page.text_bytes for page in pages)]
    assert len(told.observed["knowledge_write_lock_hold_seconds"]) == 1
    waits = told.observed["knowledge_write_wait_seconds"]
    assert len(waits) == 3
    assert min(waits) >= 0.04


async def test_a_page_is_late_from_its_first_queueing_on() -> None:
    """A page that is queued twice counts once, from the first time."""
    told = Recorder()
    it = Dispatching(telemetry=told)
    page = Page(1, "docs", (FileCheck("docs/a"),))
    dispatching = asyncio.create_task(it.dispatcher.dispatch(iter([page])))
    await it.queue.begin()
    await asyncio.sleep(0.05)
    await it.dispatcher.send_again()
    it.commit(page)
    it.commit(page)
    await dispatching
    assert told.counts == {("knowledge_pages_done_total",): 1}
    (late_s,) = told.observed["knowledge_page_latency_seconds"]
    assert late_s >= 0.04
