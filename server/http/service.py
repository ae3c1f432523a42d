"""The HTTP service as a whole: every endpoint behind its gate."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.config import Loaded
from app.open_bases import OpenBases
from app.present_http import machine_places
from app.query_embedder import QueryEmbedder
from app.tracing import continued_trace
from domain.errors import KnowledgeError
from server.http.access import Access, access_of, guarded, host_refusal, require_scope, require_wanted
from server.http.access_hosts import addressed, host_rules
from server.http.answers import problem, routing_problem
from server.http.limits import Limits, limited, told_fault
from server.http.parts import Endpoint, HttpParts, QueueStands
from server.http.reading import may_operate
from server.http.refusals import RequestRefusedError, refused
from server.http.run_numbers import take_run_numbers
from server.http.sign_in_endpoints import asked_path, sign_in_form, sign_in_routes
from server.http.table import ENDPOINTS
from server.pages.assets import FOLDER

NUMBERS_PATH = "/metrics"
HEALTH_PATHS = ("/healthz", "/readyz", NUMBERS_PATH)
READS_AT_A_TIME = 8  # each in a thread; more would only wait for the processor


@contextmanager
def http_parts(loaded: Loaded, queue: QueueStands = lambda: None) -> Iterator[HttpParts]:
    """What a service works with, for as long as it runs. `queue`: how the queue was seen last, by who looks at it."""
    bases = OpenBases(loaded.settings)
    embeddings = loaded.settings.embeddings
    embedder = QueryEmbedder(embeddings) if embeddings is not None else None
    try:
        yield HttpParts(loaded, bases, embedder, CapacityLimiter(READS_AT_A_TIME), queue)
    finally:
        if embedder is not None:
            embedder.close()
        bases.close()


def http_app(parts: HttpParts) -> ASGIApp:
    """Everything but health and metrics (`service_app`), within limits and behind its gate.

    Raises ConfigurationError where a token is named and there is none.
    """
    access = access_of(parts.settings)
    take_run_numbers()
    app = Starlette(
        routes=[
            *(
                Route(endpoint.path, _handler(parts, access, endpoint), methods=[endpoint.method])
                for endpoint in ENDPOINTS
            ),
            *sign_in_routes(access),
            *([] if parts.settings.mcp.port else _mcp_routes(parts)),
        ],
        exception_handlers={HTTPException: routing_problem},
    )
    return _within(app, access, parts)


def mcp_only_app(parts: HttpParts) -> ASGIApp:
    """What a listener at mcp.port answers: /mcp and nothing else."""
    app = Starlette(routes=_mcp_routes(parts), exception_handlers={HTTPException: routing_problem})
    return _within(app, access_of(parts.settings), parts)


def _within(app: Starlette, access: Access, parts: HttpParts) -> ASGIApp:
    app.router.redirect_slashes = False  # it would lead to whatever host the request names
    return limited(guarded(app, access), Limits(parts.closing))


def _mcp_routes(parts: HttpParts) -> list[Route]:
    """None where no tool is listed."""
    if not parts.settings.mcp.tools:
        return []
    from server.mcp_http import mcp_app  # costs half a second

    return [Route("/mcp", mcp_app(parts))]


def service_app(parts: HttpParts, health: ASGIApp) -> ASGIApp:
    """The same, and the health page (server.health) beside it, which is answered whatever else goes on. It says nothing
    of any text; its numbers are for whoever asks under one of our names, its state for everybody."""
    app = http_app(parts)
    rules = host_rules(parts.settings.server)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = app
        if scope["type"] == "http" and scope["path"] in HEALTH_PATHS:
            asked = addressed(rules, scope, Headers(scope=scope))
            refusal = host_refusal(asked) if scope["path"] == NUMBERS_PATH else None
            chosen = refusal or health
        await chosen(scope, receive, send)

    return answer


def _handler(parts: HttpParts, access: Access, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    places = machine_places(parts.settings)
    is_public = endpoint.path.startswith(f"/{FOLDER}/")  # what the sign-in form is shown with, too

    async def handle(request: Request) -> Response:
        try:
            if not is_public:
                require_scope(request, endpoint.scope)
                await require_wanted(access, request)
            with continued_trace(request.headers):
                return await endpoint.call(parts, request)
        except RequestRefusedError as refusal:
            return _sign_in_instead(access, request, endpoint, refusal.response) or refusal.response
        except KnowledgeError as error:
            return problem(error, hidden=() if may_operate(request) else places)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told in words and ends nothing else
            told_fault(error)
            return refused(500, "unexpected", "an unexpected error; the service's log says where")

    return handle


def _sign_in_instead(access: Access, request: Request, endpoint: Endpoint, refusal: Response) -> Response | None:
    """For a page that somebody may not see, or not yet."""
    if not (access.has_sign_in and endpoint.is_page and endpoint.method == "GET" and refusal.status_code in (401, 403)):
        return None
    message = "This page needs the operator's token." if refusal.status_code == 403 else ""
    return sign_in_form(
        access, request, next_path=asked_path(access, request), message=message, status=refusal.status_code
    )
