"""The HTTP service as a whole: every endpoint behind its gate."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from app.config import Loaded
from app.open_bases import OpenBases
from app.present import unexpected_error
from app.query_embedder import QueryEmbedder
from domain.errors import KnowledgeError
from server.http.access import guarded, require_scope
from server.http.answers import problem
from server.http.parts import Endpoint, HttpParts
from server.http.table import ENDPOINTS

READS_AT_A_TIME = 8  # each in a thread; more would only wait for the processor


@contextmanager
def http_parts(loaded: Loaded) -> Iterator[HttpParts]:
    """What a service works with, for as long as it runs."""
    bases = OpenBases(loaded.settings)
    embeddings = loaded.settings.embeddings
    embedder = QueryEmbedder(embeddings) if embeddings is not None else None
    try:
        yield HttpParts(loaded, bases, embedder, CapacityLimiter(READS_AT_A_TIME))
    finally:
        if embedder is not None:
            embedder.close()
        bases.close()


def http_app(parts: HttpParts) -> ASGIApp:
    """Everything but health and metrics, which server.health serves on the same port."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield

    app = Starlette(
        routes=[Route(endpoint.path, _handler(parts, endpoint), methods=[endpoint.method]) for endpoint in ENDPOINTS],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # it would lead to whatever host the request names
    return guarded(app, parts)


def _handler(parts: HttpParts, endpoint: Endpoint) -> Callable[[Request], object]:
    async def handle(request: Request) -> Response:
        try:
            require_scope(request, endpoint)
            return await endpoint.call(parts, request)
        except KnowledgeError as error:
            return problem(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told in words and ends nothing else
            return problem(unexpected_error(error))

    return handle
