"""Lines that are no message of the protocol. The SDK passes them over in silence: whoever asked would wait for ever.

Half a character (a lone surrogate, as a text cut between two halves of an emoji has) is legal JSON and no Unicode: such
a request is refused under its own number. Of anything else no number is known; it is answered as JSON-RPC says, with
null. Neither the answer nor the log repeats a word of the line.
"""

import json
import logging
from collections.abc import AsyncIterable
from contextlib import suppress
from typing import Any, Protocol

from anyio import BrokenResourceError, ClosedResourceError
from anyio.streams.memory import MemoryObjectSendStream

from server.mcp_sdk import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    SessionMessage,
    ValidationError,
)

log = logging.getLogger("knowledge.mcp")
HALF_A_CHARACTER = "the message holds half a character: it is no Unicode text"
NO_JSON = "the line is no JSON"
NO_MESSAGE = "the line is no message of JSON-RPC 2.0"


class Answers(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


async def without_unreadable(
    received: AsyncIterable[SessionMessage | Exception],
    readable: MemoryObjectSendStream[SessionMessage | Exception],
    answers: Answers,
) -> None:
    """Hand messages on until there are no more, and answer what is none; `readable` is closed then."""
    with suppress(BrokenResourceError, ClosedResourceError):  # the server has ended meanwhile
        async with readable:
            async for item in received:
                if isinstance(item, SessionMessage):
                    await readable.send(item)
                elif (refusal := refusal_of(item)) is not None:
                    log.warning("warning: %s", refusal.error.message)
                    await answers.send(SessionMessage(refusal))


def refusal_of(error: Exception) -> JSONRPCError | None:
    """The answer to a line that the SDK could not read; None where nobody waits for one."""
    line = _unread_line(error)
    if line is None:
        return _refusal(None, INVALID_REQUEST, NO_MESSAGE)
    if not line.strip():
        return None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return _refusal(None, PARSE_ERROR, NO_JSON)
    if not isinstance(message, dict):
        return _refusal(None, INVALID_REQUEST, NO_MESSAGE)
    if "method" not in message or "id" not in message:
        return None  # a notification, or an answer to what was never asked
    return _refusal(_number_of(message["id"]), INVALID_PARAMS, HALF_A_CHARACTER)


def _unread_line(error: Exception) -> str | None:
    """The line as it came, where it was no JSON to the SDK; None where it was JSON and no message."""
    if not isinstance(error, ValidationError):
        return ""
    first: Any = error.errors(include_url=False)[0]
    return str(first["input"]) if first["type"] == "json_invalid" else None


def _number_of(written: object) -> int | str | None:
    is_number = isinstance(written, int) and not isinstance(written, bool)
    return written if is_number or (isinstance(written, str) and written.isascii()) else None  # type: ignore[return-value]


def _refusal(number: int | str | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message))
