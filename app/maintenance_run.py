"""The runs of a service that walk no folder: `verify` and `compact`, carried out by its writer.

What they have found is kept beside the run, so that whoever follows it can say all of it.
"""

import time
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

import msgspec

from app.compacting import CompactReport
from app.outcomes import Outcomes
from app.roles.calls import Compact, Verify, await_answer, place_call, plain, unplain
from app.run_ending import recorded_failure
from app.service_run import ServiceRun
from app.verifying import VerifyReport
from domain.checks import CheckState
from domain.errors import IntegrityError
from domain.layout import BaseLayout
from store import files
from store.lock import is_held
from store.run_port import RunLedgerPort, RunRecord, RunState
from store.state import SqliteStateStore

LOOK_FOR_WRITER_EVERY_S = 1.0
MAINTENANCE_KINDS = ("verify", "compact")
NO_WRITER = "no writer is alive"
Report = TypeVar("Report", VerifyReport, CompactReport)


def carry_out_maintenance_run(it: ServiceRun) -> None:
    """Have the writer do it; how the run has ended is recorded, also where it fails or is cancelled.

    Raises what has ended it. What `heed` raises beside CancelledRunError leaves the run open, for whoever takes over.
    """
    layout = BaseLayout(it.settings.home)
    with (
        closing(SqliteStateStore(layout.state)) as state,
        recorded_failure(state, it.run, Outcomes(it.progress)),
    ):
        it.control.await_permission(lambda is_paused: _tell_paused(state, it.run, is_paused))
        if it.run.kind == "verify":
            _record_verified(state, it.run, _asked(it, state, Verify(it.request.deep), VerifyReport))
        else:
            _record_compacted(state, it.run, _asked(it, state, Compact(f"run-{it.run.id}"), CompactReport))


def report_of(state: RunLedgerPort, run_id: int, kind: type[Report]) -> Report | None:
    """What a run that has ended has found; None where nothing is on record."""
    told = state.plan_of(run_id).get("report")
    return None if told is None else msgspec.convert(told, kind, dec_hook=unplain)


def _asked(it: ServiceRun, state: SqliteStateStore, call: Verify | Compact, kind: type[Report]) -> Report:
    calls = files.make_calls(BaseLayout(it.settings.home))
    # one call a run, also where the scheduler that has begun it was killed
    return await_answer(calls, place_call(calls, call, f"run-{it.run.id}"), kind, _heeding(it, state))


def _heeding(it: ServiceRun, state: SqliteStateStore) -> Callable[[], None]:
    """Ends the wait when the run is cancelled, and says meanwhile whether anybody is at it."""
    lock = BaseLayout(it.settings.home).lock
    at_work: RunState = "checking" if it.run.kind == "verify" else "writing"
    looked_s = float("-inf")

    def heed() -> None:
        nonlocal looked_s
        it.heed()
        if time.monotonic() - looked_s >= LOOK_FOR_WRITER_EVERY_S:
            looked_s = time.monotonic()
            if is_held(lock):
                state.set_run_state(it.run.id, at_work, "")
            else:
                state.set_run_state(it.run.id, "waiting", NO_WRITER)

    return heed


def _record_verified(state: SqliteStateStore, run: RunRecord, report: VerifyReport) -> None:
    failed = [result.name for result in report.results if result.state is CheckState.FAIL and result.is_fatal]
    counts = {"checks": len(report.results), "checks_failed": len(failed)}
    _keep(state, run, report)
    cause = f"{IntegrityError.code}: {', '.join(failed)}" if failed else ""
    state.end_run(run.id, "failed" if failed else "done", counts, cause)


def _record_compacted(state: SqliteStateStore, run: RunRecord, report: CompactReport) -> None:
    counts = {
        "bytes_before": report.before.bytes,
        "bytes_after": report.after.bytes,
        "vectors_dropped": report.vectors_dropped,
    }
    _keep(state, run, report)
    state.end_run(run.id, "done", counts, "")


def _keep(state: SqliteStateStore, run: RunRecord, report: VerifyReport | CompactReport) -> None:
    state.record_plan(run.id, {"report": msgspec.to_builtins(report, enc_hook=plain)})


def _tell_paused(state: SqliteStateStore, run: RunRecord, is_paused: bool) -> None:
    state.set_run_state(run.id, "paused" if is_paused else "walking", "paused" if is_paused else "")
