"""What the endpoints of the HTTP service work with, who asks them, and how each is described."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from app.config import Loaded
from app.open_bases import OpenBases
from app.query_embedder import QueryEmbedder
from domain.settings import Settings

Scope = Literal["read", "operate"]
Read = TypeVar("Read")
CALLER = "knowledge.caller"  # the key in an ASGI scope


@dataclass(frozen=True, slots=True)
class HttpParts:
    """Made once for a service, and closed with it."""

    loaded: Loaded
    bases: OpenBases
    embedder: QueryEmbedder | None  # None: no embeddings are configured
    readers: CapacityLimiter  # reads that go on at a time, each in a thread of its own

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
