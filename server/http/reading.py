"""One read over HTTP: in a thread, over an index that is lent for it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

from starlette.requests import Request

from app.consistency import absence_of
from app.present import not_built_message
from app.present_http import not_built_for_readers
from app.wiring import ReadableBase
from domain.errors import NotBuiltError
from domain.status import DegradeCause
from retrieval.query_vector import Stopped
from server.http.parts import HttpParts, caller_of

Arguments = ParamSpec("Arguments")
Read = TypeVar("Read")


@contextmanager
def opened(parts: HttpParts, request: Request) -> Iterator[ReadableBase]:
    """The index, lent to this thread. Raises NotBuiltError, which says where one was looked for to those who may
    operate, and what opening raises."""
    try:
        with parts.bases.borrowed() as base:
            yield base
    except NotBuiltError:
        if not may_operate(request):
            raise not_built_for_readers() from None
        message, hint = not_built_message(parts.loaded.located, parts.settings, absence_of(parts.settings))
        raise NotBuiltError(message, hint=hint) from None


def may_operate(request: Request) -> bool:
    """Whether the caller is shown where things lie on this machine."""
    return "operate" in caller_of(request).scopes


async def while_asked(
    parts: HttpParts,
    request: Request,
    function: Callable[Concatenate[Stopped, Arguments], Read],
    *arguments: Arguments.args,
    **options: Arguments.kwargs,
) -> Read:
    """`parts.in_thread` for what waits for a server: `function` is also given what says that the client has gone. The
    thread is waited for in any case, so that a place among the readers is free only where nothing goes on."""
    gone = threading.Event()

    def stopped() -> DegradeCause | None:
        return DegradeCause.CANCELED if gone.is_set() else None

    watch = asyncio.create_task(_until_gone(request, gone))
    try:
        return await parts.in_thread(function, stopped, *arguments, **options)
    finally:
        gone.set()
        watch.cancel()
        await asyncio.wait([watch])


async def _until_gone(request: Request, gone: threading.Event) -> None:
    """Of a request without a body nothing comes but its end."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()
