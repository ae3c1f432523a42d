"""MCP over HTTP, at /mcp of the service: one message in, one answer out, nothing kept between two of them.

Who may ask, Host and Origin, sizes and times are the service's (server.http.access, limits); a message that is none is
refused here, before the SDK sees it. Whoever goes away takes the call along.
"""

import logging

import msgspec
from anyio import create_task_group
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.mcp_exposure import declaration_of, exposed_tools, exposure_warnings
from server.http.access import require_scope
from server.http.answers import HEADERS
from server.http.forms import media_type
from server.http.parts import HttpParts
from server.http.refusals import RequestRefusedError
from server.mcp_calls import SharedReading, ToolCalls
from server.mcp_sdk import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    Server,
    StreamableHTTPSessionManager,
    TransportSecuritySettings,
)
from server.mcp_server import KnowledgeMcpServer

MAX_BODY_BYTES = 64 * 1024  # also where the service's own limit is another
ONE_AT_A_TIME = "one message is sent at a time, not a list of them"
NO_JSON = "the body is no JSON, or it is nested too deeply"
NO_MESSAGE = "the body is no message of JSON-RPC 2.0"
ONLY_POST = "messages are sent with POST; there is no stream to listen to, and no session to end"
log = logging.getLogger("knowledge.mcp")


class McpEndpoint:
    """An ASGI app for exactly one path. It wants the Caller in the scope that server.http.access leaves there."""

    def __init__(self, protocol: Server[object]) -> None:
        self._protocol = protocol

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            require_scope(request, "read")
            body = b"" if request.method != "POST" else await request.body()
        except RequestRefusedError as refusal:
            await refusal.response(scope, receive, send)
            return
        except ClientDisconnect:
            return  # it went before its message was whole
        if (response := refusal_of_request(request, body)) is not None:
            await response(scope, receive, send)
            return
        await self._answer(scope, body, receive, send)

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """By an exchange of its own: when the client goes, all of it goes."""
        exchange = StreamableHTTPSessionManager(
            self._protocol,
            json_response=True,
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the service's
            max_request_body_size=MAX_BODY_BYTES,
        )
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def read_again() -> Message:
            return unread.pop() if unread else await receive()

        async with create_task_group() as tasks:

            async def leave_with_client() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave_with_client)
            async with exchange.run():
                await exchange.handle_request(scope, read_again, send)
            tasks.cancel_scope.cancel()


def mcp_app(parts: HttpParts) -> McpEndpoint:
    """The tools that the configuration lists, but for those that change something: over HTTP there are none of them.

    Raises ConfigurationError for a name that cannot be exposed, UsageError where none is.
    """
    names = exposed_tools(parts.settings.mcp.tools, parts.settings)
    reading = [name for name in names if declaration_of(name).tool_class == "read"]
    for warning in exposure_warnings(reading):
        log.warning(warning)
    calls = ToolCalls(parts.loaded, SharedReading(parts.bases, parts.embedder))
    return McpEndpoint(
        KnowledgeMcpServer(calls, reading, profile=parts.settings.mcp.profile, limiter=parts.readers).protocol
    )


def refusal_of_request(request: Request, body: bytes) -> Response | None:
    """None for a request with one message in it."""
    if request.method != "POST":
        return refusal(405, INVALID_REQUEST, ONLY_POST, allow="POST")
    if media_type(request) != "application/json":
        return refusal(415, INVALID_REQUEST, "a message is sent with Content-Type: application/json")
    if len(body) > MAX_BODY_BYTES:
        return refusal(413, INVALID_REQUEST, f"a message has at most {MAX_BODY_BYTES:,} bytes")
    return refusal_of_body(body)


def refusal_of_body(body: bytes) -> Response | None:
    try:
        message = msgspec.json.decode(body)
    except (ValueError, RecursionError):  # half a character is no JSON here, either
        return refusal(400, PARSE_ERROR, NO_JSON)
    if isinstance(message, list):
        return refusal(400, INVALID_REQUEST, ONE_AT_A_TIME)
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not _is_message(message):
        return refusal(400, INVALID_REQUEST, NO_MESSAGE)
    return None


def _is_message(message: dict[str, object]) -> bool:
    """A request, a notification, or an answer to something."""
    number = message.get("id", 0)
    has_number = isinstance(number, int | str) and not isinstance(number, bool)
    is_answer = "method" not in message and "id" in message and ("result" in message or "error" in message)
    has_method = isinstance(message.get("method"), str) and isinstance(message.get("params", {}), dict)
    return has_number and (has_method or is_answer)


def refusal(status: int, code: int, words: str, **headers: str) -> Response:
    """An error of JSON-RPC under no number: what was asked is not known."""
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=words))
    content = error.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(content, status, {**HEADERS, **headers}, "application/json")
