"""What the overview of operations shows, looked up at once."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from starlette.requests import Request

from app.present import Json
from app.runs import ShownRun, shown_runs
from app.schedule_status import SchedulesStatus, schedules_status
from app.status import BaseStatus, base_status
from domain.errors import KnowledgeError
from server.http.parts import HttpParts
from server.http.reading import opened
from store.failure_port import FailureCount

RUNS = 12


class Overview(NamedTuple):
    now_ns: int
    status: BaseStatus | None  # None: `problem` says why
    problem: KnowledgeError | None
    runs: Sequence[ShownRun]
    failures: Sequence[FailureCount]
    schedules: SchedulesStatus
    health: Json  # as GET /v1/health has it


def overview(parts: HttpParts, request: Request, health: Json) -> Overview:
    """Raises nothing of ours but what the schedules of a broken state.db raise."""
    settings, now_ns = parts.settings, time.time_ns()
    status: BaseStatus | None = None
    problem: KnowledgeError | None = None
    failures: Sequence[FailureCount] = ()
    try:
        with opened(parts, request) as base:
            failures = tuple(base.state.failure_counts())
            status = base_status(base, settings)
    except KnowledgeError as error:
        problem = error
    return Overview(now_ns, status, problem, _runs(parts), failures, schedules_status(settings, now_ns), health)


def _runs(parts: HttpParts) -> Sequence[ShownRun]:
    try:
        return shown_runs(parts.settings, RUNS)
    except KnowledgeError:  # no index yet: the problem is told by itself
        return ()
