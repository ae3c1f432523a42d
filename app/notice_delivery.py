"""Carrying a message to where it is read: a POST to an address, or a program's standard input.

An operator has chosen both, and neither is trusted with more than the message: no redirects, no proxies from the
environment, little of an answer read, and an end to every wait.
"""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from app.config import secret
from domain.settings import NotifySettings
from embedding.addresses import ServerAddress, check_base_url, parse_base_url

if TYPE_CHECKING:
    import http.client

TRIES = 3
FIRST_PAUSE_S = 1.0
ANSWER_CAP_BYTES = 2000
_JSON = {"Content-Type": "application/json", "User-Agent": "knowledge", "Connection": "close"}


class Delivery(Struct, frozen=True):
    """How a message fared. `detail` holds no secret: of an address, its host alone."""

    is_delivered: bool
    to: str  # in words: a host, or a program
    detail: str
    tries: int = 1
    may_pass: bool = False  # a failure that another try may mend


def deliver(
    settings: NotifySettings,
    message: Mapping[str, object],
    *,
    value_of: Callable[[str], str | None] = secret,
    pause: Callable[[float], None] = time.sleep,
) -> Delivery:
    """Try a few times; raises nothing. `value_of`: what a variable holds."""
    body = json.dumps(message).encode()
    delivery = Delivery(False, "", "")
    for number in range(1, TRIES + 1):
        if settings.command:
            delivery = _to_program(settings.command, body, settings.timeout_s)
        else:
            delivery = _to_address(settings, body, value_of)
        delivery = Delivery(delivery.is_delivered, delivery.to, delivery.detail, number, delivery.may_pass)
        if delivery.is_delivered or not delivery.may_pass or number == TRIES:
            break
        pause(FIRST_PAUSE_S * 4 ** (number - 1))
    return delivery


def beat(
    variable: str, settings: NotifySettings | None = None, *, value_of: Callable[[str], str | None] = secret
) -> Delivery:
    """Ask for the address that a schedule's heartbeat variable holds, once; raises nothing."""
    chosen = settings or NotifySettings()
    return _request("GET", variable, b"", chosen.timeout_s, chosen.insecure_hosts, value_of)


def _to_address(settings: NotifySettings, body: bytes, value_of: Callable[[str], str | None]) -> Delivery:
    return _request("POST", settings.url_env, body, settings.timeout_s, settings.insecure_hosts, value_of)


def _request(
    method: Literal["GET", "POST"],
    variable: str,
    body: bytes,
    timeout_s: float,
    insecure_hosts: Collection[str],
    value_of: Callable[[str], str | None],
) -> Delivery:
    url = (value_of(variable) or "").strip()
    if not url:
        return Delivery(False, f"the address in {variable}", f"the variable {variable} is not set")
    base, mark, query = url.partition("?")
    if problem := _problem(base, query, insecure_hosts):
        return Delivery(False, f"the address in {variable}", f"the address in {variable} {problem}")
    address = parse_base_url(base)
    # the path as it was written: a slash at its end may matter
    path = base.split("://", 1)[1].partition("/")[2]
    try:
        status, answer = _exchange(address, method, f"/{path}{mark}{query}", body, timeout_s)
    except Exception as error:  # noqa: BLE001 - whatever a server may do, the caller's work is not to suffer
        return Delivery(False, address.shown_host, _reason(error, timeout_s), may_pass=True)
    if 200 <= status < 300:
        return Delivery(True, address.shown_host, f"answered {status}")
    moved = ", which is not followed: write the address that it leads to" if 300 <= status < 400 else ""
    said = f": {answer}" if answer and not moved else ""
    return Delivery(
        False, address.shown_host, f"answered {status}{moved}{said}", may_pass=status >= 500 or status == 429
    )


def _problem(base: str, query: str, insecure_hosts: Collection[str]) -> str:
    problem = check_base_url(base, insecure_hosts).replace("embeddings.insecure_hosts", "notify.insecure_hosts")
    if problem.startswith("must not hold a user name"):
        return "must not hold a user name or password"
    if not problem and not (query.isascii() and query.isprintable() and " " not in query and "#" not in query):
        return "must not hold a space, # or a control character"
    return problem


def _exchange(address: ServerAddress, method: str, target: str, body: bytes, timeout_s: float) -> tuple[int, str]:
    """Status and the beginning of the answer. All of it, but the look-up of the name, within the time."""
    import http.client

    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=timeout_s)
    watchdog = threading.Timer(timeout_s, _cut, [connection])
    watchdog.daemon = True
    watchdog.start()
    try:
        connection.request(method, target, body=body or None, headers=_JSON if body else {**_JSON, "Accept": "*/*"})
        response = connection.getresponse()
        answer = response.read(ANSWER_CAP_BYTES).decode("utf-8", "replace")
        return response.status, " ".join(answer.split())
    finally:
        watchdog.cancel()
        connection.close()


def _cut(connection: "http.client.HTTPConnection") -> None:
    """Whoever sends a byte now and then is not waited for."""
    import socket

    with contextlib.suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _reason(error: Exception, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"did not answer within {timeout_s:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"gave no proper answer ({type(error).__name__})"


def _to_program(command: tuple[str, ...], body: bytes, timeout_s: float) -> Delivery:
    """The message on standard input. At the limit the program and all that it has started are killed."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Delivery(False, command[0], f"could not be started: {reason}")
    try:
        process.communicate(body, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        return Delivery(False, command[0], f"did not end within {timeout_s:g} s and was killed")
    except BaseException:
        _kill(process)
        raise
    if process.returncode == 0:
        return Delivery(True, command[0], "ended with 0")
    ending = f"by signal {-process.returncode}" if process.returncode < 0 else f"with {process.returncode}"
    return Delivery(False, command[0], f"ended {ending}", may_pass=process.returncode > 0)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
