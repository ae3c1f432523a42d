"""The client of a model's server: POST <base_url>/embeddings in the shape of OpenAI (S1-25).

One request is one exchange: streamed with a cap, under one deadline, without redirects, proxies or compression.
`EmbeddingClient.request` repeats it while the server is away; cutting a refused batch is for whoever calls it (R21).
"""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import httpx
import msgspec
from tenacity import AsyncRetrying, retry_if_exception_type, wait_none

from domain.errors import ConfigurationError, EmbeddingsChangedError, EmbeddingsUnavailableError
from domain.measures import EMBEDDING_RETRIES
from domain.settings import EmbeddingsSettings
from domain.telemetry import SILENCE, Telemetry
from domain.tracing import UNTRACED, Tracer
from embedding.addresses import check_base_url, parse_base_url
from embedding.answers import BatchAnswer, read_answer
from embedding.canary import REINDEX_HINT
from embedding.failures import Rejected, Unreachable, UnreachableKind, is_redirect
from embedding.limits import Pace, answer_cap_bytes, retry_after_s, share_of_concurrency
from embedding.measuring import measured
from embedding.outage import USUAL_PATIENCE, OutageGate, Patience, not_waiting
from embedding.port import Expected, Waiting
from embedding.words import connection_words, excerpt, redirect_words

__all__ = ["BatchAnswer", "EmbeddingClient", "Expected", "Rejected", "Unreachable"]

MAX_REFUSALS_IN_A_ROW = 16  # 401, 403 or 404 without one success between: no text is at fault
MAX_OWN_FAILURES = 3  # of one request, while others were answered: its texts are at fault, not the server
ERROR_BODY_BYTES = 4096
KEPT_ALIVE_S = 2.0  # servers close idle connections after 5 s or more: this client is never the second to do so
_BUSY_STATUSES = (429, 503)
_LOCATION = "knowledge.location"  # among a response's extensions
_REFUSED_HINT = "check embeddings.base_url, embeddings.model and the variable named by embeddings.api_key_env"


class _Reply(NamedTuple):
    status: int
    body: bytearray  # of an error only its beginning
    retry_after: str | None
    location: str | None = None  # where a redirect points to, as the server wrote it


class EmbeddingClient:
    """The connections to one server, used from one event loop. Close it."""

    def __init__(
        self,
        settings: EmbeddingsSettings,
        key: str | None,
        *,
        expected: Expected | None = None,
        waiting: Waiting = not_waiting,
        share: float = 1.0,
        patience: Patience = USUAL_PATIENCE,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`share`: of the limits, where several processes keep them together; one request at a time is always had.

        Raises ConfigurationError for an address that check_base_url names, and for a key that no header can carry.
        """
        if problem := check_base_url(settings.base_url, settings.insecure_hosts):
            raise ConfigurationError(f"embeddings.base_url {problem}")
        address = parse_base_url(settings.base_url)
        self._settings = settings
        self._expected = expected
        self._key = _sendable(key, settings.api_key_env)
        self._endpoint = address.endpoint
        self.host = address.shown_host
        self._http = _http_client(address.scheme, settings, transport)
        self._slots = asyncio.Semaphore(share_of_concurrency(settings.concurrency, share))
        # the interval is that of all processes together, so each has it stretched by its share
        slowed = patience._replace(
            interval_s=patience.interval_s / share, longest_s=max(patience.longest_s, patience.interval_s / share)
        )
        pace = Pace(settings.requests_per_minute * share)
        self._gate = OutageGate(
            self.host, settings.outage_limit_s, patience=slowed, waiting=waiting, pace=pace.wait_turn
        )
        self._refusals_in_a_row = 0
        self.telemetry: Telemetry = SILENCE  # told of every request
        self.tracer: Tracer = UNTRACED  # likewise

    def __repr__(self) -> str:
        return f"EmbeddingClient({self.host!r}, {self._settings.model!r})"

    async def aclose(self) -> None:
        await self._http.aclose()

    async def request(self, texts: Sequence[str]) -> BatchAnswer:
        """The vectors of the texts, under the limits; repeated while the server is away.

        Raises Rejected at once: a smaller batch may do. Raises EmbeddingsUnavailableError when the server has been
        away for the outage limit or refuses everything, EmbeddingsChangedError when it answers as another model.
        """
        arrived_at = self._gate.endings_of_patience
        answers_at_failures: set[int] = set()
        attempts = 0

        async def attempt() -> BatchAnswer:
            nonlocal attempts
            if attempts:
                self.telemetry.count(EMBEDDING_RETRIES)
            attempts += 1
            try:
                async with self._slots, self._gate.passage(arrived_at):
                    return await self._counted(texts, attempts)
            except Unreachable as failure:
                if failure.kind != "busy":
                    answers_at_failures.add(self._gate.answers)
                if len(answers_at_failures) == MAX_OWN_FAILURES:
                    words = f"{failure.words}, {MAX_OWN_FAILURES} times, while other requests were answered"
                    raise Rejected(words, count=len(texts)) from failure
                raise

        # how long is waited is the gate's to say, for all requests together
        retrying = AsyncRetrying(retry=retry_if_exception_type(Unreachable), wait=wait_none(), reraise=True)
        return await retrying(attempt)

    async def request_once(self, texts: Sequence[str], attempt: int = 1) -> BatchAnswer:
        """One POST, tried once and under no limit but the deadline. Raises Unreachable, Rejected or
        EmbeddingsChangedError (another model's name; another dimension is a Rejected that carries it).
        """
        with measured(self.telemetry, len(texts), self.tracer, attempt):
            return await self._asked_once(texts)

    async def _asked_once(self, texts: Sequence[str]) -> BatchAnswer:
        content = self._content(texts)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                reply = await self._exchange(content, len(texts))
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Unreachable("timeout", f"no answer within {self._settings.timeout_s:g} s") from error
        except httpx.TransportError as error:
            raise Unreachable("connection", connection_words(error)) from error
        if reply.status != 200:
            raise self._failure(reply, texts)
        return self._as_expected(read_answer(reply.body, len(texts)))

    async def _counted(self, texts: Sequence[str], attempt: int) -> BatchAnswer:
        try:
            answer = await self.request_once(texts, attempt)
        except Rejected as rejected:
            if rejected.is_refusing:
                self._refusals_in_a_row += 1
            if self._refusals_in_a_row >= MAX_REFUSALS_IN_A_ROW:
                words = f"the embedding server at {self.host} refuses every request: {rejected.words}"
                raise EmbeddingsUnavailableError(words, hint=_REFUSED_HINT) from rejected
            raise
        self._refusals_in_a_row = 0
        return answer

    def _content(self, texts: Sequence[str]) -> bytes:
        asked = {"model": self._settings.model, "input": list(texts), "encoding_format": "float"}
        with suppress(UnicodeEncodeError):  # which holds the text, and is not to be a cause of ours
            return msgspec.json.encode(asked)
        raise Rejected("a text is not valid Unicode", count=len(texts))

    async def _exchange(self, content: bytes, count: int) -> _Reply:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        async with self._http.stream("POST", self._endpoint, content=content, headers=headers) as response:
            if response.status_code != 200:
                body, _ = await _read_at_most(response, ERROR_BODY_BYTES)
                location = response.extensions.get(_LOCATION)
                return _Reply(response.status_code, body, response.headers.get("Retry-After"), location)
            encoding = response.headers.get("Content-Encoding", "").strip().lower()
            if encoding not in ("", "identity"):
                raise Rejected("the answer is compressed, which was not asked for")
            cap_bytes = answer_cap_bytes(count, self._expected.dimension if self._expected else None)
            body, is_whole = await _read_at_most(response, cap_bytes)
            if not is_whole:
                raise Rejected(f"the answer is longer than the {cap_bytes} bytes that {count} vectors may need")
            return _Reply(200, body, None)

    def _failure(self, reply: _Reply, texts: Sequence[str]) -> Exception:
        words = f"status {reply.status}"
        if is_redirect(reply.status):
            words += f" ({redirect_words(reply.location, texts, self._key)}), and redirects are not followed"
        elif quoted := excerpt(bytes(reply.body), texts, self._key):
            words += f': "{quoted}"'
        if reply.status in _BUSY_STATUSES:
            kind: UnreachableKind = "busy"
            return Unreachable(kind, words, retry_after_s(reply.retry_after, datetime.now(UTC)))
        return Rejected(words, status=reply.status, count=len(texts))

    def _as_expected(self, answer: BatchAnswer) -> BatchAnswer:
        expected = self._expected
        if expected is None:
            return answer
        if answer.served_model != expected.served_model:
            words = f"the server answers as {answer.served_model!r}, the index was made with {expected.served_model!r}"
            raise EmbeddingsChangedError(f"the embeddings have changed: {words}", hint=REINDEX_HINT)
        dimension = answer.vectors.shape[1]
        if dimension != expected.dimension:
            words = f"vectors have {dimension} dimensions, those of the index {expected.dimension}"
            raise Rejected(words, dimension=dimension)
        return answer


def _sendable(key: str | None, variable: str) -> str:
    """The key without what an editor leaves around it; "" where there is none."""
    stripped = (key or "").strip()
    if not (stripped.isascii() and stripped.isprintable()):
        raise ConfigurationError(f"the key in {variable or 'embeddings.api_key_env'} holds characters no key has")
    return stripped


def _http_client(
    scheme: str, settings: EmbeddingsSettings, transport: httpx.AsyncBaseTransport | None
) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=transport,
        event_hooks={"response": [_take_location]},
        trust_env=False,  # a proxy of the environment would be sent the documents (T21)
        follow_redirects=False,
        verify=_trusted() if scheme == "https" else False,  # http never comes to TLS; the store costs 100 ms to load
        timeout=httpx.Timeout(settings.timeout_s),
        limits=httpx.Limits(
            max_connections=None, max_keepalive_connections=settings.concurrency, keepalive_expiry=KEPT_ALIVE_S
        ),
        headers={"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": "application/json"},
    )


async def _take_location(response: httpx.Response) -> None:
    """Also where it follows none, httpx makes a request out of a redirect, and takes one that names no address for a
    broken connection: so it is given none to see."""
    if is_redirect(response.status_code):
        response.extensions[_LOCATION] = response.headers.pop("Location", None)


def _trusted() -> ssl.SSLContext:
    """Public authorities, and those of this machine: a company's own server has a certificate of the company."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


async def _read_at_most(response: httpx.Response, cap_bytes: int) -> tuple[bytearray, bool]:
    """The raw body and whether that is all of it. What lies beyond the cap is not read."""
    body = bytearray()
    async for part in response.aiter_raw():
        if len(body) + len(part) > cap_bytes:
            body += part[: cap_bytes - len(body)]
            return body, False
        body += part
    return body, True
