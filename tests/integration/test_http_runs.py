"""Runs, failures, schedules and health over HTTP: what the command line says with --json, in pages."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.approving import HELD
from domain.files import Reason
from domain.layout import BaseLayout
from domain.settings import ScheduleSettings, Settings
from store import driver
from store.failure_port import FailureRecord
from store.run_port import RunRecord
from store.state import SqliteStateStore
from store.state_port import PageOutcome, RemovalCandidate
from tests.support.bases import build_base, settings_of
from tests.support.http_service import http_client

NIGHTLY = ScheduleSettings("nightly", "0 3 * * *", timezone="Europe/Malta", roots=("/srv/private/docs",))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return build_base(tmp_path, schedules=(NIGHTLY,))


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with http_client(settings) as asked:
        yield asked


@contextmanager
def state_of(settings: Settings) -> Iterator[SqliteStateStore]:
    with closing(SqliteStateStore(BaseLayout(settings.home).state)) as state:
        yield state


def ran(state: SqliteStateStore, ending: str = "done", cause: str = "", roots: tuple[str, ...] = ("docs",)) -> int:
    run = state.begin_run(RunRecord(0, 0, "index", "cli", roots, "walking", 1, None, {}), floor_generation=0)
    state.end_run(run.id, ending, {}, cause)  # type: ignore[arg-type]
    return run.id


def pages(client: TestClient, path: str, **parameters: Any) -> Iterator[Any]:
    """The answers up to the one behind which nothing is."""
    cursor = None
    while True:
        asked = client.get(path, params=parameters | ({"cursor": cursor} if cursor else {}))
        assert asked.status_code == 200, asked.text
        yield asked.json()
        if (cursor := asked.json()["next_cursor"]) is None:
            return


def problem_of(client: TestClient, path: str, status: int) -> Any:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    return answer.json()


def test_runs_are_listed_the_newest_first_in_pages(settings: Settings, client: TestClient) -> None:
    with state_of(settings) as state:
        for _ in range(4):
            ran(state)
    whole = client.get("/v1/runs").json()
    assert ([run["id"] for run in whole["runs"]], whole["next_cursor"]) == ([5, 4, 3, 2, 1], None)
    assert [[run["id"] for run in page["runs"]] for page in pages(client, "/v1/runs", limit=2)] == [[5, 4], [3, 2], [1]]
    assert len(list(pages(client, "/v1/runs", limit=5))) == 1
    assert client.get("/v1/runs").headers["cache-control"] == "no-store"


def test_one_run_is_shown_as_on_the_command_line(client: TestClient) -> None:
    shown = client.get("/v1/runs/1").json()
    assert (shown["id"], shown["state"], shown["exit_status"], shown["removals_held"]) == (1, "done", 0, None)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/runs/99", 404, "not_found"),
        ("/v1/runs/0", 404, "not_found"),
        (f"/v1/runs/{2**63}", 404, "not_found"),
        (f"/v1/runs/{'9' * 400}/held", 404, "not_found"),
        (f"/v1/runs/{'9' * 5000}", 404, "not_found"),
        ("/v1/runs/-1", 404, "not_found"),
        ("/v1/runs/%D9%A1", 404, "not_found"),
        ("/v1/runs/99/changes?kind=added", 404, "not_found"),
        ("/v1/runs/99/changes.ndjson", 404, "not_found"),
        ("/v1/runs/99/held", 404, "not_found"),
        ("/v1/runs?limit=0", 400, "usage"),
        ("/v1/runs?limit=501", 400, "usage"),
        ("/v1/runs?cursor=-1", 400, "usage"),
        (f"/v1/runs?cursor={2**70}", 400, "usage"),
        ("/v1/runs?after=1", 400, "usage"),
        ("/v1/runs/1?full=1", 400, "usage"),
        ("/v1/runs/1/changes", 400, "usage"),
        ("/v1/runs/1/changes?kind=lost", 400, "usage"),
        ("/v1/runs/1/changes?kind=added&cursor=next", 400, "usage"),
        (f"/v1/runs/1/changes?kind=added&cursor={'9' * 28}.1", 400, "usage"),
        ("/v1/runs/1/changes?kind=added&cursor=%D9%A1.%D9%A1", 400, "usage"),
        ("/v1/failures?reason=bad", 400, "usage"),
        ("/v1/failures?cursor=%00", 400, "usage"),
        ("/v1/doctor?x=1", 400, "usage"),
        ("/v1/events?x=1", 400, "usage"),
    ],
)
def test_what_cannot_be_asked_is_refused(client: TestClient, path: str, status: int, code: str) -> None:
    assert problem_of(client, path, status)["code"] == code


def test_a_head_of_everything_ends(client: TestClient) -> None:
    """Of a stream of events, too."""
    for path in ("/v1/runs", "/v1/events", "/v1/runs/1/events", "/v1/runs/1/changes.ndjson", "/v1/health"):
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b""), path


def test_what_a_run_has_changed_comes_in_pages_and_as_lines(settings: Settings, client: TestClient) -> None:
    with state_of(settings) as state:
        run = ran(state)
        added = [f"docs/{number:03}.md" for number in range(10)]
        for page in range(4):
            state.add_changes(run, page, {"added": added[page * 3 : page * 3 + 3], "removed": [f"docs/gone-{page}.md"]})
    for limit in (1, 2, 3, 4, 10, 100):
        found = list(pages(client, f"/v1/runs/{run}/changes", kind="added", limit=limit))
        assert [key for page in found for key in page["paths"]] == added
        assert all(len(page["paths"]) == limit for page in found[:-1])
        assert len(found[-1]["paths"]) > 0
    assert client.get(f"/v1/runs/{run}/changes?kind=moved").json()["paths"] == []
    answer = client.get(f"/v1/runs/{run}/changes.ndjson")
    assert answer.headers["content-type"] == "application/x-ndjson"
    head, *lines, end = [json.loads(line) for line in answer.text.splitlines()]
    assert (head, end) == ({"run": run}, {"whole": True, "returned": 14})
    assert [line["path"] for line in lines if line["change"] == "added"] == added
    assert sum(line["change"] == "removed" for line in lines) == 4


def test_changes_that_are_kept_no_more_are_not_told_as_none(settings: Settings, client: TestClient) -> None:
    with state_of(settings) as state:
        for _ in range(31):
            ran(state)
    assert "on record no more" in problem_of(client, "/v1/runs/1/changes?kind=added", 404)["detail"]
    assert "on record no more" in problem_of(client, "/v1/runs/1/changes.ndjson", 404)["detail"]


def test_held_removals_are_listed_with_the_digest_that_approves_them(settings: Settings, client: TestClient) -> None:
    """R34: the digest is that of the whole list, whatever part of it is asked for."""
    keys = [f"docs/{number:03}.md" for number in range(25)]
    with state_of(settings) as state:
        run = ran(state, "partial", HELD)
        state.add_candidates(run, [RemovalCandidate(key, Reason.GONE) for key in keys])
        state.add_candidates(run, [RemovalCandidate("docs/010.txt", Reason.FORGOTTEN)])
    first, *others = pages(client, f"/v1/runs/{run}/held", limit=10)
    digest = sha256("".join(f"{key}\0gone\n" for key in keys).encode()).hexdigest()
    assert (first["count"], first["digest"], first["approvable"], first["because"]) == (25, digest, True, None)
    assert [one["path"] for page in (first, *others) for one in page["removals"]] == keys
    assert {one["reason"] for one in first["removals"]} == {"gone"}
    assert client.get(f"/v1/runs/{run}").json()["removals_held"]["digest"] == digest
    none = client.get("/v1/runs/1/held").json()
    assert (none["count"], none["removals"], none["approvable"]) == (None, [], False)
    assert none["because"] == "it holds no removals"


def failed(settings: Settings, number: int, reason: str) -> FailureRecord:
    return FailureRecord(f"docs/bad-{number:03}.md", reason, "because", 1, 1, 1)


def test_failures_come_in_pages_by_reason(settings: Settings, client: TestClient) -> None:
    none = client.get("/v1/failures").json()
    assert (none["open"], none["quarantined"], none["ignored"]) == (0, 0, 0)
    assert (none["failures"], none["next_cursor"]) == ([], None)
    reasons = [Reason.UNREADABLE.value if number % 5 else Reason.TOO_SLOW.value for number in range(23)]
    with state_of(settings) as state:
        failures = tuple(failed(settings, number, reason) for number, reason in enumerate(reasons))
        state.finish_pages(1, [PageOutcome(1, failures=failures)])
        state.ignore_failures(["docs/bad-000.md"])
    everything = [row for page in pages(client, "/v1/failures", limit=4) for row in page["failures"]]
    assert [row["path"] for row in everything] == [f"docs/bad-{number:03}.md" for number in range(23)]
    some = list(pages(client, "/v1/failures", limit=2, reason=Reason.TOO_SLOW.value))
    assert [len(page["failures"]) for page in some] == [2, 2, 1]
    assert (some[0]["ignored"], some[0]["open"] + some[0]["quarantined"]) == (1, 4)


def test_schedules_as_on_the_command_line(client: TestClient) -> None:
    """C-08. Whoever may operate is told where things lie."""
    value = client.get("/v1/schedules").json()
    (nightly,) = value["schedules"]
    assert (nightly["name"], nightly["last_run"], len(nightly["next"])) == ("nightly", None, 3)
    assert (value["scheduler"], "start `knowledge up`" in value["note"]) == (None, True)
    assert nightly["roots"] == ["/srv/private/docs"]


def test_those_who_only_read_are_told_no_places(settings: Settings, client: TestClient, reader: None) -> None:
    """Not in the words of an error, either."""
    value = client.get("/v1/schedules").json()
    assert (value["home"], value["base"], value["schedules"][0]["roots"]) == (None, None, ["docs"])
    with state_of(settings) as state:
        run = state.begin_run(RunRecord(0, 0, "index", "cli", (), "walking", 1, None, {}), floor_generation=0)
        state.end_run(run.id, "failed", {}, "storage", f"{settings.home}/knowledge.db: disk I/O error", "look")
    assert client.get("/v1/runs/2").json()["message"] == ".../knowledge.db: disk I/O error"
    BaseLayout(settings.home).database.write_bytes(b"no database at all" * 1000)
    for path in ("/v1/health", "/v1/runs", "/v1/runs/2", "/v1/failures", "/v1/runs/2/events"):
        answer = client.get(path)
        assert (answer.status_code, str(settings.home) in answer.text) == (200, False), path


def test_the_doctor(client: TestClient) -> None:
    value = client.get("/v1/doctor").json()
    assert {"sqlite", "state", "queue"} <= {check["name"] for check in value["checks"]}
    assert value["status"] in ("pass", "warning", "not_run")


def test_coverage_walks_once_for_all_who_ask(settings: Settings, client: TestClient) -> None:
    """Files of the folders, not rows of the index."""
    docs = settings.home.parent / "docs"
    (docs / "new.md").write_text("# New\n")
    (root,) = client.get("/v1/coverage").json()["roots"]
    assert (root["coverage"]["seen"], root["coverage"]["new"]) == (6, 1)
    (docs / "newer.md").write_text("# Newer\n")
    assert client.get("/v1/coverage").json()["roots"][0]["coverage"]["seen"] == 6


def test_health_never_says_nought_for_what_it_cannot_know(settings: Settings, client: TestClient) -> None:
    """Without a connection to the queue its depths are null."""
    value = client.get("/v1/health").json()
    assert (value["queue"], value["roles"], value["scheduler"], value["writer"]) == (None, None, None, None)
    assert (value["index"]["documents"], value["run"], value["queued_runs"]) == (5, None, 0)
    assert value["index"]["dead_vector_share"] == 0.0
    assert value["failures"] == {"open": 0, "quarantined": 0, "ignored": 0}


def test_health_of_an_index_that_cannot_be_read(tmp_path: Path) -> None:
    settings = build_base(tmp_path)
    with closing(driver.connect(str(BaseLayout(settings.home).database), uri=False, timeout_s=5)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    BaseLayout(settings.home).database.write_bytes(b"no database at all" * 1000)
    with http_client(settings) as client:
        value = client.get("/v1/health").json()
    assert (value["index"], value["problem"]["code"], value["queued_runs"]) == (None, "integrity", 0)


def test_without_an_index(tmp_path: Path) -> None:
    """S0-56: an empty list would read as if there had been nothing."""
    with http_client(settings_of(tmp_path / "home")) as client:
        for path in ("/v1/runs", "/v1/runs/1", "/v1/coverage", "/v1/runs/1/held", "/v1/runs/1/events", "/v1/failures"):
            assert problem_of(client, path, 409)["code"] == "index_not_built"
        value = client.get("/v1/health").json()
        assert (value["index"], value["problem"], value["queued_runs"], value["failures"]) == (None, None, None, None)
        assert client.get("/v1/schedules").json()["schedules"] == []
    assert not (tmp_path / "home").exists()


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks may only read."""
    for module in ("run_endpoints_failures", "recorded"):
        monkeypatch.setattr(f"server.http.{module}.may_operate", lambda _request: False)


def test_those_who_only_read_are_not_told_where_an_index_was_looked_for(tmp_path: Path, reader: None) -> None:
    with http_client(settings_of(tmp_path / "home")) as client:
        assert str(tmp_path) not in json.dumps(problem_of(client, "/v1/runs", 409))
