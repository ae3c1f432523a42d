"""A service as an operator's tools see it: health pages, metrics and logs of real roles (issue 5, points 1 and 10)."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from math import isnan
from pathlib import Path

import pytest

from app.roles.measures import ROLE_MEASURES, ROLE_NAMES
from tests.support.embedding_server import embedding_server
from tests.support.hostile_texts import MARK, hostile_texts
from tests.support.prometheus import Exported, parsed
from tests.support.service import Role, Service, free_port, many_files, service

KEY = "canary-key-51c2f0aa"
FILES = 150
PROGRAM = (sys.executable, "-P", "-m", "cli.main")


def got(role: Role, path: str) -> tuple[int, str]:
    """Status 0: nobody answers."""
    connection = HTTPConnection("127.0.0.1", role.health_port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError:
        return 0, ""
    finally:
        connection.close()


def metrics_of(role: Role) -> Exported:
    status, text = got(role, "/metrics")
    assert status == 200
    return parsed(text)


def checked(it: Service, role: Role, *, port: int | None = None) -> int:
    """The exit status of `knowledge ROLE --check`."""
    command = [*PROGRAM, role.name, "--check"]
    told = ["--config", str(it.folder / "knowledge.yaml"), "--health-port", str(port or role.health_port)]
    return subprocess.run([*command, *told], capture_output=True, check=False, cwd=it.folder, timeout=60).returncode


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Role]]:
    """One of each role, after the first run of an index with a schedule."""
    schedule = '  schedules: [{name: nightly, cron: "0 3 * * *"}]\n  embeddings: {provider: local}'
    with service(tmp_path_factory.mktemp("watched"), configuration=schedule, files=many_files(FILES)) as it:
        roles = {name: it.start(name, with_health=True) for name in ROLE_NAMES}
        assert it.ended(it.first_run()).state == "done"
        serve = roles["serve"]
        it.wait_until(lambda: got(serve, "/readyz")[0] == 200)
        it.wait_until(lambda: metrics_of(serve).value("knowledge_last_run", state="done") == 1)
        yield roles


@pytest.mark.parametrize("name", ROLE_NAMES)
def test_a_role_lives_is_ready_and_exports_its_table(name: str, watched: dict[str, Role]) -> None:
    role = watched[name]
    assert got(role, "/healthz") == (200, f'{{"status":"ok","role":"{name}"}}')
    status, said = got(role, "/readyz")
    assert (status, json.loads(said)["status"]) == (200, "ready")
    seen = metrics_of(role)
    assert {own for own in seen.types if own.startswith("knowledge_")} == {own.name for own in ROLE_MEASURES[name]}
    assert seen.value("knowledge_role_active", role=name) == 1
    assert seen.value("knowledge_role_waiting", role=name) == 0
    assert got(role, "/")[0] == (200 if name == "serve" else 404)


def test_what_was_done_is_counted_where_it_was_done(watched: dict[str, Role]) -> None:
    worker, writer = metrics_of(watched["worker"]), metrics_of(watched["writer"])
    scheduler = metrics_of(watched["scheduler"])
    assert worker.value("knowledge_files_checked_total", outcome="document") == FILES
    assert writer.value("knowledge_files_written_total", outcome="added") == FILES
    chunks = worker.value("knowledge_chunks_cut_total")
    assert chunks == writer.value("knowledge_chunks_written_total") >= FILES
    pages = worker.value("knowledge_pages_checked_total")
    assert pages == worker.value("knowledge_page_check_seconds_count") == writer.value("knowledge_pages_written_total")
    assert pages == scheduler.value("knowledge_pages_done_total")
    assert pages == scheduler.value("knowledge_page_latency_seconds_count")
    assert pages == writer.value("knowledge_write_wait_seconds_count")
    assert pages == writer.value("knowledge_write_group_pages_sum")
    assert worker.value("knowledge_embedding_requests_total", outcome="ok") > 0
    assert scheduler.value("knowledge_runs_ended_total", state="done") == 1
    assert scheduler.value("knowledge_runs_ended_total", state="failed") == 0


def test_the_whole_service_is_told_by_one(watched: dict[str, Role]) -> None:
    seen = metrics_of(watched["serve"])
    assert {name: seen.value("knowledge_roles", role=name, standing="active") for name in ROLE_NAMES} == dict.fromkeys(
        ROLE_NAMES, 1
    )
    assert seen.value("knowledge_queue_up") == 1
    assert seen.value("knowledge_queue_jobs", stage="check") == seen.value("knowledge_queue_jobs", stage="write") == 0
    assert seen.value("knowledge_schedule_next_timestamp_seconds", schedule="nightly") > 0
    assert seen.value("knowledge_removals_held", root="docs") == 0
    assert seen.value("knowledge_failures", reason="unreadable", standing="open") == 0
    assert seen.value("knowledge_disk_free_bytes") > 0
    assert seen.value("knowledge_index_bytes") > 0
    assert seen.value("knowledge_full_text_segments") >= 2
    assert isnan(seen.value("knowledge_run_progressed_timestamp_seconds")), "no run goes on"
    labels = [labels for name, own in seen.samples if name.startswith("knowledge_") for labels in [dict(own)]]
    assert not [value for own in labels for value in own.values() if "/" in value or ".md" in value]


def test_check_is_for_health_checks_of_containers(tmp_path: Path) -> None:
    """0: ready, or stands by as it should. 1: waits, says for what; or nobody answers."""
    with service(tmp_path) as it:
        waiting = it.start("worker", with_health=True)
        it.wait_until(lambda: got(waiting, "/healthz")[0] == 200)
        status, said = got(waiting, "/readyz")
        assert (status, json.loads(said)["waits_for"]) == (503, "the scheduler's or the writer's first start")
        assert metrics_of(waiting).value("knowledge_role_waiting", role="worker") == 1
        assert checked(it, waiting) == 1

        first = it.start("writer", with_health=True)
        it.wait_until(lambda: got(first, "/readyz")[0] == 200)
        second = it.start("writer", with_health=True)
        it.wait_until(lambda: '"standby"' in got(second, "/readyz")[1])
        assert [json.loads(got(role, "/readyz")[1])["active"] for role in (first, second)] == [True, False]
        assert metrics_of(second).value("knowledge_role_standby", role="writer") == 1
        assert metrics_of(second).value("knowledge_role_waiting", role="writer") == 0
        it.wait_until(lambda: got(waiting, "/readyz")[0] == 200)
        assert [checked(it, role) for role in (waiting, first, second)] == [0, 0, 0]
        first.kill()
        assert checked(it, first) == 1
        it.wait_until(lambda: '"ready"' in got(second, "/readyz")[1])


def test_logs_hold_no_text_no_key_and_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5, point 1: hostile names and texts, a key in the environment, failures of files and of a server.
    Every line is a JSON object of its own with a stable event."""
    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    texts = {text.path.removeprefix("docs/"): text.document for text in hostile_texts()}
    with embedding_server(dimension=16, key=KEY, poison="quagga") as model:
        block = f"  embeddings: {{base_url: '{model.url}', model: m, api_key_env: EMBEDDINGS_KEY, batch: 16}}"
        with service(tmp_path, configuration=block, files=texts) as it:
            for name in ROLE_NAMES:
                it.start(name, with_health=True)
            (tmp_path / "docs" / "binary.md").write_bytes(b"\xff\xfe quagga \xff")
            it.ended(it.first_run())
            run = it.submit(reindex=True)
            it.ended(run)
            pages = "".join(got(role, "/metrics")[1] for role in it.roles)
            assert it.of("worker")[0].terminate() == 0
            it.end()
            logs = [role.said() for role in it.roles]
    events = [json.loads(line) for log in logs for line in log.splitlines()]
    assert {"starts", "active", "run_begins", "run_ended", "told_to_end", "ended"} <= {
        event["event"] for event in events
    }
    assert all({"at", "level", "role", "event"} <= event.keys() for event in events)
    for secret in (MARK, KEY, "evil.example", ".md"):
        assert not [line for log in logs for line in log.splitlines() if secret in line], secret
        assert secret not in pages
    assert not any(ord(char) < 32 and char != "\n" for log in logs for char in log)


@pytest.mark.parametrize(("verb", "up_words"), [("writer", '"active"'), ("up", '"up"')])
@pytest.mark.parametrize("ignored", [True, False])
def test_ctrl_c_is_for_what_stands_in_front_of_the_terminal(
    tmp_path: Path, verb: str, up_words: str, ignored: bool
) -> None:
    """Where a script runs a role in its background, the shell has Ctrl-C ignored: then only SIGTERM ends it."""
    with service(tmp_path) as it:
        process = started(it, verb, ignored=ignored)
        try:
            said = process.stderr
            assert said is not None
            assert any(up_words in line for line in said)
            process.send_signal(signal.SIGINT)
            if ignored:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(1.5)
                process.terminate()
            assert process.wait(20) == (0 if ignored else 130)
        finally:
            process.kill()
            process.communicate()


def started(it: Service, verb: str, *, ignored: bool) -> "subprocess.Popen[str]":
    """As a shell starts it: with SIGINT ignored in a script's background."""
    told = [verb, "--config", str(it.folder / "knowledge.yaml"), "--health-port", str(free_port())]
    shell = "trap '' INT; " if ignored else ""
    return subprocess.Popen(
        ["/bin/sh", "-c", f'{shell}exec "$@"', "sh", *PROGRAM, *told, "--log-format", "json"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=it.folder,
    )


@pytest.mark.parametrize("role", ["scheduler", "worker", "writer"])
def test_a_role_that_can_have_no_queue_says_so_at_once(tmp_path: Path, role: str) -> None:
    """It would wait for ever for a base, and then for a queue that nobody has named."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "knowledge.yaml").write_text("knowledge: {paths: [docs/]}\n", encoding="utf-8")
    command = [*PROGRAM, role, "--config", "knowledge.yaml", "--health-port", "0"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 2
    assert "a role needs a queue that all roles reach" in ended.stderr
    assert "knowledge up" in ended.stderr
