"""What is answered about runs has the fields that the OpenAPI document names, and no other."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from starlette.testclient import TestClient

from app.approving import HELD
from app.config import Loaded
from app.discovery import Located
from domain.files import Reason
from domain.layout import BaseLayout
from domain.settings import ScheduleSettings
from server.http.answer_shapes_runs import ChangeLine, EventShape, HealthShape, HeldRemovalsShape, RunShape
from server.http.events import _seen_all, _seen_run
from server.http.openapi import openapi_json
from server.http.run_endpoints import ENDPOINTS
from server.http.service import http_parts
from store.failure_port import FailureRecord
from store.lock import WriteLock
from store.run_port import RunRecord
from store.state import SqliteStateStore
from store.state_port import PageOutcome, RemovalCandidate
from tests.support.bases import build_base
from tests.support.http_service import http_client

SHAPES = {(endpoint.method, endpoint.path): endpoint.returns for endpoint in ENDPOINTS}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """Over an index with two runs, of which the second holds removals and has left a failure."""
    settings = build_base(tmp_path, schedules=(ScheduleSettings("nightly", "0 3 * * *"),))
    with closing(SqliteStateStore(BaseLayout(settings.home).state)) as state:
        run = state.begin_run(RunRecord(0, 0, "index", "cli", ("docs",), "walking", 1, None, {}), floor_generation=0)
        failure = FailureRecord("docs/a.md", Reason.UNREADABLE.value, "", 1, 1, 1)
        candidates = (RemovalCandidate("docs/b.md", Reason.GONE),)
        changes = {"added": ["docs/a.md"]}
        state.finish_pages(run.id, [PageOutcome(1, {}, (failure,), (), candidates, changes)])  # type: ignore[arg-type]
        state.note_progress(run.id, {"checked": 1})
        state.end_run(run.id, "partial", {"failed": 1}, HELD)
    with (
        WriteLock(BaseLayout(settings.home).scheduler_lock, purpose="knowledge scheduler"),
        http_client(settings) as asked,
    ):
        yield asked


def fits(value: Any, shape: type[Struct] | None) -> None:
    assert shape is not None
    assert msgspec.convert(value, shape) is not None
    needed = {field.encode_name for field in msgspec.structs.fields(shape) if field.required}
    assert needed <= set(value)


def test_every_row_has_a_shape() -> None:
    assert not [path for (_, path), shape in SHAPES.items() if shape is None]
    assert len(openapi_json(ENDPOINTS, "", "c")["paths"]) == len({path for _, path in SHAPES})


def test_every_path_and_field_is_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference-http-runs.md").read_text(encoding="utf-8")
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace("{run:int}", "{run}")
        wish = path.rpartition("/")[2]
        assert f"`{endpoint.method} {path}`" in text or (wish in ("resume", "cancel") and f"`{wish}`" in text), path
        fields = endpoint.body or endpoint.query
        assert not [name for name in (fields.__struct_fields__ if fields else ()) if f"`{name}`" not in text], path
    assert not [
        name for name in (*HeldRemovalsShape.__struct_fields__, *HealthShape.__struct_fields__) if name not in text
    ]


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/runs", ""), ("/v1/runs/{run:int}", ""), ("/v1/runs/{run:int}/changes", "?kind=added"),
        ("/v1/runs/{run:int}/held", ""), ("/v1/failures", ""), ("/v1/schedules", ""), ("/v1/health", ""),
        ("/v1/doctor", ""), ("/v1/coverage", ""),
    ],
)  # fmt: skip
def test_what_is_read(client: TestClient, path: str, asked: str) -> None:
    answer = client.get(path.replace("{run:int}", "2") + asked)
    assert answer.status_code == 200
    fits(answer.json(), SHAPES["GET", path])


def test_lines(client: TestClient) -> None:
    lines = client.get("/v1/runs/2/changes.ndjson").text.splitlines()
    assert len(lines) == 3
    for line in lines:
        fits(json.loads(line), ChangeLine)


def test_what_is_asked(client: TestClient) -> None:
    begun = client.post("/v1/runs", json={})
    fits(begun.json(), SHAPES["POST", "/v1/runs"])
    fits(client.post("/v1/runs/3/pause", json={}).json(), RunShape)
    fits(client.post("/v1/failures/retry", json={"all": True}).json(), SHAPES["POST", "/v1/failures/retry"])
    ignored = client.post("/v1/failures/ignore", json={"paths": ["docs"]})
    fits(ignored.json(), SHAPES["POST", "/v1/failures/ignore"])


async def test_events(tmp_path: Path) -> None:
    settings = build_base(tmp_path)
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as parts:
        fits((await _seen_all(parts)).data, EventShape)
        fits((await _seen_run(parts, 1)).data, EventShape)
