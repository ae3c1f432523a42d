"""What the endpoints of the HTTP service work with, who asks them, and how each is described."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from anyio import CapacityLimiter, Event, to_thread
from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from app.config import Loaded
from app.open_bases import OpenBases
from app.query_embedder import QueryEmbedder
from app.service_health import HealthLook
from domain.settings import Settings
from server.http.asked_before import AskedBefore
from server.http.shared_looks import SharedLooks

if TYPE_CHECKING:
    from scheduler.queue.numbers import QueueNumbers

Scope = Literal["read", "operate"]
Read = TypeVar("Read")
CALLER = "knowledge.caller"  # the key in an ASGI scope
STREAMS_AT_A_TIME = 32  # of events: each is a connection that stays open
PATTERNS_AT_A_TIME = 2  # each is a process, which may take a second of a processor
QueueStands = Callable[[], "QueueNumbers | None"]
"""The queue as it was seen last; None: nobody here can know."""


class HttpParts(Struct, frozen=True):
    """Made once for a service, and closed with it."""

    loaded: Loaded
    bases: OpenBases
    embedder: QueryEmbedder | None  # None: no embeddings are configured
    readers: CapacityLimiter  # reads that go on at a time, each in a thread of its own
    queue: QueueStands = lambda: None  # set by whoever has a connection to the queue
    closing: Event = field(default_factory=Event)  # set when the service is told to end: streams end then
    streams: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(STREAMS_AT_A_TIME))
    patterns: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(PATTERNS_AT_A_TIME))
    looks: SharedLooks = field(default_factory=SharedLooks)
    health: HealthLook = field(default_factory=HealthLook)
    asked: AskedBefore = field(default_factory=AskedBefore)  # by Idempotency-Key

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def base_path(self) -> str:
        """What stands before every path of ours in links, "" or "/prefix"."""
        return self.settings.server.base_path

    async def in_thread(self, function: Callable[..., Read], *arguments: object, **options: object) -> Read:
        """What `function` gives, called in a thread; it runs to its end also where the caller is gone."""
        return await to_thread.run_sync(
            partial(function, *arguments, **options), limiter=self.readers, abandon_on_cancel=True
        )


class Caller(NamedTuple):
    """Who asks, as server.http.access has found out."""

    scopes: frozenset[Scope]
    kind: Literal["open", "token", "session", "proxy"]
    name: str = ""
    form_token: str = ""  # of a session: what its forms and scripts send back


EVERYBODY = Caller(frozenset(("read", "operate")), "open")


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


Call = Callable[[HttpParts, Request], Awaitable[Response]]


class Endpoint(NamedTuple):
    """A method and a path, and what is said of it in the OpenAPI document."""

    method: Literal["GET", "POST"]
    path: str  # as Starlette writes it: /v1/runs/{run:int}
    call: Call  # raises KnowledgeError, which is answered as a problem
    name: str  # its operationId
    summary: str  # one sentence
    scope: Scope = "read"
    query: type[Struct] | None = None  # its parameters; others are refused
    body: type[Struct] | None = None  # of a POST, as JSON
    is_page: bool = False  # HTML for people, not in the OpenAPI document
    answer: str = "object"  # the kind of its answer: "object" (JSON), "lines" (NDJSON), "events" (SSE)
    returns: type[Struct] | None = None  # the top-level fields of its answer (server.http.answer_shapes), or of a line
    is_tagged: bool = False  # its answer has an ETag
