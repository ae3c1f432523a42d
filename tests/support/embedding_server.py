"""A real HTTP server of embeddings on the loopback interface, for tests and measurements.

    with embedding_server(dimension=384, delay_s=0.05, lie_rate=0.3, seed=7) as server:
        settings = EmbeddingsSettings(base_url=server.url, model="any", ...)
        ...
        assert server.texts_seen == [...]

The vector of a text is `vector_of(text, dimension)`, a pure function, so that any stored vector can be checked with
`is_vector_of(stored, text, dimension)`. The objects of an answer are always shuffled. Every field of `Behaviour` is
an argument of `embedding_server`, and may be changed while it runs: `server.behaviour.delay_s = 1.0`.

It runs in a thread with a loop of its own. `take_down`, `bring_up` may be called from any thread.
"""

import asyncio
import contextlib
import random
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import shake_128
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from tests.support.embedding_lies import LIES, Answer, Piece, answer_json, error_json
from tests.support.embedding_tricks import TRICKS, send

RAW_SCALE = 2.5  # length of the vectors that are not normalised
VECTORS_KEPT = 8192

Down = Literal["", "refuse", "disconnect", "503", "429"]
"""How a server is away: nobody listens; each connection is closed without a word; it answers that it is busy."""

Trick = Literal["", "hang", "drip", "redirect", "redirect_malformed", "gzip_bomb", "endless", "not_http", "half_body"]


@dataclass
class Behaviour:
    """The knobs. Refusals by size are tried first, then `lie`/`lie_rate`."""

    dimension: int = 384
    model: str | None = None  # how it names itself; None: as it was asked, "": not at all
    normalised: bool = True  # False: vectors of length RAW_SCALE
    vector_for: Callable[[str], Sequence[float]] | None = None  # in the place of vector_of
    delay_s: float = 0.0  # of each request
    delay_per_input_s: float = 0.0
    held: str = ""  # a request with a text that holds this gets no answer before it is "" again
    held_after: int | None = None  # requests after so many get no answer before it is None again
    serial: bool = False  # one request at a time, like a single card
    max_inputs: int | None = None  # more: 413
    max_body_bytes: int | None = None  # more: 413
    max_chars: int | None = None  # of one input; more: `too_long_status`
    too_long_status: int = 400
    poison: str = ""  # a request with an input that holds this: `poison_status`
    poison_status: int = 500
    status: int = 0  # answers everything with it
    key: str = ""  # another bearer key than this: 401
    retry_after: str = ""  # of 429 and 503; seconds or an HTTP date
    error_words: str = ""  # of refusals, in the place of its own
    trick: Trick = ""
    lie: str = ""  # always in this way: a key of LIES, "status_503" or "disconnect"
    lie_rate: float = 0.0  # of requests, each in a way out of `lies`
    lies: tuple[str, ...] = tuple(LIES)
    every_lie: bool = False  # each of `lies` once, in any order, before one of them comes again
    seed: int = 0
    down_after: int | None = None  # goes down when it has been sent so many requests ...
    down_how: Down = "refuse"
    down_for_s: float = 1.0  # ... for so long


class SeenRequest(NamedTuple):
    at_s: float  # time.monotonic()
    path: str
    headers: dict[str, str]  # names in lower case
    texts: tuple[str, ...]
    how: str  # "": answered honestly; else the lie, the trick or the status


def vector_array_of(text: str, dimension: int) -> npt.NDArray[np.float64]:
    """The vector of a text: unit length, every number with at most 7 digits after the point."""
    noise = np.frombuffer(shake_128(text.encode("utf-8", "replace")).digest(2 * dimension), dtype="<i2")
    raw = noise.astype(np.float64) + 0.5  # never all zero
    rounded: npt.NDArray[np.float64] = np.round(raw / np.sqrt(raw @ raw), 7)
    return rounded


def vector_of(text: str, dimension: int) -> list[float]:
    values: list[float] = vector_array_of(text, dimension).tolist()
    return values


def is_vector_of(stored: bytes, text: str, dimension: int) -> bool:
    """Whether these little-endian float32 bytes are the text's vector, of unit length."""
    if len(stored) != 4 * dimension:
        return False
    return bool(np.allclose(np.frombuffer(stored, dtype="<f4"), vector_array_of(text, dimension), rtol=0, atol=1e-5))


@dataclass
class EmbeddingServer:
    """What the server saw, and its switches."""

    behaviour: Behaviour
    port: int
    requests: list[SeenRequest] = field(default_factory=list)
    connected_at_s: list[float] = field(default_factory=list)  # time.monotonic()
    busy_s: float = 0.0  # sum, over the requests, of the time it worked on each (delays too, queueing not)
    occupied_s: float = 0.0  # time in which it worked on one request at least
    in_flight: int = 0
    max_in_flight: int = 0
    _running: "_Running | None" = None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/v1"

    @property
    def texts_seen(self) -> list[str]:
        """In the order of their arrival, refused ones too."""
        return [text for request in self.requests for text in request.texts]

    def take_down(self, how: Down = "refuse", for_s: float | None = None) -> None:
        """Goes away, breaking what is in flight where `how` is "refuse"; comes back by itself after `for_s`."""
        assert self._running is not None
        self._running.call(self._running.go_down(how, for_s))

    def bring_up(self) -> None:
        assert self._running is not None
        self._running.call(self._running.come_up())


@contextlib.contextmanager
def embedding_server(**behaviour: Any) -> Iterator[EmbeddingServer]:
    """A running server; the arguments are fields of Behaviour. Nothing of it is left afterwards."""
    with contextlib.closing(_bound_socket(0)) as reserved:  # keeps the port while nobody listens
        server = EmbeddingServer(Behaviour(**behaviour), reserved.getsockname()[1])
        running = _Running(server)
        server._running = running
        running.start()
        try:
            yield server
        finally:
            running.stop()


def _bound_socket(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    return sock


class _Running:
    """The thread, its loop and the connections."""

    def __init__(self, server: EmbeddingServer) -> None:
        self._server = server
        self._random = random.Random(server.behaviour.seed)
        self._dealt: list[str] = []  # ways to lie that are still to come
        self._vectors: OrderedDict[tuple[str, int, float], bytes] = OrderedDict()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="embedding-server", daemon=True)
        self._listening: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._revival: asyncio.TimerHandle | None = None
        self._down: Down = ""
        self._occupied_since_s = 0.0
        self._working = 0
        self._card = asyncio.Lock()

    def start(self) -> None:
        self._thread.start()
        self.call(self.come_up())

    def stop(self) -> None:
        self.call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def call(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    async def come_up(self) -> None:
        self._down = ""
        if self._revival is not None:
            self._revival.cancel()
        if self._listening is None:
            sock = _bound_socket(self._server.port)
            self._listening = await asyncio.start_server(self._connection, sock=sock, backlog=256)

    async def go_down(self, how: Down, for_s: float | None) -> None:
        self._down = how
        if how == "refuse":
            await self._stop_listening()
        if for_s is not None:
            self._revival = self._loop.call_later(for_s, lambda: self._keep(self._loop.create_task(self.come_up())))

    async def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for writer in self._writers:
            writer.transport.abort()

    async def _close(self) -> None:
        if self._revival is not None:
            self._revival.cancel()
        await self._stop_listening()
        current = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not current]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server.connected_at_s.append(time.monotonic())
        self._writers.add(writer)
        try:
            while await self._request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass  # the server is being closed
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection goes on."""
        if self._down == "disconnect":
            return False
        head = await reader.readexactly(1)
        if not head.isalpha():
            return False  # TLS, which a server without it does not understand
        head += await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").splitlines()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        server = self._server
        server.in_flight += 1
        server.max_in_flight = max(server.max_in_flight, server.in_flight)
        try:
            return await self._answered(first.split()[1], headers, body, writer)
        finally:
            server.in_flight -= 1

    async def _answered(self, path: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter) -> bool:
        asked: dict[str, Any] = msgspec.json.decode(body) if body else {}
        given = asked.get("input", [])
        texts = (given,) if isinstance(given, str) else tuple(given)
        how = self._how(path, headers, texts, len(body))
        self._server.requests.append(SeenRequest(time.monotonic(), path, headers, texts, how))
        await self._wait_while_held(len(self._server.requests))
        await self._go_down_when_due()
        if how == "disconnect" or (self._down == "disconnect"):
            return False
        if how in TRICKS:
            return await TRICKS[how](writer)
        answer = await self._worked_out(how, texts, str(asked.get("model", "")))
        await send(writer, answer, self._extra_headers(answer.status))
        return True

    async def _wait_while_held(self, number: int) -> None:
        """`number`: of the request, from 1."""
        while (last := self._server.behaviour.held_after) is not None and number > last:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # another thread sets it

    async def _go_down_when_due(self) -> None:
        behaviour = self._server.behaviour
        if behaviour.down_after is not None and len(self._server.requests) > behaviour.down_after:
            behaviour.down_after = None
            await self.go_down(behaviour.down_how, behaviour.down_for_s)

    def _how(self, path: str, headers: dict[str, str], texts: tuple[str, ...], body_bytes: int) -> str:
        behaviour = self._server.behaviour
        if self._down in ("503", "429"):
            return f"status_{self._down}"
        if behaviour.status:
            return f"status_{behaviour.status}"
        if refusal := _refusal(behaviour, path, headers, texts, body_bytes):
            return f"status_{refusal}"
        if behaviour.trick:
            return behaviour.trick
        if behaviour.lie:
            return behaviour.lie
        if behaviour.lie_rate and self._random.random() < behaviour.lie_rate:
            return self._next_lie() if behaviour.every_lie else self._random.choice(behaviour.lies)
        return ""

    def _next_lie(self) -> str:
        if not self._dealt:
            self._dealt = list(self._server.behaviour.lies)
            self._random.shuffle(self._dealt)
        return self._dealt.pop()

    async def _worked_out(self, how: str, texts: tuple[str, ...], asked_model: str) -> Answer:
        if how.startswith("status_"):
            return _refused(int(how.removeprefix("status_")), self._server.behaviour.error_words)
        async with self._card if self._server.behaviour.serial else contextlib.nullcontext():
            began_s = self._begin()
            try:
                answer = self._made(how, texts, asked_model)
                due_s = began_s + self._server.behaviour.delay_s
                due_s += self._server.behaviour.delay_per_input_s * len(texts)
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                while self._is_held(texts):  # noqa: ASYNC110 - another thread sets it
                    await asyncio.sleep(0.01)
                return answer
            finally:
                self._end(began_s)

    def _is_held(self, texts: Sequence[str]) -> bool:
        words = self._server.behaviour.held
        return words != "" and any(words in text for text in texts)

    def _begin(self) -> float:
        now_s = time.monotonic()
        if self._working == 0:
            self._occupied_since_s = now_s
        self._working += 1
        return now_s

    def _end(self, began_s: float) -> None:
        now_s = time.monotonic()
        self._working -= 1
        self._server.busy_s += now_s - began_s
        if self._working == 0:
            self._server.occupied_s += now_s - self._occupied_since_s

    def _made(self, how: str, texts: tuple[str, ...], asked_model: str) -> Answer:
        behaviour = self._server.behaviour
        model = msgspec.json.encode(asked_model if behaviour.model is None else behaviour.model)
        pieces = [Piece(b"%d" % index, self._vector_json(text)) for index, text in enumerate(texts)]
        self._random.shuffle(pieces)
        return LIES[how](pieces, model) if how else Answer(200, answer_json(pieces, model))

    def _vector_json(self, text: str) -> bytes:
        behaviour = self._server.behaviour
        if behaviour.vector_for is not None:
            return msgspec.json.encode([float(number) for number in behaviour.vector_for(text)])
        key = (text, behaviour.dimension, 1.0 if behaviour.normalised else RAW_SCALE)
        if (kept := self._vectors.get(key)) is None:
            kept = msgspec.json.encode((vector_array_of(text, behaviour.dimension) * key[2]).tolist())
            self._vectors[key] = kept
            if len(self._vectors) > VECTORS_KEPT:
                self._vectors.popitem(last=False)
        return kept

    def _extra_headers(self, status: int) -> str:
        retry_after = self._server.behaviour.retry_after
        return f"Retry-After: {retry_after}\r\n" if retry_after and status in (429, 503) else ""


def _refusal(behaviour: Behaviour, path: str, headers: dict[str, str], texts: tuple[str, ...], body_bytes: int) -> int:
    """The status that the request is refused with, 0 where it is not."""
    if path != "/v1/embeddings":
        return 404
    if behaviour.key and headers.get("authorization") != f"Bearer {behaviour.key}":
        return 401
    if behaviour.max_body_bytes is not None and body_bytes > behaviour.max_body_bytes:
        return 413
    if behaviour.max_inputs is not None and len(texts) > behaviour.max_inputs:
        return 413
    if behaviour.max_chars is not None and any(len(text) > behaviour.max_chars for text in texts):
        return behaviour.too_long_status
    if behaviour.poison and any(behaviour.poison in text for text in texts):
        return behaviour.poison_status
    return 0


def _refused(status: int, words: str) -> Answer:
    usual = {400: "input length exceeds the context length", 401: "invalid api key", 413: "batch is too large"}
    if not words and status not in usual and (lie := LIES.get(f"status_{status}")):
        return lie([], b"")
    return Answer(status, error_json(words or usual.get(status, "refused")))
