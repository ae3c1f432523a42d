"""The pages of operations: what goes on and what failed, and buttons only for who may press them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from app.approving import HELD
from app.config import Loaded
from app.discovery import Located
from app.wiring import writable_base
from domain.files import Reason
from domain.settings import ScheduleSettings, ServerSettings, Settings
from store.failure_port import FailureRecord
from store.run_port import RunRecord
from store.state import SqliteStateStore
from store.state_port import RemovalCandidate
from tests.support.bases import build_base, layout_of, settings_of
from tests.support.http_service import ORIGIN, http_client, loaded_client
from tests.support.page_reading import Element, look, read

READ, OPERATE = "r" * 32, "o" * 32
OPERATOR_TABS = ["Overview", "Failures", "Checks", "Coverage"]


def told(page: Element) -> str:
    return " ".join(page.one("main").text.split())


@contextmanager
def recorded(settings: Settings) -> Iterator[SqliteStateStore]:
    state = SqliteStateStore(layout_of(settings).state)
    try:
        yield state
    finally:
        state.close()


def with_failures(settings: Settings, count: int = 1, detail: str = "Permission denied") -> None:
    now_ns = time.time_ns()
    with recorded(settings) as state:
        state.record_failures(
            [FailureRecord(f"docs/{number:03}.md", "unreadable", detail, 1, now_ns, now_ns) for number in range(count)]
        )


@contextmanager
def with_tokens(settings: Settings, folder: Path) -> Iterator[TestClient]:
    for name, token in (("read", READ), ("operate", OPERATE)):
        (folder / name).write_text(token, encoding="utf-8")
        (folder / name).chmod(0o600)
    server = ServerSettings(read_token_file=folder / "read", operate_token_file=folder / "operate")
    with http_client(replace(settings, server=server)) as client:
        yield client


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return build_base(tmp_path)


def test_the_overview(settings: Settings) -> None:
    nightly = ScheduleSettings("nightly", "0 3 * * *", "UTC")
    with http_client(replace(settings, schedules=(nightly,))) as client:
        page = look(client, "/operations")
    assert [link.text for link in page.one("nav", "tabs").all("a")] == OPERATOR_TABS
    words = told(page)
    for expected in ("IndexComplete", "Documents5", "no scheduler runs", "nightly", "03:00 UTC", "no file failed"):
        assert expected in words
    assert "no queue is known to this process" in words
    assert "Full-text segments" in words
    assert "Write-ahead log" in words
    rows = next(section for section in page.all("section") if section.attributes["id"] == "runs").all("tr")[1:]
    assert len(rows) == 1
    assert rows[0].attributes["data-state"] == "done"
    assert "index of docs" in rows[0].text


def test_without_an_index(tmp_path: Path) -> None:
    """An empty state says what to do next."""
    with http_client(settings_of(tmp_path / "home")) as client:
        words = told(look(client, "/operations"))
        assert "there is no index yet" in words
        assert "knowledge index" in words
        assert "no run is on record" in words
        assert "no schedules are configured" in words
        assert "there is no index" in told(look(client, "/operations/runs/1", 409))
        assert "Checks" in told(look(client, "/operations/checks"))


def test_a_run(settings: Settings) -> None:
    with http_client(settings) as client:
        page = look(client, "/operations/runs/1")
        assert "Run 1: index of docs" in told(page)
        assert "there is no run 7" in told(look(client, "/operations/runs/7", 404))
        assert "there is no run 9" in told(look(client, f"/operations/runs/{'9' * 18}", 404))


def test_a_run_that_goes_on_has_its_buttons(settings: Settings) -> None:
    with recorded(settings) as state:
        queued = state.queue_run(
            RunRecord(0, 0, "index", "api", ("docs",), "queued", time.time_ns(), None, {}), {"kind": "index"}
        )
    with http_client(settings) as client:
        page = look(client, f"/operations/runs/{queued.id}")
        posts = {
            button.attributes["data-post"]: button for button in page.all("button") if "data-post" in button.attributes
        }
        assert set(posts) == {f"/v1/runs/{queued.id}/pause", f"/v1/runs/{queued.id}/cancel"}
        assert "it begins when one is" in told(page)
        assert page.one("span", "actions").attributes["hidden"] == ""
        paused = client.post(f"/v1/runs/{queued.id}/cancel", json={})
        assert paused.status_code in (200, 202)
        assert "cancelled" in told(look(client, f"/operations/runs/{queued.id}"))


def test_held_removals_are_shown_before_they_can_be_let_go(settings: Settings) -> None:
    """R34."""
    with recorded(settings) as state:
        begun = RunRecord(0, 0, "index", "cli", ("docs",), "walking", time.time_ns(), None, {}, full=True)
        run_id = state.begin_run(begun, floor_generation=0).id
        state.add_candidates(run_id, [RemovalCandidate(f"docs/{number:02}.md", Reason.GONE) for number in range(25)])
        state.end_run(run_id, "partial", {}, HELD)
    with http_client(settings) as client:
        overview = look(client, "/operations")
        assert not [button for button in overview.all("button") if "approve" in button.attributes.get("data-post", "")]
        assert f"/operations/runs/{run_id}" in [link.attributes["href"] for link in overview.all("a", "button")]
        page = look(client, f"/operations/runs/{run_id}")
        held = page.one("div", "held")
        assert [entry.text for entry in held.one("ul").all("li")][:2] == ["docs/00.md", "docs/01.md"]
        button = held.one("button")
        assert button.attributes["data-post"] == f"/v1/runs/{run_id}/approve"
        assert held.one("code").text in button.attributes["data-body"]
        assert "?" in button.attributes["data-asks"]


def test_failures(settings: Settings) -> None:
    with_failures(settings, 60)
    with http_client(settings) as client:
        overview = look(client, "/operations")
        assert "60 files failed: 60 to be tried again" in told(overview)
        page = look(client, "/operations/failures")
        rows = page.one("tbody").all("tr")
        assert len(rows) == 50
        assert "docs/000.md" in rows[0].text
        assert "cannot be read" in rows[0].text
        assert "Permission denied" in rows[0].text
        assert rows[0].one("button").attributes["data-body"] == '{"paths": ["docs/000.md"]}'
        rest = look(client, page.one("p", "more").one("a").attributes["href"])
        assert len(rest.one("tbody").all("tr")) == 10
        assert "None of these is left" in told(look(client, "/operations/failures", standing="ignored"))
        assert "is no reason for a failure" in told(look(client, "/operations/failures", 400, reason="weather"))


def test_no_failures(settings: Settings) -> None:
    with http_client(settings) as client:
        assert "no file has failed: there is nothing to try again" in told(look(client, "/operations/failures"))


def test_checks_and_coverage(settings: Settings) -> None:
    with http_client(settings) as client:
        checks = look(client, "/operations/checks")
        states = {one.all("span", "state")[0].text for one in checks.one("ul", "checks").all("li")}
        assert "passed" in states
        assert states <= {"passed", "failed", "warning", "not run"}
        assert "5 / 5 files indexed" in told(look(client, "/operations/coverage"))


def test_who_may_only_read_sees_no_button_and_no_place_of_the_machine(tmp_path: Path) -> None:
    settings = build_base(tmp_path)
    with_failures(settings, detail=f"{settings.home}/x: Permission denied")
    with with_tokens(settings, tmp_path) as client:
        client.headers["authorization"] = f"Bearer {READ}"
        for path in ("/", "/?q=fox", "/operations", "/operations/failures", "/operations/runs/1"):
            page = look(client, path)
            assert str(tmp_path) not in page.text
            assert not [button for button in page.all("button") if "data-post" in button.attributes]
        assert [link.text for link in look(client, "/operations").one("nav", "tabs").all("a")] == OPERATOR_TABS[:2]
        assert client.get("/operations/checks").status_code == 403
        assert client.get("/operations/coverage").status_code == 403
        client.headers["authorization"] = f"Bearer {OPERATE}"
        assert str(tmp_path) in look(client, "/operations").text


def test_signing_in_and_out(tmp_path: Path) -> None:
    with with_tokens(build_base(tmp_path), tmp_path) as client:
        form = look(client, "/operations?x=1", 401).one("form", "sign-in")
        fields = {field.attributes["name"]: field.attributes.get("value", "") for field in form.all("input")}
        assert fields["next"] == "/operations?x=1"
        sent = fields | {"token": OPERATE}
        answer = client.post("/sign-in", data=sent, headers={"origin": ORIGIN}, follow_redirects=False)
        assert answer.status_code == 303
        page = look(client, answer.headers["location"])
        out = page.one("header").one("form")
        (token,) = [
            meta.attributes["content"] for meta in page.all("meta") if meta.attributes.get("name") == "form-token"
        ]
        assert out.attributes == {"method": "post", "action": "/sign-out"}
        assert out.one("input").attributes["value"] == token
        left = client.post("/sign-out", data={"form_token": token}, headers={"origin": ORIGIN}, follow_redirects=False)
        assert left.status_code == 303
        assert len(look(client, "/operations", 401).all("form", "sign-in")) == 1


def test_a_wrong_token_is_told_on_the_same_form(tmp_path: Path) -> None:
    with with_tokens(build_base(tmp_path), tmp_path) as client:
        form = look(client, "/", 401).one("form", "sign-in")
        fields = {field.attributes["name"]: field.attributes.get("value", "") for field in form.all("input")}
        answer = client.post("/sign-in", data=fields | {"token": "<b>x"}, headers={"origin": ORIGIN})
        assert answer.status_code == 401
        assert read(answer.text).one("div", "bad").attributes["role"] == "alert"


def test_the_places_of_a_missing_index_are_told_to_operators(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "home")
    with loaded_client(Loaded(Located("store", None, settings.home), settings)) as client:
        assert str(tmp_path) in told(look(client, "/", 409))
    with with_tokens(settings, tmp_path) as client:
        client.headers["authorization"] = f"Bearer {READ}"
        for path in ("/", "/operations"):
            page = look(client, path, 409 if path == "/" else 200)
            assert str(tmp_path) not in page.text


def test_a_damaged_index_is_a_page_too(settings: Settings) -> None:
    layout_of(settings).database.write_bytes(b"no database" * 1000)
    with http_client(settings) as client:
        for path in ("/?q=fox", "/operations", "/match?q=fox", "/operations/checks"):
            answer = client.get(path)
            assert answer.headers["content-type"].startswith("text/html")
            assert "Traceback" not in answer.text


def test_a_base_without_its_writer(settings: Settings) -> None:
    """Pages look only: nothing in the home is changed by them."""
    with writable_base(settings, "test"):
        pass
    home = settings.home
    before = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file() and "-shm" not in path.name}
    with http_client(settings) as client:
        for path in (
            "/",
            "/?q=fox",
            "/operations",
            "/operations/checks",
            "/operations/coverage",
            "/operations/failures",
        ):
            look(client, path)
    after = {path.name: path.read_bytes() for path in home.iterdir() if path.is_file() and "-shm" not in path.name}
    assert {name: content for name, content in after.items() if content and before.get(name) != content} == {}
