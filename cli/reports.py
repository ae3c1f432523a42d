"""Printing what a verb has done, and what a service has done for it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from app.present import Json, json_text
from app.receipts import require_built
from app.tiers import tier_now
from cli import terminal
from cli.chosen_base import naming_places
from domain.errors import KnowledgeError
from domain.settings import Settings
from domain.status import Tier

if TYPE_CHECKING:
    from app.compacting import CompactReport
    from app.config import Loaded
    from app.run_request import RunRequest
    from app.verifying import VerifyReport

Report = TypeVar("Report")
RunReport = TypeVar("RunReport", "VerifyReport", "CompactReport")


def print_report(
    report: Report,
    settings: Settings,
    as_text: Callable[[Report, Tier], str],
    as_value: Callable[[Report, Tier], Json],
    *,
    as_json: bool,
) -> None:
    tier = tier_now(settings)
    if as_json:
        terminal.write_json(json_text(as_value(report, tier)))
    else:
        terminal.write(as_text(report, tier))


def report_of_service(
    loaded: "Loaded", request: "RunRequest", kind: type[RunReport], *, detaches: bool, as_json: bool
) -> RunReport | int:
    """What a run of the service has found, followed to its end; the exit status where the run was only handed over.

    Raises NotBuiltError, and what the run has ended with.
    """
    from app.maintenance_run import report_of
    from app.runs import error_of_run, recorded_runs
    from cli.following import concluded, handed_over

    with naming_places(loaded):
        require_built(loaded.settings)
    run = handed_over(loaded.settings, request, is_quiet=as_json, detaches=detaches)
    if detaches:
        return concluded(loaded, run, is_quiet=False, as_json=as_json)
    with recorded_runs(loaded.settings) as state:
        report = report_of(state, run.id, kind)
    if report is None:
        raise error_of_run(run) or KnowledgeError(f"run {run.id} has left no report")
    return report
