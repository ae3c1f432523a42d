"""Messages to /mcp, and bytes that are no request, not a whole one, or more than one."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.support.fuzz_requests import (
    OPERATE,
    PAGES,
    READ,
    TEXTS,
    FuzzRequest,
    api_requests,
    broken_json,
    drawn,
    message,
    page_requests,
)

KINDS = ("api", "page", "mcp", "raw")

_TOOLS = ("knowledge_search", "knowledge_enumerate", "knowledge_read", "knowledge_reset", "")
_ARGUMENTS = ("query", "top_k", "citation", "root", "path", "cursor", "mode", "limit", "target", "before", "lines")
_METHODS = (
    "tools/call", "tools/call", "tools/list", "initialize", "ping", "resources/read", "resources/list", "x",
    "notifications/initialized", "notifications/cancelled", "resources/templates/list", "completion/complete",
    "logging/setLevel", "prompts/list", "server/discover",
)  # fmt: skip
_VALUES = st.one_of(TEXTS, st.integers(), st.floats(), st.none(), st.booleans(), st.lists(st.integers(), max_size=3))
_ODD_MESSAGES = (
    b"[]", b"{}", b"null", b"[[]]", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b"7",
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    b"[" + b'{"jsonrpc":"2.0","id":1,"method":"ping"},' * 1_000 + b"{}]", b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}',
)  # fmt: skip


@st.composite
def mcp_requests(draw: st.DrawFn) -> FuzzRequest:
    method = draw(st.sampled_from(_METHODS))
    arguments = draw(st.dictionaries(st.sampled_from(_ARGUMENTS), _VALUES, max_size=3))
    params: dict[str, object] = {"name": draw(st.sampled_from(_TOOLS)), "arguments": arguments}
    if method == "resources/read":
        params = {
            "uri": draw(st.one_of(st.just("knowledge://docs/plain.md#0"), TEXTS, TEXTS.map("knowledge://{}".format)))
        }
    elif method == "initialize":
        params = {"protocolVersion": draw(TEXTS), "capabilities": {}, "clientInfo": {"name": "f", "version": "1"}}
    elif method != "tools/call":
        params = draw(st.dictionaries(TEXTS, _VALUES, max_size=2))
    body = json.dumps({"jsonrpc": "2.0", "id": draw(st.integers(0, 9)), "method": method, "params": params}).encode()
    if draw(st.integers(0, 3)) == 0:
        body = draw(st.one_of(st.sampled_from(_ODD_MESSAGES), broken_json(body)))
    headers = {
        "Authorization": f"Bearer {draw(st.sampled_from([READ, OPERATE, READ, 'x']))}",
        "Content-Type": draw(st.sampled_from(["application/json"] * 5 + ["text/plain", "application/json; charset=x"])),
        "Accept": draw(st.sampled_from(["application/json, text/event-stream"] * 3 + ["*/*", "text/html", ""])),
    }
    if draw(st.booleans()):
        versions = ["2025-06-18", "2025-11-25", "1", "\x80", "2099-01-01"]
        headers["Mcp-Protocol-Version"] = draw(st.sampled_from(versions))
        headers["Mcp-Session-Id"] = draw(st.sampled_from(["x", "", "\x80"]))
    verb = draw(st.sampled_from(["POST"] * 9 + ["GET", "DELETE", "PUT"]))
    return FuzzRequest("mcp", message(verb, "/mcp", headers, body))


_LINES = (
    b"GET / HTTP/1.1", b"GET /v1/stats HTTP/1.1", b"POST /v1/runs HTTP/1.1", b"POST /mcp HTTP/1.1", b"GET / HTTP/1.0",
    b"GET /", b"GET", b"", b"\x00", b"GET / HTTP/9.9", b"GET  / HTTP/1.1", b"get / http/1.1", b"GET / HTTP/1.1 x",
    b"GET http://127.0.0.1/v1/stats HTTP/1.1", b"GET http://evil.example/ HTTP/1.1",
    b"CONNECT evil.example:443 HTTP/1.1",
    b"OPTIONS * HTTP/1.1", b"GET //etc/passwd HTTP/1.1", b"GET /../../etc/passwd HTTP/1.1", b"GET /\x80\xff HTTP/1.1",
    b"GET /v1/search?q=\xff HTTP/1.1", b"GET /v1/search?q=a\x00b HTTP/1.1", b"GET /" + b"a" * 20_000 + b" HTTP/1.1",
    b"PRI * HTTP/2.0", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"HEAD /v1/events HTTP/1.1",
    b"GET ?q=a HTTP/1.1",
    b"GET /v1/documents/%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1", b"GET /%00 HTTP/1.1", b"GET /v1/chunks/% HTTP/1.1",
    b"GET # HTTP/1.1", b"GET /#a HTTP/1.1", b"GET http://[::1 HTTP/1.1", b"GET http://:x@/ HTTP/1.1",
    b"TRACE / HTTP/1.1",
)  # fmt: skip
_HEADS = (
    b"Host: 127.0.0.1", b"Host: 127.0.0.1", b"Host: evil.example", b"Host:", b"Host: a, b", b"Host: [::1]:99999",
    b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: 5, 5", b"Content-Length: 99999999999999999999",
    b"Content-Length: 0x5", b"Content-Length: " + b"9" * 5_000, b"Transfer-Encoding: chunked",
    b"Content-Length: " + b"9" * 18, b"Content-Length: 5, 6",
    b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding : chunked",
    b"Expect: 100-continue",
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13",
    b"Connection: close",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings", b"X: " + b"a" * 20_000, b": x", b"X", b" folded", b"X:\x00",
    b"X: \xff\xfe", b"X\x80: 1", b"Content-Type: application/json", b"Connection: keep-alive", b"Range: bytes=0-1",
    b"Authorization: Bearer " + OPERATE.encode(), b"Cookie: " + b"a=b; " * 500, b"\r", b"\n",
    b"Accept-Encoding: gzip, x",
)  # fmt: skip
_BODIES = (
    b"", b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"ZZ\r\nhello\r\n", b"-1\r\n", b"fffffffffffffffff\r\n",
    b"0\r\n\r\n",
    b"5;" + b"x" * 9_000 + b"\r\nhello\r\n", b"5\r\nhello0\r\n\r\n", b"1\r\na\r\n" * 300, b"0\r\nX: 1\r\n\r\n",
    b"\x00" * 500,
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"x" * 70_000,
    b"0\r\n\r\nGET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
)  # fmt: skip


_GOOD = tuple(
    message(method, target, {"Authorization": f"Bearer {OPERATE}", "Content-Type": kind}, body).replace(
        b"Connection: close\r\n", b""
    )
    for method, target, kind, body in (
        ("GET", "/v1/search?q=quagga", "", b""),
        ("GET", "/v1/match.ndjson?q=quagga", "", b""),
        ("GET", "/?q=quagga", "", b""),
        ("POST", "/v1/runs", "application/json", b'{"kind":"verify"}'),
        ("POST", "/mcp", "application/json", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
        ("HEAD", "/static/pages.css", "", b""),
        ("GET", "/v1/events", "", b""),
    )
)


@st.composite
def raw_requests(draw: st.DrawFn) -> FuzzRequest:
    """More than one of them: sent without waiting for an answer."""
    parts = draw(st.lists(st.one_of(st.sampled_from(_GOOD), _pieces()), min_size=1, max_size=4))
    data = b"".join(parts)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        middle = draw(
            st.one_of(st.just(b""), st.binary(max_size=8), st.just(data[at:end] * 2), st.sampled_from(_HEADS))
        )
        data = data[:at] + middle + data[end:]
    if draw(st.integers(0, 5)) == 0:
        data = data[: draw(st.integers(0, len(data)))]
    return FuzzRequest("raw", data or b"\x00", is_whole=False)


@st.composite
def _pieces(draw: st.DrawFn) -> bytes:
    """A line, headers and a body that have little to do with each other."""
    end = draw(st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r"]))
    heads = draw(st.lists(st.sampled_from(_HEADS), max_size=5))
    heads = heads if draw(st.booleans()) else [b"Host: 127.0.0.1", *heads]
    piece = end.join([draw(st.sampled_from(_LINES)), *heads, b"", b""]) + draw(st.sampled_from(_BODIES))
    return piece * draw(st.sampled_from([1, 1, 1, 20])) if len(piece) < 1_000 else piece


def requests_of(kind: str, document: Any, number: int, count: int) -> list[FuzzRequest]:
    """About so many, the same for the same number; of every operation, and every page, as many as of any other."""
    found: list[st.SearchStrategy[FuzzRequest]] = [mcp_requests() if kind == "mcp" else raw_requests()]
    if kind == "api":
        found = [api_requests(document, path, method) for path, told in document["paths"].items() for method in told]
    elif kind == "page":
        found = [page_requests(page) for page in PAGES]
    return [one for strategy in found for one in drawn(strategy, number, max(2, count // len(found)))]
