"""The local model behind OpenAI's /embeddings: a small server for this machine, or for a network of containers.

Strict about what it is sent, and without memory of it: no text is kept or written to a log. There is no password, so
it listens where only this machine can reach it unless somebody says otherwise.
"""

import asyncio
import contextlib
import errno
import signal
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.decoding import UNDECODABLE
from domain.errors import UsageError
from domain.vectors import MAX_INPUT_BYTES
from embedding.local import DIMENSION, TEXTS_A_SLICE, LocalModel, local_model
from embedding.unit_vectors import STORED

MAX_INPUTS = 2048
MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_CONNECTIONS = 64  # more are told to come again: 503
END_WITHIN_S = 10  # what is being worked on is answered before the end


class Refusal(Exception):  # noqa: N818 - an answer, in the shape of OpenAI's errors
    def __init__(self, status: int, message: str, *, parameter: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.parameter = parameter
        self.code = code


class Asked(NamedTuple):
    texts: list[str]
    as_base64: bool


def embeddings_app(model: LocalModel, model_name: str) -> Starlette:
    """The endpoints: POST /v1/embeddings, GET /v1/models, GET /healthz."""
    turns = asyncio.Semaphore(1)  # the tokenizer takes all processors already

    async def embeddings(request: Request) -> Response:
        asked = _asked(await _body(request), model_name)
        async with turns:
            vectors, token_count = await _embedded(model, asked.texts)
        data = [
            {"object": "embedding", "index": index, "embedding": _written(vector, as_base64=asked.as_base64)}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": token_count, "total_tokens": token_count}
        return _json({"object": "list", "data": data, "model": model_name, "usage": usage})

    async def models(_request: Request) -> Response:
        return _json({"object": "list", "data": [{"id": model_name, "object": "model", "owned_by": "local"}]})

    async def healthz(_request: Request) -> Response:
        return _json({"status": "ok", "model": model_name, "dimension": DIMENSION})

    return Starlette(
        routes=[
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/models", models, methods=["GET"]),
            Route("/healthz", healthz, methods=["GET"]),
        ],
        exception_handlers={Refusal: _refused, HTTPException: _not_here, Exception: _broken},
    )


async def _embedded(model: LocalModel, texts: Sequence[str]) -> tuple[list[bytes], int]:
    """The vectors and the number of tokens; in a thread, a slice at a time, so that others are heard meanwhile."""
    vectors: list[bytes] = []
    token_count = 0
    for start in range(0, len(texts), TEXTS_A_SLICE):
        made, counted = await asyncio.to_thread(model.counted_vectors, texts[start : start + TEXTS_A_SLICE])
        vectors += made
        token_count += counted
    return vectors, token_count


async def _body(request: Request) -> bytes:
    """The body, never more of it than is taken."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # what a web page may send unasked is none
        raise Refusal(415, "send JSON, with Content-Type: application/json")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise Refusal(413, f"the request is larger than {MAX_BODY_BYTES} bytes", code="request_too_large")
    return bytes(body)


def _asked(body: bytes, model_name: str) -> Asked:
    try:
        value = msgspec.json.decode(body)
    except UNDECODABLE:
        raise Refusal(400, "the request is not JSON") from None
    if not isinstance(value, dict):
        raise Refusal(400, "the request is not a JSON object")
    model = value.get("model", model_name)
    if model != model_name:
        raise Refusal(404, f"there is no such model here: only {model_name}", parameter="model", code="model_not_found")
    if value.get("dimensions") not in (None, DIMENSION):
        raise Refusal(400, f"dimensions can only be {DIMENSION}", parameter="dimensions")
    encoding = value.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise Refusal(400, "encoding_format can only be float or base64", parameter="encoding_format")
    return Asked(_texts(value.get("input")), encoding == "base64")


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise Refusal(400, "input must be a string or a list of strings", parameter="input")
    if len(texts) > MAX_INPUTS:
        raise Refusal(413, f"{len(texts)} inputs are more than {MAX_INPUTS}", parameter="input", code="too_many_inputs")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise Refusal(400, f"input {index} is not a string", parameter="input")
        if not text.strip():
            raise Refusal(400, f"input {index} is blank", parameter="input")
        if len(text.encode("utf-8", "surrogatepass")) > MAX_INPUT_BYTES:
            words = f"input {index} is longer than the maximum input length, {MAX_INPUT_BYTES} bytes"
            raise Refusal(413, words, parameter="input", code="input_too_long")
    return texts


def _written(vector: bytes, *, as_base64: bool) -> str | list[float]:
    if as_base64:
        return b64encode(vector).decode()
    numbers: list[float] = np.frombuffer(vector, dtype=STORED).tolist()
    return numbers


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


def _error(refusal: Refusal) -> Response:
    kind = "server_error" if refusal.status >= 500 else "invalid_request_error"
    error = {"message": refusal.message, "type": kind, "param": refusal.parameter, "code": refusal.code}
    return _json({"error": error}, refusal.status)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _error(error)


async def _not_here(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(Refusal(error.status_code, "there is POST /v1/embeddings, GET /v1/models and GET /healthz"))


async def _broken(_request: Request, _error_unseen: Exception) -> Response:
    return _error(Refusal(500, "something went wrong here"))


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that nobody else can listen on from now on; port 0 chooses a free one. Raises UsageError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UsageError(f"{host!r} is no address of this machine", hint="leave --host out for 127.0.0.1") from None
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        raise _unusable(host, port, error) from None
    return listening


def _unusable(host: str, port: int, error: OSError) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        return UsageError(f"port {port} of {host} is taken", hint="choose another with --port; 0 takes a free one")
    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"{host!r} is no address of this machine", hint="leave --host out for 127.0.0.1")
    return UsageError(f"cannot listen on port {port} of {host}: {error.strerror}", hint="choose another with --port")


class _Server(uvicorn.Server):
    """Ends by a signal as a program does, with its own exit status: uvicorn would end the process by that signal."""

    def __init__(self, config: uvicorn.Config, when_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._when_ready = when_ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._when_ready()


def serve(listening: socket.socket, model_name: str, when_ready: Callable[[], None]) -> int:
    """Serve on a bound socket until SIGTERM or Ctrl-C; the exit status (0, 130). To be called on the main thread.

    Raises ConfigurationError where the local model is not installed.
    """
    config = uvicorn.Config(
        embeddings_app(local_model(), model_name),
        access_log=False,
        log_config=None,
        lifespan="off",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=END_WITHIN_S,
        server_header=False,
    )
    server = _Server(config, when_ready)
    ended_by: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        ended_by.append(number)
        server.handle_exit(number, frame)

    # a job in the background of a script ignores SIGINT: it goes on doing so
    taken = [signal.SIGTERM] if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else [signal.SIGINT, signal.SIGTERM]
    before = {number: signal.signal(number, end) for number in taken}
    try:
        asyncio.run(server.serve(sockets=[listening]))
    finally:
        listening.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    return 130 if ended_by and ended_by[0] == signal.SIGINT else 0
