"""The health of a service over HTTP: its numbers, the checks of the doctor, and how much of the folders is indexed."""

import time

from starlette.requests import Request
from starlette.responses import Response

from app.present import Json, utc
from app.present_service_health import health_json
from server.http.answer_shapes_runs import ChecksShape, CoverageShape, HealthShape
from server.http.answers import json_answer
from server.http.parameters import refuse_query
from server.http.parts import Endpoint, HttpParts
from server.http.reading import opened
from server.http.recorded import shown_to

HEALTH_AT_MOST_OLD_S = 0.9
DOCTOR_AT_MOST_OLD_S = 5.0  # it asks servers, and may be asked again and again
COVERAGE_AT_MOST_OLD_S = 30.0  # all folders are walked: a second for 40,000 files


async def health_now(parts: HttpParts) -> Json:
    """The same for all who ask within a second."""

    async def look() -> Json:
        return await parts.in_thread(_health, parts)

    return await parts.looks.at("health", look, at_most_old_s=HEALTH_AT_MOST_OLD_S)


def _health(parts: HttpParts) -> Json:
    return health_json(parts.health.look(parts.settings, parts.queue()), time.time_ns())


async def show_health(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    return json_answer(shown_to(parts, request, await health_now(parts)))


async def show_checks(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)

    async def look() -> Json:
        return await parts.in_thread(_checks, parts)

    return json_answer(await parts.looks.at("doctor", look, at_most_old_s=DOCTOR_AT_MOST_OLD_S))


def _checks(parts: HttpParts) -> Json:
    from app.doctor import diagnose, exit_status
    from app.present_checks import doctor_json
    from app.tiers import tier_now

    results = diagnose(parts.settings, parts.loaded.located)
    return doctor_json(results, tier_now(parts.settings, finishes_restores=False), exit_status(results))


async def show_coverage(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)

    async def look() -> Json:
        return await parts.in_thread(_covered, parts, request)

    return json_answer(await parts.looks.at("coverage", look, at_most_old_s=COVERAGE_AT_MOST_OLD_S))


def _covered(parts: HttpParts, request: Request) -> Json:
    from app.coverage import coverage
    from app.present_coverage import coverage_json
    from app.status import base_status

    now_ns = time.time_ns()
    with opened(parts, request) as base:
        status = base_status(base, parts.settings)
        covered = coverage(base, parts.settings)
    return {"at": utc(now_ns), **coverage_json(status, covered, parts.settings)}


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/v1/health", show_health, "showHealth",
        "Numbers of the index, the queue and the roles; null: not known here.", returns=HealthShape,
    ),
    Endpoint(
        "GET", "/v1/doctor", show_checks, "runDoctor",
        "Look for what is not in order, as `knowledge doctor` does.", scope="operate", returns=ChecksShape,
    ),
    Endpoint(
        "GET", "/v1/coverage", show_coverage, "showCoverage",
        "Walk the folders: how many of their files are indexed, and why others are not; at most half a minute old.",
        scope="operate", returns=CoverageShape,
    ),
)  # fmt: skip
