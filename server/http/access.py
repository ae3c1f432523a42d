"""Who may ask: names, pages, tokens, sessions; decided by the head of a request, before its body is read."""

import hashlib
import re
from urllib.parse import parse_qsl

from msgspec import Struct, field
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from app.access_tokens import AccessTokens, access_tokens
from domain.errors import ConfigurationError
from domain.settings import ServerSettings, Settings
from embedding.addresses import is_loopback
from server.http.access_hosts import Addressed, HostRules, addressed, host_rules, page_of, shown_host
from server.http.forms import form_of, media_type
from server.http.parts import CALLER, Caller, Scope, caller_of
from server.http.refusals import RequestRefusedError, refused
from server.http.sessions import Attempts, FormTokens, Sessions, same

FROM = "knowledge.from"  # keys in an ASGI scope: of which page it is,
ADDRESSED = "knowledge.addressed"  # and how it came
GRANTS: dict[str, frozenset[Scope]] = {"read": frozenset(("read",)), "operate": frozenset(("read", "operate"))}
NOBODY = Caller(frozenset(), "open")
SAFE_METHODS = frozenset(("GET", "HEAD"))
MAX_USER_CHARS = 200
_QUERY_TOKENS = frozenset(("access_token", "token", "bearer", "api_key", "apikey"))
_BEARER = re.compile(r"bearer +(?P<token>[\x21-\x7e]+) *", re.IGNORECASE)
CHALLENGE = 'Bearer realm="knowledge"'


class Access(Struct, frozen=True):
    """What is known of who may ask, for as long as a service runs. Used from one event loop."""

    server: ServerSettings
    hosts: HostRules
    tokens: AccessTokens
    cookie: str  # its name: another service on this machine has another, for cookies know no ports
    sessions: Sessions = field(default_factory=Sessions)
    attempts: Attempts = field(default_factory=Attempts)
    forms: FormTokens = field(default_factory=FormTokens)

    @property
    def is_open(self) -> bool:
        """Whoever reaches it may do everything: only this machine does (`refuse_open_place`)."""
        return self.server.auth == "token" and not self.tokens.are_configured

    @property
    def has_sign_in(self) -> bool:
        return self.server.auth == "token" and self.tokens.are_configured


def access_of(settings: Settings) -> Access:
    """Raises ConfigurationError where a token is named and there is none, or too short a one."""
    server = settings.server
    of = hashlib.sha256(str(settings.home).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return Access(server, host_rules(server), access_tokens(server), f"knowledge_{of}")


def refuse_open_place(settings: Settings) -> None:
    """Raises ConfigurationError where others could ask and nobody would be asked who they are, and for a token that is
    named and not there, or too short."""
    server = settings.server
    has_token = access_tokens(server).are_configured
    if has_token or server.auth == "proxy" or is_loopback(server.host.lower()):
        return
    raise ConfigurationError(
        f"server.host: {server.host} is reached from other machines, and no token is configured",
        hint="name a token in server.read_token_env or server.read_token_file (and operate_token_...), let a proxy sign"
        " people in (server.auth: proxy), or listen on 127.0.0.1",
    )


def guarded(app: ASGIApp, access: Access) -> ASGIApp:
    """The app behind its gate: what passes has its Caller in the scope; who is nobody has no scopes."""

    async def gate(scope: AsgiScope, receive: Receive, send: Send) -> None:
        refusal = admitted(access, scope) if scope["type"] == "http" else None
        if scope.get(FROM) == "allowed":
            send = _shared_with(Headers(scope=scope)["origin"], send)
        await (refusal or app)(scope, receive, send)

    return gate


def admitted(access: Access, scope: AsgiScope) -> Response | None:
    """None: the scope says who asks, from which page, how it came. Else what is answered instead."""
    headers = Headers(scope=scope)
    asked = addressed(access.hosts, scope, headers)
    if (refusal := host_refusal(asked)) is not None:
        return refusal
    if (elsewhere := _below_base_path(access.server.base_path, scope)) is not None:
        return elsewhere
    page = page_of(access.hosts, asked, headers)
    if page == "foreign":
        return refused(
            403,
            "origin_not_allowed",
            "a page of another site has sent this",
            "add that page's origin to server.allowed_origins, or, behind a proxy that speaks https, name the proxy in"
            " server.trusted_proxies",
        )
    if _has_token_in_query(scope["query_string"]):
        return unauthenticated(
            "a token in an address is not read: addresses are kept in logs and histories",
            "send it in a header: Authorization: Bearer TOKEN",
        )
    scope.update({FROM: page, ADDRESSED: asked, "scheme": asked.scheme})
    if page == "allowed" and scope["method"] == "OPTIONS":
        return _agreed_in_advance()
    caller = _caller(access, asked, headers)
    if isinstance(caller, Response):
        return caller
    scope[CALLER] = caller
    return None


def host_refusal(asked: Addressed) -> Response | None:
    """421 for a name that is none of ours."""
    if asked.is_allowed:
        return None
    named = f"under the name {shown_host(asked.host)}" if shown_host(asked.host) else "without a name of its own"
    return refused(
        421,
        "host_not_allowed",
        f"this service is not asked {named}",
        "add the name to server.allowed_hosts, if it is meant to be",
    )


def unauthenticated(detail: str, hint: str = "", *, invalid: bool = False) -> Response:
    challenge = f'{CHALLENGE}, error="invalid_token"' if invalid else CHALLENGE
    return refused(401, "unauthenticated", detail, hint, headers={"www-authenticate": challenge})


def require_scope(request: Request, scope: Scope) -> None:
    """Raises RequestRefusedError where the caller may not ask for this: 401 for nobody, 403 for somebody."""
    caller = caller_of(request)
    if scope in caller.scopes:
        return
    if not caller.scopes:
        raise RequestRefusedError(
            unauthenticated("this service answers to those who show a token", "send Authorization: Bearer TOKEN")
        )
    challenge = {"www-authenticate": f'{CHALLENGE}, error="insufficient_scope", scope="{scope}"'}
    raise RequestRefusedError(
        refused(403, "forbidden", "this needs the operator's token", "a reader's does not do", headers=challenge)
    )


async def require_wanted(access: Access, request: Request) -> None:
    """Raises RequestRefusedError for a change that a page of another site could have brought a browser to send.

    A token in a header is proof enough. Else a change is sent as JSON, which no foreign form can; and by a session only
    from a page of ours with the session's form token, in X-Form-Token or the form field form_token.
    """
    caller = caller_of(request)
    if request.method in SAFE_METHODS or caller.kind == "token":
        return
    if caller.kind == "session" and request.scope[FROM] != "own":
        raise RequestRefusedError(refused(403, "forbidden", "a session's changes come from the service's own pages"))
    if caller.kind != "session" and (media_type(request) == "application/json" or request.method != "POST"):
        return  # neither is sent to another site by a page, unless that site has agreed
    given = request.headers.get("x-form-token") or (await form_of(request)).get("form_token", "")
    if caller.form_token and same(given, caller.form_token):
        return
    if given or caller.kind == "session":
        raise RequestRefusedError(
            refused(403, "forbidden", "this form is not, or no longer, valid", "load its page again")
        )
    raise RequestRefusedError(
        refused(415, "usage", "a change is sent as JSON", "send Content-Type: application/json, with or without a body")
    )


def _caller(access: Access, asked: Addressed, headers: Headers) -> Caller | Response:
    users = headers.getlist(access.server.proxy_user_header) if access.server.auth == "proxy" else []
    if users and asked.by_proxy:
        return _user_of_proxy(access, users)
    if access.is_open:
        return Caller(GRANTS["operate"], "open", form_token=access.forms.lasting("open"))
    if shown := headers.getlist("authorization"):
        bearer = _BEARER.fullmatch(shown[0])
        granted = access.tokens.granted(bearer["token"]) if bearer and len(shown) == 1 else None
        if granted is None:
            return unauthenticated("this token is not one of this service's", invalid=True)
        return Caller(GRANTS[granted], "token")
    session = access.sessions.of(_cookie(access, headers)) if access.has_sign_in else None
    return NOBODY if session is None else Caller(session.scopes, "session", form_token=session.form_token)


def _user_of_proxy(access: Access, users: list[str]) -> Caller | Response:
    """Two such headers: one of them may be the client's own."""
    name = users[0].strip()
    if len(users) > 1 or not name.isprintable() or not 0 < len(name) <= MAX_USER_CHARS:
        return unauthenticated("the proxy does not say who asks")
    scopes = GRANTS["operate" if name in access.server.operators else "read"]
    return Caller(scopes, "proxy", name, access.forms.lasting(f"user {name}"))


def cookie_of(access: Access, request: Request) -> str:
    return _cookie(access, request.headers)


def _cookie(access: Access, headers: Headers) -> str:
    """What our cookie holds; "" where there is none."""
    for pair in ";".join(headers.getlist("cookie")).split(";"):
        name, _, value = pair.strip().partition("=")
        if name == access.cookie:
            return value
    return ""


def _below_base_path(base_path: str, scope: AsgiScope) -> Response | None:
    """None: it is ours, and routed by what stands behind the base path."""
    path: str = scope["path"]
    if not base_path or path.startswith(f"{base_path}/"):
        scope["root_path"] = base_path
        return None
    if path == base_path and scope["method"] in SAFE_METHODS:
        return RedirectResponse(f"{base_path}/", 308)
    return refused(404, "not_found", f"everything of this service lies below {base_path}/")


def _has_token_in_query(query: bytes) -> bool:
    return any(name.lower() in _QUERY_TOKENS for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))


def _shared_with(origin: str, send: Send) -> Send:
    """A page of this origin may read the answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            shared = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]
            message["headers"] = [*message.get("headers", ()), *shared]
        await send(message)

    return sending


def _agreed_in_advance() -> Response:
    """What a browser asks before an allowed page may send more than a form could."""
    return Response(
        status_code=204,
        headers={
            "access-control-allow-methods": "GET, POST, DELETE",
            "access-control-allow-headers": "authorization, content-type, idempotency-key, if-none-match,"
            " last-event-id, mcp-protocol-version, mcp-session-id",
            "access-control-max-age": "600",
        },
    )
