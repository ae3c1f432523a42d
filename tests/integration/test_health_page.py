"""The health page over real connections: few paths, few connections, none for long, and nothing that a header says."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.roles.role_log import make_log
from app.roles.role_metrics import RoleMetrics
from app.roles.runtime import Runtime
from domain.errors import UsageError
from domain.layout import BaseLayout
from domain.settings import ServerSettings, Settings
from server import health_server
from server.health_server import MAX_CONNECTIONS, bound_socket, show_health

EVIL = "evil.example"


@asynccontextmanager
async def page(runtime: Runtime) -> AsyncIterator[int]:
    """The port of a health page."""
    listening = bound_socket("127.0.0.1", 0)
    metrics = RoleMetrics(runtime.role)
    showing = asyncio.create_task(show_health(runtime, lambda: metrics.rendered(runtime.status), listening))
    try:
        yield listening.getsockname()[1]
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        listening.close()


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    settings = Settings("base", tmp_path / "home", None, configured=True)
    return Runtime(settings, BaseLayout(settings.home), "writer", "me", make_log("writer", "json"))


async def sent(port: int, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """What is answered to these bytes, until the connection closes: status, headers, body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw)
        async with asyncio.timeout(20):
            answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split(" ")[1]), dict(line.lower().split(": ", 1) for line in lines), body


def request(path: str, method: str = "GET", *more: str, host: str = "127.0.0.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *more, "", ""]).encode()


async def asked(port: int, path: str) -> tuple[int, dict[str, object]]:
    status, _, body = await sent(port, request(path))
    return status, json.loads(body)


async def test_what_a_role_says_while_it_waits_works_and_stands_by(runtime: Runtime) -> None:
    async with page(runtime) as port:
        assert await asked(port, "/healthz") == (200, {"status": "ok", "role": "writer"})
        status, said = await asked(port, "/readyz")
        assert (status, said["status"], said["waits_for"]) == (503, "waiting", "its start")
        runtime.status.is_active = True
        runtime.status.wait_for("")
        status, said = await asked(port, "/readyz")
        assert (status, said["status"], said["active"], said["waits_for"]) == (200, "ready", True, None)
        runtime.status.wait_for("room on the disk")
        status, said = await asked(port, "/readyz")
        assert (status, said["waits_for"]) == (503, "room on the disk")
        assert (await asked(port, "/healthz"))[0] == 200, "it waits, and it lives"
        runtime.status.is_active = False
        runtime.status.stands_by = True
        runtime.status.wait_for("knowledge writer, process 12")
        status, said = await asked(port, "/readyz")
        assert (status, said["status"]) == (200, "standby")


async def test_metrics_are_text_for_prometheus(runtime: Runtime) -> None:
    async with page(runtime) as port:
        status, headers, body = await sent(port, request("/metrics"))
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert headers["cache-control"] == "no-store"
    assert b"knowledge_write_commits_total 0.0" in body


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (request("/"), 404),
        (request("/healthz/"), 404),
        (request("/healthz/../metrics"), 404),
        (request("/docs"), 404),
        (request("/openapi.json"), 404),
        (request("/metrics?path=/etc/passwd"), 200),
        (request("/metrics", "POST"), 405),
        (request("/healthz", "DELETE"), 405),
        (request("/readyz", "OPTIONS"), 405),
        (request("/metrics", "GET", "Content-Length: 100000000"), 413),
        (request("/metrics", "GET", "Transfer-Encoding: chunked"), 413),
        (request("/metrics", "POST", "Content-Length: 3"), 413),
        (request("/healthz", "GET", "Content-Length: 0"), 200),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", 400),
    ],
)
async def test_what_is_not_served(runtime: Runtime, raw: bytes, expected: int) -> None:
    async with page(runtime) as port:
        assert (await sent(port, raw))[0] == expected
        assert (await asked(port, "/healthz"))[0] == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/healthz/", "/nothing"])
async def test_no_answer_depends_on_the_host_that_is_asked_for(runtime: Runtime, path: str) -> None:
    more = (
        f"X-Forwarded-Host: {EVIL}",
        f"Origin: http://{EVIL}",
        "X-Forwarded-Proto: https",
        f"Referer: http://{EVIL}",
    )
    async with page(runtime) as port:
        status, headers, body = await sent(port, request(path, "GET", *more, host=EVIL))
        plain = await sent(port, request(path))
    assert EVIL not in str(headers) + body.decode()
    assert "location" not in headers
    assert "access-control-allow-origin" not in headers
    assert status == plain[0]


async def test_who_sends_slowly_holds_a_place_only_for_a_while(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as are served at a time say nothing: others are refused meanwhile, and served when those are gone."""
    monkeypatch.setattr(health_server, "CONNECTION_LIVES_S", 1.0)
    async with page(runtime) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAX_CONNECTIONS)]
        for _, writer in silent:
            writer.write(b"GET /healthz HT")
        assert (await sent(port, request("/healthz")))[0] == 503
        async with asyncio.timeout(20):
            assert {await reader.read() for reader, _ in silent} == {b""}
        assert (await asked(port, "/healthz"))[0] == 200
        for _, writer in silent:
            writer.close()


async def test_nonsense_writes_nothing_into_the_log(runtime: Runtime, capfd: pytest.CaptureFixture[str]) -> None:
    async with page(runtime) as port:
        for raw in (b"\x00\x01\r\n\r\n", request("/", "GET", "Upgrade: websocket", "Connection: upgrade")):
            await sent(port, raw)
    assert capfd.readouterr() == ("", "")


def test_a_page_listens_on_this_machine_alone_unless_told_otherwise() -> None:
    settings = ServerSettings()
    assert (settings.host, settings.health_host) == ("127.0.0.1", "127.0.0.1")


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1") as caught:
            bound_socket("127.0.0.1", port)
    assert "--health-port" in caught.value.hint


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 300, "192.0.2.1"])
def test_a_place_that_is_not_here_is_said(host: str) -> None:
    with pytest.raises(UsageError, match="cannot listen on port 8766"):
        bound_socket(host, 8766)
