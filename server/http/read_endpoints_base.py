"""What the index is and holds, over HTTP: its roots, its numbers."""

from starlette.requests import Request
from starlette.responses import Response

from app.present import Json
from app.present_base import stats_json
from app.present_http import without_places
from app.present_sources import sources_json
from app.status import base_status
from server.http.answer_shapes import SourcesShape, StatsShape
from server.http.answers import json_answer
from server.http.parameters import refuse_query
from server.http.parts import Endpoint, HttpParts
from server.http.reading import may_operate, opened


async def sources(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    return _answer(request, await parts.in_thread(_sources, parts, request))


def _sources(parts: HttpParts, request: Request) -> Json:
    with opened(parts, request) as base:
        return sources_json(base_status(base, parts.settings), parts.settings, None)


async def stats(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    return _answer(request, await parts.in_thread(_stats, parts, request))


def _stats(parts: HttpParts, request: Request) -> Json:
    with opened(parts, request) as base:
        return stats_json(base_status(base, parts.settings, count_vectors=True), parts.settings)


def _answer(request: Request, value: Json) -> Response:
    """Without an ETag: sizes of files and folders change without a commit."""
    return json_answer(value if may_operate(request) else without_places(value))


ENDPOINTS = (
    Endpoint("GET", "/v1/sources", sources, "sources", "The roots of the index.", returns=SourcesShape),
    Endpoint("GET", "/v1/stats", stats, "stats", "Numbers and sizes of the index.", returns=StatsShape),
)
