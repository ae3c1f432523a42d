"""A service of real processes, operated over HTTP: a run is begun, followed, paused, let go on, ended."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from httpx import ASGITransport, AsyncClient
from starlette.types import ASGIApp

from app.config import Loaded
from app.discovery import Located
from server.http.service import http_app, http_parts
from tests.support.audit import audit
from tests.support.command_line import write_files
from tests.support.event_streams import Stream, followed
from tests.support.http_service import ORIGIN
from tests.support.scratch import scratch_directory
from tests.support.service import Service, many_files, service

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def it() -> Iterator[Service]:
    # more pages than are in hand at a time: a pause has something to hold
    with scratch_directory() as place, service(place, files=many_files(60, words=20), files_per_job=1) as started:
        started.start_all()
        assert started.ended(started.submit()).state == "done"
        yield started
        assert audit(started.layout.database) == []


@asynccontextmanager
async def asked(it: Service) -> AsyncIterator[tuple[ASGIApp, AsyncClient]]:
    located = Located("named", it.settings.config_path, it.layout.home)
    with http_parts(Loaded(located, it.settings)) as parts:
        app = http_app(parts)
        async with AsyncClient(transport=ASGITransport(app), base_url=ORIGIN) as client:
            yield app, client


async def state_of(stream: Stream, *wanted: str) -> str:
    """The first of the wanted states that the run is told to be in."""
    while (event := await stream.next()).name or event.data["runs"][0]["state"] not in wanted:
        assert event.name != "end", stream.text[-2000:]
    return str(event.data["runs"][0]["state"])


async def test_a_run_is_begun_and_followed_to_its_end(it: Service) -> None:
    write_files(it.folder / "docs", {f"new-{number}.md": f"# New {number}\n" for number in range(5)})
    async with asked(it) as (app, client):
        begun = await client.post("/v1/runs", json={"roots": ["docs"]})
        assert begun.status_code == 202
        path = begun.headers["location"]
        async with followed(app, f"{path}/events") as (stream, task):
            await stream.until(lambda text: "event: end" in text)
            await task
            *_, last, end = [await stream.next() for _ in range(stream.text.count("data: "))]
            run = last.data["runs"][0]
            assert (run["state"], run["exit_status"], run["counts"]["added"]) == ("done", 0, 5)
            assert (end.name, end.data) == ("end", {"run": run["id"], "state": "done"})
        listed = (await client.get(f"{path}/changes", params={"kind": "added"})).json()
        assert sorted(listed["paths"]) == [f"docs/new-{number}.md" for number in range(5)]
        assert (await client.get("/v1/health")).json()["scheduler"] is not None


@contextmanager
def stopped_worker(it: Service) -> Iterator[None]:
    """So that a run is sure to be there when it is asked."""
    worker = it.of("worker")[0]
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(worker.pid, signal.SIGCONT)


async def test_a_run_stands_still_and_goes_on(it: Service) -> None:
    """C-08: a pause holds what is not in hand; what was written stays."""
    async with asked(it) as (app, client):
        with stopped_worker(it):
            begun = await client.post("/v1/runs", json={"rehash": True})
            path = begun.headers["location"]
            async with followed(app, f"{path}/events") as (stream, _):
                await state_of(stream, "checking", "waiting")
                paused = await client.post(f"{path}/pause", json={})
                assert (paused.status_code, paused.json()["requested"]) == (202, "pause")
        async with followed(app, f"{path}/events") as (stream, task):
            await state_of(stream, "paused")
            listed = (await client.get("/v1/runs", params={"limit": 1})).json()
            assert listed["runs"][0]["state"] == "paused"
            assert (await client.post(f"{path}/resume", json={})).status_code == 202
            await state_of(stream, "done")
            await task
        assert (await client.post(f"{path}/pause", json={})).status_code == 409


async def test_a_run_is_ended_and_done_again(it: Service) -> None:
    async with asked(it) as (app, client):
        with stopped_worker(it):
            begun = await client.post("/v1/runs", json={"rehash": True})
            path = begun.headers["location"]
            async with followed(app, f"{path}/events") as (stream, task):
                await state_of(stream, "checking", "waiting")
                assert (await client.post(f"{path}/cancel", json={})).status_code == 202
                await state_of(stream, "cancelled")
                await task
        run = (await client.get(path)).json()
        assert (run["state"], run["exit_status"], run["trigger"]) == ("cancelled", 130, "api")
        again = await client.post(f"{path}/retry", json={})
        assert again.status_code == 202
    assert it.ended(again.json()["id"]).state == "done"


async def test_streams_end_whole_with_the_service(it: Service) -> None:
    """Over a socket: an answer that was cut off would end in an error, and so would a stream of one that is killed."""
    serve = it.start("serve", with_health=True)
    it.wait_until(lambda: '"listens"' in serve.said())
    async with AsyncClient(base_url=f"http://127.0.0.1:{serve.health_port}", timeout=30) as client:
        begun = await client.post("/v1/runs", json={"kind": "verify"})
        assert begun.status_code == 202, begun.text
        async with client.stream("GET", f"{begun.headers['location']}/events") as told:
            text = "".join([part async for part in told.aiter_text()])
        assert text.endswith('event: end\ndata: {"run":' + str(begun.json()["id"]) + ',"state":"done"}\n\n')
        async with client.stream("GET", "/v1/events") as told:
            parts = told.aiter_text()
            assert "retry: " in await anext(parts)
            serve.process.terminate()
            assert [part async for part in parts if "event: end" in part] == []
    assert serve.terminate() == 0
