"""What goes on, as it happens: the events of one run, and those of all runs with the service's health."""

import time

from starlette.requests import Request
from starlette.responses import Response

from app.present import Json
from app.present_http_runs import event_problem_json, event_run_json, events_json, lasting_run, run_end_json
from app.present_service_health import lasting
from app.runs import ShownRun, shown_run, shown_runs
from domain.errors import KnowledgeError, NotBuiltError, NotFoundError
from server.http.answer_shapes_runs import EventShape
from server.http.event_stream import EventStream, Seen
from server.http.parameters import refuse_query
from server.http.parts import Endpoint, HttpParts
from server.http.recorded import hiding_places, run_of, shown_to
from server.http.run_endpoints_health import health_now

RUNS_TOLD = 10  # the newest: as many as somebody looks at
AT_MOST_OLD_S = 0.9  # all streams share what one of them has seen


async def follow_all(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)

    async def look() -> Seen:
        seen = await parts.looks.at("runs", lambda: _seen_all(parts), at_most_old_s=AT_MOST_OLD_S)
        return seen._replace(data=shown_to(parts, request, seen.data))

    return EventStream(parts, look)


async def _seen_all(parts: HttpParts) -> Seen:
    try:
        runs = await parts.in_thread(_newest, parts)
    except KnowledgeError as error:
        value = event_problem_json(error)
        return Seen(value, value, name="problem")
    health, now_ns = await health_now(parts), time.time_ns()
    values = [event_run_json(one, now_ns) for one in runs]
    kept = [lasting_run(value, one, now_ns) for value, one in zip(values, runs, strict=True)]
    return Seen(events_json(values, health), events_json(kept, lasting(health)))


def _newest(parts: HttpParts) -> list[ShownRun]:
    try:
        return shown_runs(parts.settings, RUNS_TOLD)
    except NotBuiltError:  # its first run will be told
        return []


async def follow_run(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    run_id = run_of(request)
    with hiding_places(request):
        await parts.in_thread(shown_run, parts.settings, run_id)

    async def look() -> Seen:
        seen = await parts.looks.at(("run", run_id), lambda: _seen_run(parts, run_id), at_most_old_s=AT_MOST_OLD_S)
        return seen._replace(data=shown_to(parts, request, seen.data))

    return EventStream(parts, look)


async def _seen_run(parts: HttpParts, run_id: int) -> Seen:
    try:
        shown = await parts.in_thread(shown_run, parts.settings, run_id)
    except (NotFoundError, NotBuiltError) as error:  # the index was reset meanwhile
        value = event_problem_json(error)
        return Seen(value, value, name="problem", end={"run": run_id, "state": None})
    except KnowledgeError as error:
        value = event_problem_json(error)
        return Seen(value, value, name="problem")
    now_ns = time.time_ns()
    value = event_run_json(shown, now_ns)
    told: Json = events_json([value], None)
    is_over = shown.run.ended_ns is not None or shown.run.state == "interrupted"
    end = run_end_json(shown) if is_over else None
    return Seen(told, events_json([lasting_run(value, shown, now_ns)], None), end=end)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/v1/events", follow_all, "followAll",
        "Follow all runs, and the health of the service; one event a second at most.", answer="events",
        returns=EventShape,
    ),
    Endpoint(
        "GET", "/v1/runs/{run:int}/events", follow_run, "followRun",
        "Follow one run to its end.", answer="events", returns=EventShape,
    ),
)  # fmt: skip
