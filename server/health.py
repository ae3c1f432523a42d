"""The health page of a role: whether it lives, whether it can work, and its numbers. No text of a document.

An answer depends on the path alone: not on Host or any other header, which another site may have chosen.
"""

from collections.abc import Callable

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.roles.runtime import Runtime

Metrics = Callable[[], bytes]
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def health_app(runtime: Runtime, metrics: Metrics) -> ASGIApp:
    """GET /healthz (it lives: 200), /readyz (200, or 503 with what it waits for), /metrics (Prometheus)."""

    async def healthz(_request: Request) -> Response:
        return _json({"status": "ok", "role": runtime.role})

    async def readyz(_request: Request) -> Response:
        status = runtime.status
        said = {
            "status": "ready" if status.is_ready else "standby" if status.stands_by else "waiting",
            "role": runtime.role,
            "active": status.is_active,
            "waits_for": status.waits_for or None,
            "doing": status.doing or None,
            "warning": status.warns or None,
        }
        return _json(said, 200 if status.is_ready or status.stands_by else 503)

    async def numbers(_request: Request) -> Response:
        return Response(metrics(), media_type=METRICS_TYPE, headers=_HEADERS)

    pages = Starlette(
        routes=[
            Route("/healthz", healthz, methods=["GET"]),
            Route("/readyz", readyz, methods=["GET"]),
            Route("/metrics", numbers, methods=["GET"]),
        ]
    )
    pages.router.redirect_slashes = False  # it would lead to whatever host the request names
    return _without_body(pages)


def _without_body(pages: ASGIApp) -> ASGIApp:
    """Nothing is sent here: a request that announces a body is refused, and its connection closed, unread."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        if scope["type"] == "http" and has_body:
            refusal = _json({"status": "refused", "because": "no body is read here"}, 413)
            refusal.headers["connection"] = "close"
            await refusal(scope, receive, send)
            return
        await pages(scope, receive, send)

    return app


def _json(value: object, status: int = 200) -> Response:
    content = msgspec.json.encode(value)
    return Response(content, status_code=status, media_type="application/json", headers=_HEADERS)
