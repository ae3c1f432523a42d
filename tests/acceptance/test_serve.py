"""`knowledge serve` by itself: without a queue, and before there is an index (issue 6, point 2)."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.service import free_port

PROGRAM = (sys.executable, "-P", "-m", "cli.main")
TOKEN = "0123456789abcdef-operate"
DRAINS_WITHIN_S = 10


class Serving(NamedTuple):
    process: "subprocess.Popen[str]"
    port: int
    log: list[str]

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def ended(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(DRAINS_WITHIN_S + 5)  # else it is stuck


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Bees\n\nThe queen of the hive.\n", "utf-8")
    (tmp_path / "knowledge.yaml").write_text("knowledge: {paths: [docs/]}\n", "utf-8")
    return tmp_path


@contextmanager
def serving(folder: Path, *options: str, **environ: str) -> Iterator[Serving]:
    port = free_port()
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--config", "knowledge.yaml", "--health-port", str(port), *options],
        cwd=folder,
        env={**os.environ, **environ},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    it = Serving(process, port, [])
    for line in process.stderr:
        it.log.append(line)
        if "listens" in line:
            break
    reading = threading.Thread(target=lambda: it.log.extend(process.stderr or ()))
    reading.start()
    try:
        assert process.poll() is None, it.log
        yield it
    finally:
        process.kill()
        process.wait()
        reading.join()
        process.stderr.close()


def indexed(folder: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "index", "--config", "knowledge.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_it_works_without_a_queue_and_follows_what_is_indexed(folder: Path) -> None:
    with serving(folder) as it:
        assert f"http://127.0.0.1:{it.port}/" in "".join(it.log), "where to open it"
        assert it.get("/healthz")[0] == 200
        status, said = it.get("/v1/search?q=queen")
        assert (status, "index_not_built" in said) == (409, True)
        assert it.get("/readyz")[0] == 200, "it answers, if only that"
        indexed(folder)
        status, said = it.get("/v1/search?q=queen")
        assert (status, "docs/a.md#" in said) == (200, True)
        assert "knowledge_role_active" in it.get("/metrics")[1]
        assert it.get("/")[0] == 200
        assert it.ended() == 0


def test_it_never_writes_to_the_index(folder: Path) -> None:
    indexed(folder)
    home = folder / "knowledge" / "knowledge"
    with serving(folder) as it:
        before = {path: path.read_bytes() for path in home.rglob("*") if path.suffix == ".db"}
        assert len(before) == 2
        for path in ("/v1/search?q=queen", "/v1/stats", "/v1/runs", "/", "/operations", "/metrics"):
            assert it.get(path)[0] == 200
        assert it.ended() == 0
    assert {path: path.read_bytes() for path in before} == before


def test_told_to_end_it_ends_streams_and_is_gone_in_time(folder: Path) -> None:
    indexed(folder)
    with serving(folder) as it, closing(HTTPConnection("127.0.0.1", it.port, timeout=30)) as connection:
        connection.request("GET", "/v1/events")
        stream = connection.getresponse()
        assert stream.status == 200
        assert it.ended() == 0
        with suppress(IncompleteRead):
            stream.read()
    assert '"ended"' in "".join(it.log) or "ended" in it.log[-1]


def test_the_token_stands_nowhere_but_where_it_was_put(folder: Path) -> None:
    """P28: not in a log, an answer or the arguments; who has it may ask."""
    environ = {"KNOWLEDGE_SERVER__OPERATE_TOKEN_ENV": "MY_TOKEN", "MY_TOKEN": TOKEN}
    with serving(folder, "--log-format", "json", "--health-host", "0.0.0.0", **environ) as it:
        assert it.get("/v1/runs")[0] == 401
        assert it.get("/v1/runs", Authorization="Bearer wrong-wrong-wrong")[0] == 401
        assert it.get("/v1/stats", Authorization=f"Bearer {TOKEN}")[0] == 409
        assert it.get("/readyz")[0] == 200
        arguments = Path(f"/proc/{it.process.pid}/cmdline")
        assert not arguments.exists() or TOKEN not in arguments.read_text("utf-8")
        assert it.ended() == 0
    assert TOKEN not in "".join(it.log) and "wrong-wrong" not in "".join(it.log)


@pytest.mark.parametrize(
    ("options", "environ", "words"),
    [
        (["--health-host", "0.0.0.0"], {}, "server.read_token_env"),
        ([], {"KNOWLEDGE_SERVER__HOST": "::"}, "no token is configured"),
        ([], {"KNOWLEDGE_SERVER__READ_TOKEN_ENV": "UNSET_TOKEN"}, "UNSET_TOKEN is not set"),
        ([], {"KNOWLEDGE_SERVER__READ_TOKEN_ENV": "SHORT", "SHORT": "hunter2"}, "fewer than 16"),
        ([], {"KNOWLEDGE_SERVER__READ_TOKEN_FILE": "nowhere"}, "is not there"),
        ([], {"KNOWLEDGE_SERVER__AUTH": "proxy"}, "server.trusted_proxies"),
    ],
)
def test_what_would_let_others_in_is_refused_before_anything_listens(
    folder: Path, options: list[str], environ: dict[str, str], words: str
) -> None:
    """T27: exit 2, the key is named, a secret is not repeated."""
    command = [*PROGRAM, "serve", "--config", "knowledge.yaml", "--health-port", str(free_port()), *options]
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "hunter2" not in ended.stderr
    assert "Traceback" not in ended.stderr and "listens" not in ended.stderr
