"""A run that was asked for with no service to do it: done by this command."""

from typing import TYPE_CHECKING

from app.run_request import RunRequest
from app.runs import recorded_runs
from app.submitting import index_request_of
from cli.index_verb import index_here, no_service_to_detach_to

if TYPE_CHECKING:
    from app.config import Loaded


def carried_out_here(loaded: "Loaded", request: RunRequest, *, is_quiet: bool, as_json: bool, detach: bool) -> int:
    """The exit status. Raises UsageError with `detach`, and what the run raises."""
    if detach:
        raise no_service_to_detach_to()
    match request.kind:
        case "verify":
            from cli.verify_verb import verify_here

            return verify_here(loaded, request.deep, as_json=as_json)
        case "compact":
            from cli.maintain_verbs import compact_here

            return compact_here(loaded, as_json=as_json)
    with recorded_runs(loaded.settings) as state:
        asked = index_request_of(request, state.roots())
    return index_here(loaded, asked, is_quiet=is_quiet, as_json=as_json)
