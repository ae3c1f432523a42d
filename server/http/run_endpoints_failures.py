"""Failures and schedules over HTTP."""

import time
from itertools import islice
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from app.failures import of_reason, on_record
from app.present import Json
from app.present_failures import failures_json
from app.present_http_runs import schedules_for_readers
from server.http.answer_shapes_runs import FailuresShape, SchedulesShape
from server.http.answers import json_answer
from server.http.parameters import query_of, refuse_query
from server.http.parts import Endpoint, HttpParts
from server.http.reading import may_operate
from server.http.recorded import recorded, shown_to


class FailuresParameters(Struct, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str | None, Meta(description="Only files that failed for this reason.")] = None
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many files, 1 to 1000.")] = 100
    cursor: Annotated[str, Meta(description="`next_cursor` of the answer before this one.")] = ""


async def list_failures(parts: HttpParts, request: Request) -> Response:
    asked = query_of(request, FailuresParameters)
    of_reason(asked.reason)
    return json_answer(shown_to(parts, request, await parts.in_thread(_failures, parts, request, asked)))


def _failures(parts: HttpParts, request: Request, asked: FailuresParameters) -> Json:
    with recorded(parts, request) as state:
        counts = [one for one in state.failure_counts() if asked.reason in (None, one.reason)]
        rows = list(islice(on_record(state, asked.reason, after=asked.cursor), asked.limit + 1))
    has_more = len(rows) > asked.limit
    rows = rows[: asked.limit]
    return {**failures_json(rows, counts), "next_cursor": rows[-1].key if has_more else None}


async def list_schedules(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    value = await parts.in_thread(_schedules, parts)
    return json_answer(value if may_operate(request) else schedules_for_readers(value))


def _schedules(parts: HttpParts) -> Json:
    from app.present_schedules import schedules_json
    from app.schedule_status import schedules_status

    now_ns = time.time_ns()
    return schedules_json(schedules_status(parts.settings, now_ns), parts.loaded.located, parts.settings, now_ns)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/v1/failures", list_failures, "listFailures",
        "List the files that failed: why, how often, and when each is tried again.", query=FailuresParameters,
        returns=FailuresShape,
    ),
    Endpoint(
        "GET", "/v1/schedules", list_schedules, "listSchedules",
        "List the schedules: when each runs next, and what came of its last run.", returns=SchedulesShape,
    ),
)  # fmt: skip
