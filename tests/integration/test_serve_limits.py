"""The HTTP service over real connections: endless, slow and malformed requests, and many of them (T27, T28)."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.config import Loaded
from app.discovery import Located
from app.roles.role_log import make_log
from app.roles.role_metrics import RoleMetrics
from app.roles.runtime import Runtime
from domain.layout import BaseLayout
from domain.settings import ServerSettings, Settings
from server.health import health_app
from server.health_server import bound_socket
from server.http import connections, limits
from server.http.connections import answer_at
from server.http.limits import MAX_BODY_BYTES, MAX_HEAD_BYTES
from server.http.service import http_parts, service_app
from tests.support.bases import build_base

GIGABYTE = 1024**3
JSON = "Content-Type: application/json"
STEER = "/v1/runs"  # a POST, whose body is read


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return build_base(tmp_path_factory.mktemp("base"))


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[int]:
    """The port of a whole service: health and all."""
    listening = bound_socket("127.0.0.1", 0)
    port: int = listening.getsockname()[1]
    settings = replace(settings, server=replace(settings.server, port=port))
    runtime = Runtime(settings, BaseLayout(settings.home), "serve", "me", make_log("serve", "json"))
    metrics = RoleMetrics("serve")
    with http_parts(Loaded(Located("store", None, settings.home), settings)) as parts:
        app = service_app(parts, health_app(runtime, lambda: metrics.rendered(runtime.status)))
        answering = asyncio.create_task(answer_at(listening, app, closing=parts.closing))
        try:
            yield port
        finally:
            parts.closing.set()
            async with asyncio.timeout(20):
                await answering


def request(path: str, method: str = "GET", *more: str, host: str = "127.0.0.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *more, "", ""]).encode()


async def sent(port: int, *pieces: bytes, pause_s: float = 0.0) -> tuple[int, bytes]:
    """Status and everything that is answered to these bytes, until the service ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            await asyncio.sleep(pause_s)
        answer = b""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(30):
                answer = await reader.read()
    finally:
        writer.close()
    return int(answer.split(b" ", 2)[1]) if answer else 0, answer


async def asked(port: int, path: str = "/v1/search?q=fox") -> int:
    status, _ = await sent(port, request(path, "GET", "Connection: close"))
    return status


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (request(STEER, "POST", JSON, f"Content-Length: {GIGABYTE}"), 413),
        (request(STEER, "POST", JSON, f"Content-Length: {MAX_BODY_BYTES + 1}") + b"{", 413),
        (request("/v1/search?q=fox", "GET", f"Content-Length: {GIGABYTE}"), 413),
        (request(STEER, "POST", JSON, "Content-Length: 9999999999999999999999"), 400),
        (request(STEER, "POST", JSON, "Content-Length: -1"), 400),
        (request(STEER, "POST", JSON, "Content-Length: 1", "Content-Length: 2"), 400),
        (
            request(STEER, "POST", JSON, "Content-Length: 2", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n",
            400,
        ),
        (request(STEER, "POST", JSON, "Transfer-Encoding: gzip"), 501),
        (request(STEER, "POST", JSON, "Transfer-Encoding: chunked") + b"zz\r\n", 400),
        (b"GET /v1/runs HTTP/1.1\r\n\r\n", 400),
        (b"GET /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
        (b"GET /v1/runs HTTP/1.0\r\n\r\n", 421),
        (request("/v1/runs", "GET", "Connection: close", host="evil.example"), 421),
        (request("/v1/runs", "GET", f"X-Long: {'a' * MAX_HEAD_BYTES}"), 431),
        (request("/v1/runs", "GET", f"X-Long: {'a' * 300_000}"), 431),
        (request("/v1/runs", "GET", *[f"X-{number}: a" for number in range(120)]), 431),
        (request("/" + "a" * 9000, "GET"), 414),
        (request("/v1/search?q=" + "a" * 9000, "GET"), 414),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"GET /v1/runs\r\n\r\n", 400),
        (b"\x00" * 100 + b"\r\n\r\n", 400),
    ],
)
async def test_what_is_refused_at_once(base: Settings, raw: bytes, status: int) -> None:
    """T28: by its head alone; the answer is whole, says nothing of us, and the connection ends."""
    async with service(base) as port:
        got, answer = await sent(port, raw)
        assert got == status
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"connection: close" in head.lower()
        assert b"problem+json" in head
        assert b"Traceback" not in answer and b"/" not in body.replace(b"Transfer-Encoding", b"")
        json.loads(body)
        assert await asked(port) == 200


async def test_a_body_without_end_is_let_go_at_its_limit(base: Settings) -> None:
    """T28: chunks for ever; what is read stays bounded, and the client gets to see why."""
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    async with service(base) as port:
        head = request(STEER, "POST", JSON, "Transfer-Encoding: chunked")
        status, answer = await sent(port, head, *[chunk] * 40)
        assert status == 413
        assert b"too_large" in answer
        assert await asked(port) == 200


async def test_who_sends_without_reading_still_sees_the_refusal(base: Settings) -> None:
    """As simple clients do: half a megabyte at once behind a head that is refused."""
    async with service(base) as port:
        head = request(STEER, "POST", JSON, f"Content-Length: {GIGABYTE}")
        status, _ = await sent(port, head + b"a" * 500_000)
        assert status == 413


async def test_a_slow_head_is_let_go(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """T28: byte by byte, also behind a request that was answered."""
    monkeypatch.setattr(connections, "HEAD_WITHIN_S", 0.4)
    slow = [bytes([byte]) for byte in request("/v1/runs")[:40]]
    async with service(base) as port:
        assert (await sent(port, *slow, pause_s=0.03))[0] == 0
        assert (await sent(port))[0] == 0, "who says nothing"
        status, answer = await sent(port, request("/v1/runs"), b"GET /v1/se")
        assert (status, answer.count(b"HTTP/1.1 ")) == (200, 1)


async def test_a_slow_body_is_let_go(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_WITHIN_S", 0.3)
    async with service(base) as port:
        head = request(STEER, "POST", JSON, "Content-Length: 100")
        status, answer = await sent(port, head, *[b" "] * 10)
        assert (status, b"too_slow" in answer) == (408, True)


async def test_who_does_not_take_the_answer_in_is_let_go(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would hold what it was answered for ever."""
    monkeypatch.setattr(connections, "STALLED_S", 0.3)

    ended: list[bool] = []

    async def endless(scope: dict[str, object], receive: object, send: object) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
            while True:
                await send({"type": "http.response.body", "body": b"a" * 65536, "more_body": True})  # type: ignore[operator]
                await asyncio.sleep(0)
                if ended:
                    return

    from anyio import Event

    closing = Event()
    listening = bound_socket("127.0.0.1", 0)
    answering = asyncio.create_task(answer_at(listening, endless, closing=closing))  # type: ignore[arg-type]
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, listening.getsockname())
        await loop.sock_sendall(client, request("/"))
        await asyncio.sleep(1.0)
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(20):
                while await loop.sock_recv(client, 65536):
                    pass
                raise ConnectionResetError  # an end without a reset is as good
    ended.append(True)
    closing.set()
    async with asyncio.timeout(20):
        await answering


async def test_a_thousand_idle_connections_keep_nobody_out(base: Settings) -> None:
    """T28: those that have said nothing for longest are let go for those that come."""
    async with service(base) as port:
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
        for _, writer in idle:
            writer.write(b"GET /v1/se")
        for _ in range(7):
            idle += [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
            assert await asked(port) == 200
            assert await asked(port, "/healthz") == 200
        assert len(idle) == 1000
        for _, writer in idle:
            writer.close()


async def test_more_requests_than_are_worked_on_are_told_to_come_again(
    base: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And health is answered all the same."""
    monkeypatch.setattr(limits, "MOST_REQUESTS", 0)
    async with service(base) as port:
        status, answer = await sent(port, request("/v1/runs", "GET", "Connection: close"))
        assert status == 503
        assert b"retry-after: 1" in answer.lower()
        assert await asked(port, "/healthz") == 200
        assert await asked(port, "/metrics") == 200
        assert (await sent(port, request(STEER, "POST", JSON, "Content-Length: 2", "Connection: close") + b"{}"))[
            0
        ] == 503


async def test_several_requests_on_one_connection(base: Settings) -> None:
    async with service(base) as port:
        first, second = request("/v1/runs"), request("/v1/stats", "GET", "Connection: close")
        _, answer = await sent(port, first + second)
        assert answer.count(b"HTTP/1.1 200 OK") == 2
        assert b"server:" not in answer.lower()


async def test_the_end_lets_answers_out_and_ends_streams(base: Settings) -> None:
    """An event stream stays open for as long as somebody listens; the service's end is its end."""
    async with asyncio.timeout(25):
        async with service(base) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request("/v1/events"))
            assert b" 200 " in await reader.readline()
        await reader.read()
        writer.close()


async def test_a_page_may_not_read_over_a_foreign_name(base: Settings) -> None:
    """T27, over a socket: IPv6 names and ports pass, others do not."""
    async with service(replace(base, server=ServerSettings())) as port:
        for host, status in (
            (f"[::1]:{port}", 200),
            (f"localhost:{port}", 200),
            ("evil.example", 421),
            (f"[::1].evil:{port}", 421),
        ):
            assert (await sent(port, request("/v1/runs", "GET", "Connection: close", host=host)))[0] == status


def test_places_are_counted_by_the_files_that_may_be_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import resource

    for soft, most in ((1024, 256), (64, 32), (1_000_000, 512), (resource.RLIM_INFINITY, 512)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert connections.most_connections() == most
