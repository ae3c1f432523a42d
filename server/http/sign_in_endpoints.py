"""Signing in and out: a token becomes a cookie, so that pages and their event streams work in a browser."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from embedding.addresses import is_loopback
from server.http.access import ADDRESSED, CHALLENGE, FROM, GRANTS, Access, cookie_of, require_wanted
from server.http.access_hosts import Addressed
from server.http.forms import form_of
from server.http.parts import caller_of
from server.http.refusals import RequestRefusedError, refused
from server.http.sessions import SESSION_LIVES_S
from server.pages.layout import HEADERS
from server.pages.sign_in import sign_in_html

MAX_NEXT_CHARS = 2000
_VARY = {"vary": "cookie"}


def sign_in_routes(access: Access) -> list[Route]:
    """GET and POST /sign-in, POST /sign-out; none where nobody signs in here."""
    if not access.has_sign_in:
        return []

    async def show(request: Request) -> Response:
        return sign_in_form(access, request, next_path=local_path(request.query_params.get("next", "/")), status=200)

    async def sign_in(request: Request) -> Response:
        return await _signed_in(access, request)

    async def sign_out(request: Request) -> Response:
        if caller_of(request).kind == "session":
            await require_wanted(access, request)
            access.sessions.end(cookie_of(access, request))
        answer = RedirectResponse(f"{access.server.base_path}/", 303)
        answer.delete_cookie(access.cookie, path=_cookie_path(access), httponly=True, samesite="strict")
        return answer

    return [
        Route("/sign-in", _answering(show), methods=["GET"]),
        Route("/sign-in", _answering(sign_in), methods=["POST"]),
        Route("/sign-out", _answering(sign_out), methods=["POST"]),
    ]


def sign_in_form(access: Access, request: Request, *, next_path: str, message: str = "", status: int = 401) -> Response:
    """Instead of the page that was asked for: it is shown after signing in."""
    html = sign_in_html(
        access.server.base_path, message=message, form_token=access.forms.fresh(), next_path=local_path(next_path)
    )
    challenge = {"www-authenticate": CHALLENGE} if status == 401 else {}
    return HTMLResponse(html, status, {**HEADERS, **_VARY, **challenge})


def asked_path(access: Access, request: Request) -> str:
    """Path and query of a request, without the base path."""
    query = request.url.query
    return f"{request.url.path.removeprefix(access.server.base_path)}{f'?{query}' if query else ''}"


def local_path(text: str) -> str:
    """The path where it is one of ours, else "/": nobody is led to another site by signing in."""
    is_path = text.startswith("/") and not text.startswith(("//", "/\\"))
    is_plain = text.isprintable() and "\\" not in text and len(text) <= MAX_NEXT_CHARS
    return text if is_path and is_plain else "/"


async def _signed_in(access: Access, request: Request) -> Response:
    asked: Addressed = request.scope[ADDRESSED]
    if request.scope[FROM] != "own":
        raise RequestRefusedError(refused(403, "forbidden", "signing in is done on this service's own page"))
    form = await form_of(request)
    next_path = local_path(form.get("next", "/"))
    if not access.forms.is_fresh(form.get("form_token", "")):
        return sign_in_form(access, request, next_path=next_path, message="This form has lain open for too long.")
    if not access.attempts.may_try(asked.client):
        answer = sign_in_form(
            access, request, next_path=next_path, message="That were many tries. Wait a few seconds.", status=429
        )
        answer.headers["retry-after"] = "5"
        return answer
    granted = access.tokens.granted(form.get("token", "").strip())
    if granted is None:
        return sign_in_form(access, request, next_path=next_path, message="This is not a token of this service.")
    access.sessions.end(cookie_of(access, request))
    response = RedirectResponse(f"{access.server.base_path}{next_path}", 303, {"cache-control": "no-store"})
    response.set_cookie(
        access.cookie,
        access.sessions.begin(GRANTS[granted]),
        max_age=SESSION_LIVES_S,
        path=_cookie_path(access),
        secure=not (asked.scheme == "http" and _is_this_machine(asked.host)),
        httponly=True,
        samesite="strict",
    )
    return response


def _cookie_path(access: Access) -> str:
    return access.server.base_path or "/"


def _is_this_machine(host: str) -> bool:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return is_loopback(name.strip("[]"))


def _answering(call: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        try:
            return await call(request)
        except RequestRefusedError as refusal:
            return refusal.response

    return handle
