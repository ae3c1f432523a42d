"""state.db for endpoints: which run a path names, and the words where nothing is on record."""

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request

from app.present import Json
from app.present_http import machine_places, not_built_for_readers, without_named
from app.runs import recorded_runs
from domain.errors import NotBuiltError, NotFoundError
from server.http.parts import HttpParts
from server.http.reading import may_operate
from store.state import SqliteStateStore

MOST_RUN_ID = 2**63 - 1


def run_of(request: Request) -> int:
    """The run that a path names. Raises NotFoundError for a number that none can have."""
    run_id: int = request.path_params["run"]
    if not 0 < run_id <= MOST_RUN_ID:
        raise NotFoundError(f"there is no run {str(run_id)[:20]}", hint="GET /v1/runs lists them")
    return run_id


def shown_to(parts: HttpParts, request: Request, value: Json) -> Json:
    """What those who only read are told: no place of the machine, not even in the words of an error."""
    if may_operate(request):
        return value
    shown: Json = without_named(value, machine_places(parts.settings))
    return shown


@contextmanager
def hiding_places(request: Request) -> Iterator[None]:
    """Where there is no index: those who only read are not told where it was looked for."""
    try:
        yield
    except NotBuiltError:
        if may_operate(request):
            raise
        raise not_built_for_readers() from None


@contextmanager
def recorded(parts: HttpParts, request: Request) -> Iterator[SqliteStateStore]:
    """Open for reading. Raises NotBuiltError."""
    with hiding_places(request), recorded_runs(parts.settings) as state:
        yield state
