"""What an operator asks over HTTP: runs begun, paused, ended, done again, approved; failures tried again or left."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.approving import HELD
from domain.files import Reason
from domain.layout import BaseLayout
from domain.settings import Settings
from server.http.operate_endpoints import ENDPOINTS
from store.failure_port import FailureRecord
from store.lock import WriteLock
from store.run_port import RunRecord
from store.state import SqliteStateStore
from store.state_port import PageOutcome, RemovalCandidate
from tests.support.bases import build_base, settings_of
from tests.support.http_service import http_client


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return build_base(tmp_path)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with http_client(settings) as asked:
        yield asked


@pytest.fixture
def scheduler(settings: Settings) -> Iterator[None]:
    """As if one had the base; it begins nothing."""
    with WriteLock(BaseLayout(settings.home).scheduler_lock, purpose="knowledge scheduler"):
        yield


@contextmanager
def state_of(settings: Settings) -> Iterator[SqliteStateStore]:
    with closing(SqliteStateStore(BaseLayout(settings.home).state)) as state:
        yield state


def asked(client: TestClient, path: str, status: int, body: Any = None, **headers: str) -> Any:
    answer = client.post(path, json={} if body is None else body, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def newest(settings: Settings) -> int:
    with state_of(settings) as state:
        return state.runs(1)[0].id


def test_everything_here_needs_the_scope_operate() -> None:
    assert {(endpoint.method, endpoint.scope) for endpoint in ENDPOINTS} == {("POST", "operate")}


def test_a_run_is_queued_for_the_service(settings: Settings, client: TestClient, scheduler: None) -> None:
    answer = client.post("/v1/runs", json={"roots": ["docs"], "rehash": True})
    run = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/runs/{run['id']}")
    assert (run["kind"], run["trigger"], run["state"], run["roots"]) == ("index", "api", "queued", ["docs"])
    assert (run["awaits_scheduler"], run["exit_status"]) == (False, None)
    with state_of(settings) as state:
        request = state.request_of(run["id"])
    assert (request["roots"], request["rehash"], request["paths"]) == (["docs"], True, [])
    assert asked(client, "/v1/runs", 202, {"kind": "reindex", "re_embed": True})["kind"] == "reindex"
    assert asked(client, "/v1/runs", 202, {"kind": "verify", "deep": True})["kind"] == "verify"
    assert asked(client, "/v1/runs", 202, {"kind": "compact"})["kind"] == "compact"


@pytest.mark.parametrize(
    "body",
    [
        [], "index", {"kind": "rm"}, {"kind": "index", "paths": ["/etc"]}, {"allow_mass_delete": True},
        {"roots": "docs"}, {"roots": ["/etc"]}, {"roots": ["../docs"]}, {"roots": ["docs\0"]}, {"roots": [7]},
        {"roots": ["nope"]}, {"rehash": 1}, {"re_embed": True}, {"deep": True}, {"kind": "verify", "roots": ["docs"]},
        {"kind": "compact", "rehash": True}, {"kind": "reindex", "deep": True}, {"roots": ["x"] * 1001},
    ],
)  # fmt: skip
def test_what_no_run_can_be_asked_is_refused(
    settings: Settings, client: TestClient, scheduler: None, body: Any
) -> None:
    """R11: nothing of the machine outside the roots is named."""
    value = asked(client, "/v1/runs", 400, body)
    assert (value["code"], newest(settings)) == ("usage", 1)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"kind":"index"} {}', b"[" * 60_000, b"null"])
def test_a_body_that_is_no_object_of_json_is_refused(
    settings: Settings, client: TestClient, scheduler: None, content: bytes
) -> None:
    answer = client.post("/v1/runs", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"], newest(settings)) == (400, "usage", 1)


def test_without_a_scheduler_it_is_said_what_to_start(settings: Settings, client: TestClient) -> None:
    for path, body in (("/v1/runs", {}), ("/v1/runs/1/retry", None)):
        value = asked(client, path, 409, body)
        assert (value["code"], value["detail"]) == ("refused", "no scheduler is there to hand a run to")
        assert "`knowledge scheduler`" in value["hint"]
    assert newest(settings) == 1


def test_a_key_begins_a_run_once(settings: Settings, client: TestClient, scheduler: None) -> None:
    key = {"idempotency-key": "5f1c"}
    first = asked(client, "/v1/runs", 202, {"kind": "verify"}, **key)["id"]
    assert asked(client, "/v1/runs", 202, {"kind": "verify", "deep": False}, **key)["id"] == first
    other = asked(client, "/v1/runs", 409, {"kind": "compact"}, **key)
    assert "another request" in other["detail"]
    assert asked(client, "/v1/runs", 202, {"kind": "verify"}, **{"idempotency-key": "5f1d"})["id"] == first + 1
    assert asked(client, "/v1/runs", 202, {"kind": "verify"})["id"] == first + 2
    with state_of(settings) as state:
        state.ask(first, "cancel")
    again = asked(client, "/v1/runs", 200, {"kind": "verify"}, **key)
    assert (again["id"], again["state"]) == (first, "cancelled")
    for unfit in ("", "a" * 201, "caf\xe9"):
        answer = client.post("/v1/runs", json={}, headers=[(b"idempotency-key", unfit.encode("latin-1"))])
        assert answer.status_code == 400


def test_a_refused_run_does_not_use_its_key_up(settings: Settings, client: TestClient) -> None:
    key = {"idempotency-key": "later"}
    asked(client, "/v1/runs", 409, {}, **key)
    with WriteLock(BaseLayout(settings.home).scheduler_lock, purpose="knowledge scheduler"):
        assert asked(client, "/v1/runs", 202, {}, **key)["id"] == 2


def test_one_key_at_the_same_time_begins_one_run(settings: Settings, client: TestClient, scheduler: None) -> None:
    ids: list[int] = []

    def ask() -> None:
        ids.append(asked(client, "/v1/runs", 202, {}, **{"idempotency-key": "twice"})["id"])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (ids, newest(settings)) == ([2] * 6, 2)


def test_a_run_is_asked_and_the_wish_is_on_record(settings: Settings, client: TestClient, scheduler: None) -> None:
    """Nobody waits here for what was asked to be done."""
    run = asked(client, "/v1/runs", 202)["id"]
    with state_of(settings) as state:
        state.start_run(run, floor_generation=0)
    assert asked(client, f"/v1/runs/{run}/pause", 202)["requested"] == "pause"
    assert asked(client, f"/v1/runs/{run}/resume", 202)["requested"] is None
    assert asked(client, f"/v1/runs/{run}/cancel", 202)["requested"] == "cancel"
    with state_of(settings) as state:
        state.end_run(run, "cancelled", {}, "cancelled")
    for wish in ("pause", "resume", "cancel"):
        assert "has ended" in asked(client, f"/v1/runs/{run}/{wish}", 409)["detail"]
        assert asked(client, f"/v1/runs/99/{wish}", 404)["code"] == "not_found"


def test_a_queued_run_ends_at_once(client: TestClient, scheduler: None) -> None:
    run = asked(client, "/v1/runs", 202)["id"]
    ended = asked(client, f"/v1/runs/{run}/cancel", 200)
    assert (ended["state"], ended["exit_status"]) == ("cancelled", 130)


def test_a_verify_cannot_stand_still(settings: Settings, client: TestClient, scheduler: None) -> None:
    run = asked(client, "/v1/runs", 202, {"kind": "verify"})["id"]
    with state_of(settings) as state:
        state.start_run(run, floor_generation=0)
    assert "cannot stand still" in asked(client, f"/v1/runs/{run}/pause", 409)["detail"]


def test_a_run_is_done_again_once_it_has_ended(settings: Settings, client: TestClient, scheduler: None) -> None:
    run = asked(client, "/v1/runs", 202, {"rehash": True})["id"]
    assert "has not ended" in asked(client, f"/v1/runs/{run}/retry", 409)["detail"]
    asked(client, f"/v1/runs/{run}/cancel", 200)
    again = asked(client, f"/v1/runs/{run}/retry", 202)
    assert (again["id"], again["trigger"]) == (run + 1, "api")
    with state_of(settings) as state:
        assert state.request_of(run + 1)["rehash"] is True
    asked(client, "/v1/runs/99/retry", 404)


def test_exactly_the_list_that_was_looked_at_is_approved(
    settings: Settings, client: TestClient, scheduler: None
) -> None:
    """R34: by its digest, which has to be named."""
    with state_of(settings) as state:
        held = state.begin_run(RunRecord(0, 0, "index", "cli", ("docs",), "walking", 1, None, {}), floor_generation=0)
        state.add_candidates(held.id, [RemovalCandidate("docs/a.md", Reason.GONE)])
        state.end_run(held.id, "partial", {}, HELD)
    path = f"/v1/runs/{held.id}/approve"
    digest = client.get(f"/v1/runs/{held.id}/held").json()["digest"]
    for unfit in ({}, {"digest": ""}, {"digest": digest[:11]}, {"digest": digest.upper()}, {"digest": f"{digest}0"}):
        asked(client, path, 400, unfit)
    assert "another one" in asked(client, path, 409, {"digest": "0" * 12})["detail"]
    assert newest(settings) == held.id
    run = asked(client, path, 202, {"digest": digest[:12]})
    with state_of(settings) as state:
        request = state.request_of(run["id"])
    assert (request["approve"], request["digest"], request["roots"]) == (held.id, digest, ["docs"])
    assert "has been asked to let them go" in asked(client, path, 409, {"digest": digest})["detail"]
    asked(client, "/v1/runs/1/approve", 409, {"digest": digest})


def put_failures(settings: Settings, *names: str) -> None:
    with state_of(settings) as state:
        failures = tuple(FailureRecord(f"docs/{name}", Reason.UNREADABLE.value, "", 1, 1, 1) for name in names)
        state.finish_pages(1, [PageOutcome(1, failures=failures)])


def standings(settings: Settings) -> dict[str, str]:
    with state_of(settings) as state:
        return {failure.key: failure.standing for failure in state.failures()}


def test_failures_are_tried_again_by_a_run(settings: Settings, client: TestClient, scheduler: None) -> None:
    put_failures(settings, "a.md", "b.md", "sub/c.md", "gone.md")
    tried = asked(client, "/v1/failures/retry", 202, {"paths": ["docs/sub/", "docs/gone.md"]})
    assert (tried["files"], tried["gone"], tried["run"]["trigger"]) == (1, ["docs/gone.md"], "api")
    with state_of(settings) as state:
        paths = state.request_of(tried["run"]["id"])["paths"]
    assert paths == [str(settings.home.parent / "docs" / "sub" / "c.md")]
    assert asked(client, "/v1/failures/retry", 202, {"reason": Reason.UNREADABLE.value})["files"] == 3
    with state_of(settings) as state:
        state.ignore_failures(["docs/a.md"])
    assert asked(client, "/v1/failures/retry", 202, {"all": True})["files"] == 2
    assert "docs/gone.md" not in standings(settings)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400), ({"all": True, "paths": ["docs/a.md"]}, 400), ({"reason": "bad"}, 400), ({"all": "yes"}, 400),
        ({"all": False}, 400), ({"paths": ["docs/b.md"]}, 404), ({"paths": ["/etc/passwd"]}, 404),
        ({"paths": ["docs/../../etc/passwd"]}, 404), ({"paths": [""]}, 404), ({"paths": ["x"] * 1001}, 400),
    ],
)  # fmt: skip
def test_what_is_no_failure_is_not_tried(
    settings: Settings, client: TestClient, scheduler: None, body: Any, status: int
) -> None:
    put_failures(settings, "a.md")
    asked(client, "/v1/failures/retry", status, body)
    assert newest(settings) == 1


def test_half_a_pair_is_no_path(client: TestClient) -> None:
    """T15."""
    answer = client.post(
        "/v1/failures/ignore", content=b'{"paths":["docs/\\ud800"]}', headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) in ((400, "usage"), (404, "not_found"))


def test_nothing_is_made_due_where_nobody_would_try(settings: Settings, client: TestClient) -> None:
    put_failures(settings, "a.md", "gone.md")
    asked(client, "/v1/failures/retry", 409, {"all": True})
    assert set(standings(settings)) == {"docs/a.md", "docs/gone.md"}
    tried = asked(client, "/v1/failures/retry", 200, {"paths": ["docs/gone.md"]})
    assert (tried["run"], tried["gone"], tried["exit_status"]) == (None, ["docs/gone.md"], 0)


def test_failures_are_left_alone_and_no_longer(settings: Settings, client: TestClient) -> None:
    put_failures(settings, "a.md", "sub/c.md")
    ignored = asked(client, "/v1/failures/ignore", 200, {"paths": ["docs"]})
    assert (ignored["ignored"], ignored["changed"]) == (True, ["docs/a.md", "docs/sub/c.md"])
    assert set(standings(settings).values()) == {"ignored"}
    assert asked(client, "/v1/failures/ignore", 200, {"paths": ["docs/a.md"]})["changed"] == []
    undone = asked(client, "/v1/failures/ignore", 200, {"paths": ["docs/a.md"], "undo": True})
    assert (undone["ignored"], standings(settings)["docs/a.md"]) == (False, "open")
    unfit: Any
    for unfit in ({}, {"paths": []}, {"paths": ["docs/a.md"], "all": True}):
        asked(client, "/v1/failures/ignore", 400, unfit)


def test_without_an_index_nothing_is_made(tmp_path: Path) -> None:
    with http_client(settings_of(tmp_path / "home")) as client:
        for path, body in (
            ("/v1/runs", {}), ("/v1/runs/1/pause", None), ("/v1/runs/1/retry", None),
            ("/v1/runs/1/approve", {"digest": "0" * 12}), ("/v1/failures/retry", {"all": True}),
            ("/v1/failures/ignore", {"paths": ["docs"]}),
        ):  # fmt: skip
            assert asked(client, path, 409, body)["code"] == "index_not_built"
    assert not (tmp_path / "home").exists()
