"""Events of runs over HTTP: told when something happens, ended with the run, let go with the client and the service."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from starlette.types import ASGIApp

from app.config import Loaded
from app.discovery import Located
from app.runs import ShownRun
from domain.layout import BaseLayout
from domain.settings import Settings
from server.http import event_stream, events
from server.http.parts import STREAMS_AT_A_TIME, HttpParts
from server.http.service import http_app, http_parts
from store.lock import WriteLock
from store.run_port import RunRecord
from store.state import SqliteStateStore
from tests.support.bases import build_base, settings_of
from tests.support.event_streams import followed


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return build_base(tmp_path)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr("server.http.events.AT_MOST_OLD_S", 0.0)
    monkeypatch.setattr("server.http.run_endpoints_health.HEALTH_AT_MOST_OLD_S", 0.0)


@contextmanager
def service(settings: Settings) -> Iterator[tuple[ASGIApp, HttpParts]]:
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as parts:
        yield http_app(parts), parts


@contextmanager
def state_of(settings: Settings) -> Iterator[SqliteStateStore]:
    with closing(SqliteStateStore(BaseLayout(settings.home).state)) as state:
        yield state


def queued(settings: Settings) -> int:
    with state_of(settings) as state:
        run = state.queue_run(RunRecord(0, 0, "index", "api", (), "queued", 1, None, {}), {"kind": "index"})
        return run.id


def begin(settings: Settings, run_id: int) -> None:
    with state_of(settings) as state:
        state.start_run(run_id, floor_generation=0)


async def test_a_run_is_followed_to_its_end(settings: Settings) -> None:
    run_id = queued(settings)
    with service(settings) as (app, _), WriteLock(BaseLayout(settings.home).scheduler_lock, purpose="test"):
        async with followed(app, f"/v1/runs/{run_id}/events") as (stream, task):
            name, first = await stream.next()
            assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
            assert (name, first["health"], first["runs"][0]["state"]) == ("", None, "queued")
            assert stream.text.startswith("retry: ")
            assert "content-length" not in stream.headers
            begin(settings, run_id)
            assert (await stream.next()).data["runs"][0]["state"] == "walking"
            with state_of(settings) as state:
                state.set_run_state(run_id, "checking", "")
                state.note_progress(run_id, {"checked": 3, "found": 9})
            while (seen := (await stream.next()).data["runs"][0])["state"] == "walking" or not seen["progress"]:
                pass
            assert (seen["progress"]["checked"], "3 files read of 9" in seen["words"]) == (3, True)
            with state_of(settings) as state:
                state.end_run(run_id, "done", {"added": 3}, "")
            assert (await stream.next()).data["runs"][0]["exit_status"] == 0
            assert await stream.next() == ("end", {"run": run_id, "state": "done"})
            await asyncio.wait_for(task, 10)


async def test_a_run_that_has_ended_is_told_once(settings: Settings) -> None:
    with service(settings) as (app, _):
        async with followed(app, "/v1/runs/1/events") as (stream, task):
            await asyncio.wait_for(task, 10)
            assert [(await stream.next()).name, (await stream.next()).name] == ["", "end"]
        async with followed(app, "/v1/runs/99/events") as (stream, task):
            await asyncio.wait_for(task, 10)
            assert (stream.status, stream.headers["content-type"]) == (404, "application/problem+json")


async def test_nothing_is_told_where_nothing_happens(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only heartbeats, which no client sees as events; Last-Event-ID is taken and does nothing."""
    monkeypatch.setattr(event_stream, "BEAT_EVERY_S", 0.1)
    with service(settings) as (app, _):
        async with followed(app, "/v1/events", **{"last-event-id": "7"}) as (stream, _):
            first = await stream.next()
            assert [run["id"] for run in first.data["runs"]] == [1]
            assert first.data["health"]["index"]["documents"] == 5
            assert first.data["health"]["queue"] is None
            await stream.until(lambda text: text.count(": goes on\n\n") >= 3)
            assert stream.text.count("data: ") == 1
            run_id = queued(settings)
            assert [run["id"] for run in (await stream.next()).data["runs"]] == [run_id, 1]


async def test_a_client_that_leaves_is_let_go_and_so_is_everybody_when_the_service_ends(settings: Settings) -> None:
    with service(settings) as (app, parts):
        async with followed(app, "/v1/events") as (stream, task):
            await stream.next()
            assert parts.streams.borrowed_tokens == 1
            stream.leaves.set()
            await asyncio.wait_for(task, 10)
        assert parts.streams.borrowed_tokens == 0
        async with followed(app, "/v1/events") as (stream, task):
            await stream.next()
            parts.closing.set()
            await asyncio.wait_for(task, 10)
            assert stream.text.endswith("\n\n")
        assert parts.streams.borrowed_tokens == 0


async def test_a_client_that_does_not_read_ends_with_the_service(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "CLOSES_WITHIN_S", 0.05)
    with service(settings) as (app, parts):
        async with followed(app, "/v1/events") as (stream, task):
            await stream.next()
            never = asyncio.Event()

            async def stuck(_message: object) -> None:
                await never.wait()

            monkeypatch.setattr(stream, "send", stuck)
            queued(settings)
            parts.closing.set()
            await asyncio.wait_for(task, 10)


async def test_streams_have_a_bound(settings: Settings) -> None:
    with service(settings) as (app, parts):
        for _ in range(STREAMS_AT_A_TIME):
            parts.streams.acquire_on_behalf_of_nowait(object())
        async with followed(app, "/v1/events") as (stream, task):
            await asyncio.wait_for(task, 10)
            assert (stream.status, stream.headers["retry-after"]) == (503, "10")
            assert '"code":"too_many_streams"' in stream.text


async def test_an_index_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """S0-56: nothing is told as if it were known."""
    with service(settings_of(tmp_path / "home")) as (app, _):
        async with followed(app, "/v1/events") as (stream, _):
            data = (await stream.next()).data
            assert (data["runs"], data["health"]["index"], data["health"]["failures"]) == ([], None, None)
            built = build_base(tmp_path)
            assert built.home == tmp_path / "home"
            while not (data := (await stream.next()).data)["runs"] or not data["health"]["index"]:
                pass
            assert data["health"]["index"]["documents"] in range(6)


async def test_many_who_follow_cost_one_look(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    real = events._newest

    def counted(parts: HttpParts) -> list[ShownRun]:
        nonlocal looks
        looks += 1
        return real(parts)

    monkeypatch.setattr("server.http.events._newest", counted)
    monkeypatch.setattr("server.http.events.AT_MOST_OLD_S", 3600.0)
    with service(settings) as (app, parts):
        async with followed(app, "/v1/events") as (one, _), followed(app, "/v1/events") as (two, _):
            assert (await one.next()).data == (await two.next()).data
            assert (looks, parts.readers.borrowed_tokens) == (1, 0)
