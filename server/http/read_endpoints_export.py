"""A complete set of documents as lines of JSON, sent as they are read: of any size, in little memory.

One state of the index answers all of it, so a read transaction stays open while the client takes the lines; who takes
too long is cut off. The last line says that the set is whole: an export without it is none.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from anyio import CapacityLimiter, move_on_after, to_thread
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.enumerating import enumerated_pages
from app.present_http import export_end_json
from app.present_match import match_error, match_json, match_not_built_json, matched_document_json
from domain.errors import KnowledgeError, NotBuiltError
from retrieval.match_answer import MatchedDocument, MatchRequest
from server.http.answer_shapes import MatchLine
from server.http.answers import HEADERS, LINES_TYPE, json_line, told_answer
from server.http.limits import told_fault
from server.http.parameters import query_of
from server.http.parts import Endpoint, HttpParts
from server.http.read_endpoints_match import Glob, LeastMatches, Order, Query, Root
from server.http.reading import opened

LONGEST_S = 300.0  # the index cannot shrink its log meanwhile

Pages = Iterator[tuple[MatchedDocument, ...]]


class ExportParameters(Struct, frozen=True, forbid_unknown_fields=True):
    q: Query
    sort: Order = "path"
    min_matches: LeastMatches = 1
    root: Root = ""
    path: Glob = ""


async def export(parts: HttpParts, request: Request) -> Response:
    asked = query_of(request, ExportParameters)
    wanted = MatchRequest(asked.q, None, asked.sort, asked.min_matches, asked.root, asked.path)
    try:  # not given up where the caller is gone: what was opened is to be closed
        return await to_thread.run_sync(_begun, parts, request, wanted, limiter=parts.readers)
    except NotBuiltError as error:
        return told_answer(match_not_built_json(error), error)


def _begun(parts: HttpParts, request: Request, wanted: MatchRequest) -> Response:
    with ExitStack() as stack:
        base = stack.enter_context(opened(parts, request))
        answer, pages = stack.enter_context(enumerated_pages(base, wanted))
        head = match_json(answer, wanted, time.time_ns(), with_documents=False)
        if (error := match_error(answer)) is not None:
            return told_answer(head, error)
        if request.method == "HEAD":
            return Response(media_type=LINES_TYPE, headers=HEADERS)
        return _Lines(json_line(head), pages, stack.pop_all(), parts.readers)


class _Lines(Response):
    """The head, the documents, the end. What it reads from is closed when it is over, however that comes."""

    media_type = LINES_TYPE

    def __init__(self, head: str, pages: Pages, closing: ExitStack, readers: CapacityLimiter) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._head, self._pages, self._closing, self._readers = head, pages, closing, readers
        self._failed: KnowledgeError | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with move_on_after(LONGEST_S):
                await self._send_all(Request(scope, receive), send)
        finally:
            self._close()

    def _close(self) -> None:
        """An index in whose reading something was raised is not lent again."""
        if self._failed is None:
            self._closing.close()
            return
        with suppress(KnowledgeError):
            self._closing.__exit__(type(self._failed), self._failed, None)

    async def _send_all(self, request: Request, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send(_body(self._head))
        returned = 0
        while not await request.is_disconnected():
            try:
                page = await to_thread.run_sync(next, self._pages, (), limiter=self._readers)
            except KnowledgeError as error:
                page, self._failed = (), error
            except Exception as error:  # noqa: BLE001 - the status is sent: the last line is where it can be told
                told_fault(error)
                page, self._failed = (), KnowledgeError("an unexpected error; the service's log says where")
            if not page:
                await send(_body(json_line(export_end_json(returned, self._failed)), more=False))
                return
            returned += len(page)
            await send(_body("".join([json_line(matched_document_json(document)) for document in page])))


def _body(text: str, *, more: bool = True) -> dict[str, object]:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}


ENDPOINTS = (
    Endpoint(
        "GET", "/v1/match.ndjson", export, "exportMatch",
        "Every document that holds all of the words, a line each; the last line says that the set is whole.",
        query=ExportParameters, answer="lines", returns=MatchLine,
    ),
)  # fmt: skip
