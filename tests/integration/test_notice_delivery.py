"""Messages carried to real addresses and programs, good ones and hostile ones (issue 5, point 9)."""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from app.notice_delivery import Delivery, beat, deliver
from app.notifying import Notifier
from domain.settings import NotifySettings, Settings
from store.run_port import RunRecord
from store.state import SqliteStateStore
from tests.support.waiting import eventually

MESSAGE = {"text": "knowledge handbook: füße", "event": "test"}
TO_VARIABLE = NotifySettings(url_env="HOOK", timeout_s=5.0)


class Hook(BaseHTTPRequestHandler):
    """Answers what it is told to, and remembers what it was sent."""

    answers: ClassVar[list[int]] = []
    seen: ClassVar[list[tuple[str, str, bytes]]] = []
    location = ""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append((self.command, self.path, body))
        status = self.answers.pop(0) if self.answers else 200
        self.send_response(status)
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(b"no such\nhook" if status == 404 else b"ok")

    do_GET = do_POST  # noqa: N815 - its name in the library

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Hook, "answers", [])
    monkeypatch.setattr(Hook, "seen", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/services/T0/secret?key=hidden"
        server.shutdown()
        thread.join()


def delivered(url: str, settings: NotifySettings = TO_VARIABLE, pauses: list[float] | None = None) -> Delivery:
    waited = pauses if pauses is not None else []
    return deliver(settings, MESSAGE, value_of={"HOOK": url}.get, pause=waited.append)


def test_the_message_is_posted_as_json(hook: str) -> None:
    delivery = delivered(f"{hook}\n")  # as a variable from a file ends
    assert delivery.is_delivered
    assert delivery.detail == "answered 200"
    ((method, path, body),) = Hook.seen
    assert (method, path) == ("POST", "/services/T0/secret?key=hidden")
    assert json.loads(body) == MESSAGE


def test_what_may_pass_is_tried_again_and_what_will_not_is_not(hook: str) -> None:
    pauses: list[float] = []
    Hook.answers[:] = [503, 429, 200]
    delivery = delivered(hook, pauses=pauses)
    assert (delivery.is_delivered, delivery.tries, pauses) == (True, 3, [1.0, 4.0])
    Hook.answers[:] = [404]
    delivery = delivered(hook)
    assert (delivery.is_delivered, delivery.tries, delivery.detail) == (False, 1, "answered 404: no such hook")
    Hook.answers[:] = [500, 500, 500, 200]
    assert delivered(hook).tries == 3


def test_a_redirect_is_not_followed(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hook, "location", "http://127.0.0.1:1/elsewhere")
    Hook.answers[:] = [307]
    delivery = delivered(hook)
    assert not delivery.is_delivered
    assert "not followed" in delivery.detail
    assert len(Hook.seen) == 1


def test_no_proxy_of_the_environment_is_used(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert delivered(hook).is_delivered


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "is not set"),
        ("http://hooks.example.org/secret", "must be https"),
        ("https://user:secret@hooks.example.org/", "user name or password"),
        ("https://169.254.169.254/secret", "link-local"),
        ("file:///etc/secret", "must be an http or https address"),
        ("https://hooks.example.org/a b?secret", "must not hold"),
    ],
)
def test_an_address_that_may_not_be_used_is_not_asked_nor_shown(url: str, words: str) -> None:
    delivery = delivered(url)
    assert not delivery.is_delivered
    assert words in delivery.detail
    assert "secret" not in delivery.detail + delivery.to


def test_http_is_permitted_to_hosts_that_are_listed() -> None:
    settings = NotifySettings(url_env="HOOK", insecure_hosts=("relay.invalid",), timeout_s=5.0)
    delivery = delivered("http://relay.invalid/secret", settings)
    assert delivery.to == "relay.invalid"
    assert "must be https" not in delivery.detail
    assert delivery.tries == 3


@pytest.mark.parametrize("manner", ["silent", "dripping", "endless", "nonsense", "closing"])
def test_a_hostile_server_ends_with_the_time(manner: str) -> None:
    """A byte now and then keeps nobody waiting, and an endless answer is not read."""
    ended = threading.Event()

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            try:
                if manner == "nonsense":
                    connection.sendall(b"220 mail.example.org\r\n")
                if manner == "endless":
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                while manner in ("silent", "dripping", "endless") and not ended.wait(0.01):
                    if manner != "silent":
                        connection.sendall(b"H" if manner == "dripping" else b"x" * 65536)
            except OSError:
                pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        try:
            delivery = beat("HOOK", NotifySettings(url_env="HOOK", timeout_s=0.3), value_of={"HOOK": url}.get)
        finally:
            ended.set()
            thread.join()
    assert delivery.is_delivered == (manner == "endless")
    assert len(delivery.detail) < 3000


def test_a_heartbeat_is_a_plain_get(hook: str) -> None:
    assert beat("HOOK", value_of={"HOOK": hook}.get).is_delivered
    assert Hook.seen == [("GET", "/services/T0/secret?key=hidden", b"")]


def program(text: str, tmp_path: Path, timeout_s: float = 20.0) -> NotifySettings:
    script = tmp_path / "told.py"
    script.write_text(text)
    return NotifySettings(command=(sys.executable, str(script), "$HOME; not a shell"), timeout_s=timeout_s)


def test_a_program_gets_the_message_on_its_standard_input(tmp_path: Path) -> None:
    settings = program(
        "import sys, pathlib\n"
        "pathlib.Path(sys.argv[0]).with_name('got').write_text(sys.argv[1] + chr(10) + sys.stdin.read())\n",
        tmp_path,
    )
    assert delivered("", settings).detail == "ended with 0"
    argument, message = (tmp_path / "got").read_text().splitlines()
    assert argument == "$HOME; not a shell"
    assert json.loads(message) == MESSAGE


def test_a_program_that_hangs_is_killed_with_all_that_it_has_started(tmp_path: Path) -> None:
    settings = program(
        "import subprocess, sys, pathlib, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path(sys.argv[0]).with_name('child').write_text(str(child.pid))\n"
        "time.sleep(600)\n",
        tmp_path,
        timeout_s=2.0,
    )
    delivery = delivered("", settings)
    assert "was killed" in delivery.detail
    assert delivery.tries == 1
    child = int((tmp_path / "child").read_text())
    eventually(lambda: _is_gone(child))


def _is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (NotifySettings(command=("/no/such/program",)), "could not be started: No such file"),
        (NotifySettings(command=(sys.executable, "-c", "raise SystemExit(3)")), "ended with 3"),
        (NotifySettings(command=(sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")), "ended by signal 9"),
    ],
)
def test_a_program_that_fails_is_said(settings: NotifySettings, words: str) -> None:
    assert words in delivered("", settings).detail


class Sent:
    """Deliveries that go well, or not."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.goes_well = True

    def __call__(self, _settings: NotifySettings, message: Any) -> Delivery:
        self.messages.append(message)
        return Delivery(self.goes_well, "somebody", "")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteStateStore]:
    state = SqliteStateStore(tmp_path / "state.db")
    yield state
    state.close()


def end_run(state: SqliteStateStore, ending: Any) -> None:
    run = RunRecord(0, 0, "index", "schedule", ("docs",), "walking", time.time_ns(), None, {}, full=True)
    state.end_run(state.begin_run(run, floor_generation=0).id, ending, {}, "")


def test_what_was_told_is_remembered_by_state_db(state: SqliteStateStore, tmp_path: Path) -> None:
    settings = Settings("handbook", tmp_path, None, False, notify=TO_VARIABLE)
    sent = Sent()
    end_run(state, "failed")
    Notifier(settings, sent).tell(state, 1)
    Notifier(settings, sent).tell(state, 2)
    assert [message["event"] for message in sent.messages] == ["failed"], "another process knows of it"
    end_run(state, "done")
    Notifier(settings, sent).tell(state, 3)
    assert [message["event"] for message in sent.messages] == ["failed", "recovered"]
    assert state.told_states()["run:index:docs"].told_ns == 3


def test_what_could_not_be_delivered_is_told_later(state: SqliteStateStore, tmp_path: Path) -> None:
    now_s = 0.0
    sent = Sent()
    notifier = Notifier(Settings("handbook", tmp_path, None, False, notify=TO_VARIABLE), sent, lambda: now_s)
    end_run(state, "failed")
    sent.goes_well = False
    assert [delivery.is_delivered for delivery in notifier.tell(state, 1)] == [False]
    assert notifier.tell(state, 2) == [], "not at every look"
    now_s, sent.goes_well = 400.0, True
    assert [delivery.is_delivered for delivery in notifier.tell(state, 3)] == [True]
    assert notifier.tell(state, 4) == []


def test_nobody_is_told_where_nobody_is_to_be(state: SqliteStateStore, tmp_path: Path) -> None:
    end_run(state, "failed")
    sent = Sent()
    assert Notifier(Settings("handbook", tmp_path, None, False), sent).tell(state, 1) == []
    assert sent.messages == []
    assert state.told_states() == {}
