"""Ways in which the server of embeddings treats a connection as no server should; each returns whether it goes on."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Mapping
from functools import cache

from tests.support.embedding_lies import HTML_PAGE, JSON, Answer

DRIP_S = 0.05  # between two bytes of a dripping answer
REASONS = {200: "OK", 204: "No Content", 307: "Temporary Redirect", 503: "Service Unavailable"}


async def send(writer: asyncio.StreamWriter, answer: Answer, extra_headers: str = "") -> None:
    head = (
        f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Status')}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\n{extra_headers}\r\n"
    )
    writer.write(head.encode() + answer.body)
    await writer.drain()


async def _hang(writer: asyncio.StreamWriter) -> bool:
    await writer.wait_closed()
    return False


async def _drip(writer: asyncio.StreamWriter) -> bool:
    """A byte now and then: each read succeeds, the whole never does."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(DRIP_S)


def _redirect(location: str) -> Callable[[asyncio.StreamWriter], Awaitable[bool]]:
    async def answer(writer: asyncio.StreamWriter) -> bool:
        await send(writer, Answer(307, b""), f"Location: {location}\r\n")
        return True

    return answer


async def _gzip_bomb(writer: asyncio.StreamWriter) -> bool:
    await send(writer, Answer(200, _bomb()), "Content-Encoding: gzip\r\n")
    return True


@cache
def _bomb() -> bytes:
    """200 MB of spaces in 200 KB."""
    member = gzip.compress(b" " * 10_000_000)
    return member * 20


async def _endless(writer: asyncio.StreamWriter) -> bool:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()


async def _not_http(writer: asyncio.StreamWriter) -> bool:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n" + HTML_PAGE)
    await writer.drain()
    return False


async def _half_body(writer: asyncio.StreamWriter) -> bool:
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nContent-Length: 5000\r\n\r\n".encode() + b'{"data":[')
    await writer.drain()
    return False


TRICKS: Mapping[str, Callable[[asyncio.StreamWriter], Awaitable[bool]]] = {
    "hang": _hang,
    "drip": _drip,
    "redirect": _redirect("http://169.254.169.254/latest/meta-data"),
    "redirect_malformed": _redirect("http://[::1/v1/embeddings"),
    "gzip_bomb": _gzip_bomb,
    "endless": _endless,
    "not_http": _not_http,
    "half_body": _half_body,
}
