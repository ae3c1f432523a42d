"""Runs over HTTP: the list, one of them, what it has changed, what it holds."""

import time
from collections.abc import AsyncIterator
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from app.approving import HELD, held_list, held_page, why_not_approvable
from app.present import Json
from app.present_http import export_end_json
from app.present_http_runs import changes_page_json, held_page_json, runs_page_json
from app.present_runs import changes_gone_text, held_json, run_json
from app.runs import CHANGES, are_changes_kept, changes_page, known_run, shown_run, shown_runs
from domain.errors import KnowledgeError, NotFoundError, UsageError
from server.http import events, operate_endpoints, run_endpoints_failures, run_endpoints_health
from server.http.answer_shapes_runs import ChangeLine, ChangesShape, HeldRemovalsShape, RunShownShape, RunsShape
from server.http.answers import HEADERS, LINES_TYPE, json_answer, json_line
from server.http.parameters import query_of, refuse_query
from server.http.parts import Endpoint, HttpParts
from server.http.recorded import MOST_RUN_ID, hiding_places, recorded, run_of, shown_to
from store.run_port import Change
from store.state_port import StateStore
from store.state_runs import KEPT_CHANGES_OF_RUNS

LINES_AT_A_TIME = 1000  # of an export: read in a thread, and let go of before they are sent
_BEGINNING = (-1, 0)


class RunsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=500, description="How many runs, 1 to 500.")] = 20
    cursor: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_RUN_ID)] | None,
        Meta(description="`next_cursor` of the answer before this one."),
    ] = None


class ChangesParameters(Struct, frozen=True, forbid_unknown_fields=True):
    kind: Annotated[Change, Meta(description="What became of the documents.")]
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many documents, 1 to 1000.")] = 100
    cursor: Annotated[str, Meta(description="`next_cursor` of the answer before this one.")] = ""


class HeldParameters(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many documents, 1 to 1000.")] = 100
    cursor: Annotated[str, Meta(description="`next_cursor` of the answer before this one.")] = ""


async def list_runs(parts: HttpParts, request: Request) -> Response:
    value = await parts.in_thread(_runs, parts, request, query_of(request, RunsParameters))
    return json_answer(shown_to(parts, request, value))


def _runs(parts: HttpParts, request: Request, asked: RunsParameters) -> Json:
    with hiding_places(request):
        shown = shown_runs(parts.settings, asked.limit + 1, before=asked.cursor or 0)
    return runs_page_json(shown[: asked.limit], time.time_ns(), has_more=len(shown) > asked.limit)


async def show_run(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    return json_answer(shown_to(parts, request, await parts.in_thread(_run, parts, request, run_of(request))))


def _run(parts: HttpParts, request: Request, run_id: int) -> Json:
    with hiding_places(request):
        shown = shown_run(parts.settings, run_id)
    return {**run_json(shown, time.time_ns()), "removals_held": held_json(shown.held)}


async def list_changes(parts: HttpParts, request: Request) -> Response:
    asked = query_of(request, ChangesParameters)
    return json_answer(await parts.in_thread(_changes, parts, request, run_of(request), asked))


def _changes(parts: HttpParts, request: Request, run_id: int, asked: ChangesParameters) -> Json:
    with recorded(parts, request) as state:
        _require_kept(state, run_id)
        keys, end = changes_page(state, run_id, asked.kind, _place(asked.cursor), asked.limit)
    return changes_page_json(run_id, asked.kind, keys, f"{end[0]}.{end[1]}" if end is not None else None)


def _place(cursor: str) -> tuple[int, int]:
    if not cursor:
        return _BEGINNING
    page, _, given = cursor.partition(".")
    if not (page.isascii() and page.isdigit() and given.isascii() and given.isdigit() and len(cursor) < 30):
        raise UsageError("the cursor is none that an answer gave", hint="leave the cursor out to begin anew")
    return int(page), int(given)


def _require_kept(state: StateStore, run_id: int) -> None:
    known_run(state, run_id)
    if not are_changes_kept(state, run_id):
        raise NotFoundError(changes_gone_text(run_id, KEPT_CHANGES_OF_RUNS).strip())


async def export_changes(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    run_id = run_of(request)
    await parts.in_thread(_exportable, parts, request, run_id)
    lines = _change_lines(parts, request, run_id)
    return StreamingResponse(lines, media_type=LINES_TYPE, headers=HEADERS)


def _exportable(parts: HttpParts, request: Request, run_id: int) -> None:
    with recorded(parts, request) as state:
        _require_kept(state, run_id)


async def _change_lines(parts: HttpParts, request: Request, run_id: int) -> AsyncIterator[str]:
    """Some at a time; nothing is kept open while a slow client reads."""
    given = 0
    yield json_line({"run": run_id})
    try:
        for change in CHANGES:
            place: tuple[int, int] | None = _BEGINNING
            while place is not None:
                keys, place = await parts.in_thread(_some_changes, parts, request, run_id, change, place)
                given += len(keys)
                yield "".join(json_line({"change": change, "path": key}) for key in keys)
    except KnowledgeError as error:
        yield json_line(export_end_json(given, error))
        return
    yield json_line(export_end_json(given))


def _some_changes(
    parts: HttpParts, request: Request, run_id: int, change: Change, place: tuple[int, int]
) -> tuple[list[str], tuple[int, int] | None]:
    with recorded(parts, request) as state:
        _require_kept(state, run_id)  # also in the midst: they may be forgotten meanwhile
        return changes_page(state, run_id, change, place, LINES_AT_A_TIME)


async def list_held(parts: HttpParts, request: Request) -> Response:
    asked = query_of(request, HeldParameters)
    return json_answer(await parts.in_thread(_held, parts, request, run_of(request), asked))


def _held(parts: HttpParts, request: Request, run_id: int, asked: HeldParameters) -> Json:
    with recorded(parts, request) as state:
        run = known_run(state, run_id)
        holds = run.cause == HELD  # a run that goes on has candidates, and holds none yet
        page = held_page(state, run_id, after=asked.cursor, limit=asked.limit + 1) if holds else []
        held = held_list(state, run_id) if holds and not asked.cursor else None
        why_not = why_not_approvable(state, run)
    has_more = len(page) > asked.limit
    return held_page_json(run_id, held, page[: asked.limit], why_not, has_more=has_more)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/v1/runs", list_runs, "listRuns", "List runs, the newest first.",
        query=RunsParameters, returns=RunsShape,
    ),
    Endpoint(
        "GET", "/v1/runs/{run:int}", show_run, "showRun", "Show one run, and the removals that it holds.",
        returns=RunShownShape,
    ),
    Endpoint(
        "GET", "/v1/runs/{run:int}/changes", list_changes, "listRunChanges",
        "List the documents that a run has added, updated, moved or removed.", query=ChangesParameters,
        returns=ChangesShape,
    ),
    Endpoint(
        "GET", "/v1/runs/{run:int}/changes.ndjson", export_changes, "exportRunChanges",
        "All documents that a run has changed, a line each; the last line says whether they are all.", answer="lines",
        returns=ChangeLine,
    ),
    Endpoint(
        "GET", "/v1/runs/{run:int}/held", list_held, "listHeldRemovals",
        "List the removals that a run holds, with the digest that approves exactly these.", query=HeldParameters,
        returns=HeldRemovalsShape,
    ),
    *run_endpoints_failures.ENDPOINTS,
    *run_endpoints_health.ENDPOINTS,
    *events.ENDPOINTS,
    *operate_endpoints.ENDPOINTS,
)  # fmt: skip
