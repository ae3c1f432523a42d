"""Requests sent, answers judged: no fault of the service, no silence, nothing told that is not to be, and every answer
as the OpenAPI document describes it."""

import json
import re
import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.support.fuzz_requests import OPERATE, READ, FuzzRequest
from tests.support.fuzz_service import FuzzService

MOST_BYTES = 4_000_000
QUIET_S = 0.15  # after bytes that may be no whole request: what is answered is answered by then, or once they end
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_TOLD = (b"Traceback (most recent", b'File "', b"root:x:0:0", b"/server/http/")
_TOLD_TO_OPERATORS = (b"site-packages", b"sqlite3.")  # by the checks


class Answered(NamedTuple):
    data: bytes
    seconds: float
    is_ended: bool  # by the service, or whole: a stream of events is left after a part of it


@dataclass(slots=True)
class Report:
    statuses: Counter[str] = field(default_factory=Counter)  # "api 200"
    faults: list[tuple[str, FuzzRequest, bytes]] = field(default_factory=list)  # what, of which request, the answer
    slowest_s: float = 0.0
    checked: int = 0  # answers held against their schema

    def note(self, request: FuzzRequest, answered: Answered, faults: Iterable[str]) -> None:
        found = [status.decode() for status in statuses_of(answered.data)] or ["none"]
        self.statuses.update(f"{request.kind} {status}" for status in found)
        self.slowest_s = max(self.slowest_s, answered.seconds)
        self.faults += [(fault, request, answered.data[:2_000]) for fault in faults]

    def words(self) -> str:
        told = Counter(fault for fault, _, _ in self.faults)
        lines = [f"{name}: {count:,}" for name, count in sorted(self.statuses.items())]
        lines += [f"FAULT {name}: {count:,}" for name, count in told.items()]
        return "\n".join([*lines, f"slowest {self.slowest_s:.2f} s; {self.checked:,} answers fit their schema"])


def ask_all(
    service: FuzzService, requests: Sequence[FuzzRequest], document: Any, report: Report, *, hang_s: float, at_once: int
) -> None:
    """Adds to the report, in the order of the requests."""
    with ThreadPoolExecutor(at_once) as threads:
        answers = threads.map(partial(asked, service.port, hang_s=hang_s), requests)
        for request, answered in zip(requests, answers, strict=True):
            faults = list(faults_of(service, request, answered))
            if (misfit := misfit_of(document, request, answered.data)) is not None:
                report.checked += 1
                faults += [f"does not fit its schema: {misfit}"] * bool(misfit)
            report.note(request, answered, faults)


def asked(port: int, request: FuzzRequest, *, hang_s: float) -> Answered:
    """Sent on a connection of its own. Bytes that may be no whole request are followed by their end."""
    began = time.monotonic()
    data, is_ended, has_ended = bytearray(), False, False
    with socket.create_connection(("127.0.0.1", port), hang_s) as connection:
        connection.settimeout(hang_s if request.is_whole else QUIET_S)
        with suppress(OSError):  # it did not want the rest
            connection.sendall(request.data)
        while len(data) < MOST_BYTES and time.monotonic() - began < hang_s:
            try:
                some = connection.recv(65_536)
            except TimeoutError:
                if request.is_whole or has_ended:
                    continue
                has_ended = True
                connection.settimeout(hang_s)
                connection.shutdown(socket.SHUT_WR)
                continue
            except OSError:
                some = b""  # reset, after what was answered
            data += some
            if not some or b"content-type: text/event-stream" in data[:2_000].lower():
                is_ended = True
                break
    return Answered(bytes(data), time.monotonic() - began, is_ended)


def faults_of(service: FuzzService, request: FuzzRequest, answered: Answered) -> Iterable[str]:
    data = answered.data
    found = statuses_of(data)
    if not answered.is_ended and len(data) < MOST_BYTES:
        yield "hangs"
    if request.is_whole and not found:
        yield "no answer"
    if data and not data.startswith(b"HTTP/1.1 "):
        yield "no HTTP"
    yield from (
        f"status {status.decode()}" for status in found if status >= b"500" and not _is_meant(status, request, data)
    )
    yield from (f"tells {told.decode()}" for told in _TOLD if told in data and told not in request.data)
    if OPERATE.encode() not in request.data:
        yield from (f"tells {told.decode()}" for told in _TOLD_TO_OPERATORS if told in data)
        yield from ("tells a place" for place in service.places if place.encode() in data)
    yield from ("tells a token" for token in (READ, OPERATE) if token.encode() in data)


def _is_meant(status: bytes, request: FuzzRequest, data: bytes) -> bool:
    """503 says when to come again (or that a role is not ready); 501 is for a coding of the body that is not known."""
    comes_again = b"retry-after" in data.lower() or b"/readyz" in request.data
    return (status == b"503" and comes_again) or (status == b"501" and b"transfer-encoding" in request.data.lower())


def statuses_of(data: bytes) -> list[bytes]:
    return _STATUS.findall(data)


def misfit_of(document: Any, request: FuzzRequest, data: bytes) -> str | None:
    """What is wrong with an answer by the OpenAPI document: "" for nothing, None where it says nothing of it."""
    if request.operation is None or not data:
        return None
    head, _, body = data.partition(b"\r\n\r\n")
    method, path = request.operation
    responses = document["paths"][path][method]["responses"]
    status, headers = head[9:12].decode("latin-1"), _headers(head)
    told = responses.get(status) or responses.get(f"{status[0]}XX")
    if told is None:
        return f"status {status} is not described"
    media = headers.get("content-type", "").partition(";")[0]
    if "content" not in told:
        return f"status {status} has a body" if body else ""
    if media not in told["content"]:
        return f"status {status} has the type {media or 'none'}"
    if media == "text/event-stream":
        return ""
    schema = told["content"][media]["schema"] | {"components": document["components"]}
    return _misfit(schema, media, _unchunked(body) if "transfer-encoding" in headers else body)


def _misfit(schema: Any, media: str, body: bytes) -> str:
    check = Draft202012Validator(schema)
    for line in body.splitlines() if media == "application/x-ndjson" else [body]:
        try:
            value = json.loads(line)
        except ValueError:
            return f"no JSON: {line[:80]!r}"
        if (error := next(iter(check.iter_errors(value)), None)) is not None:
            return f"{error.json_path}: {str(error.message)[:200]}"
    return ""


def _headers(head: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in lines}


def _unchunked(body: bytes) -> bytes:
    parts = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        parts.append(rest[:length])
        body = rest[length + 2 :] if length else b""
    return b"".join(parts)


def openapi_of(service: FuzzService) -> Any:
    connection = HTTPConnection("127.0.0.1", service.port, timeout=30)
    connection.request("GET", "/v1/openapi.json", headers={"Authorization": f"Bearer {READ}"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer
