"""What the HTTP answers about runs, failures and schedules have beside those of the command line: pages, and fewer
places for those who only read."""

from collections.abc import Sequence
from pathlib import PurePath

from app.approving import HeldList
from app.present import Json, error_json
from app.present_http import without_places
from app.present_runs import now_words, run_json, runs_json
from app.run_standstill import still_s
from app.runs import ShownRun
from domain.errors import KnowledgeError
from store.run_port import Change
from store.state_port import RemovalCandidate

STILL_TOLD_EVERY_S = 60


def runs_page_json(shown: Sequence[ShownRun], now_ns: int, *, has_more: bool) -> Json:
    """`runs --json` with `next_cursor`: null where no older run is on record."""
    return {**runs_json(shown, now_ns), "next_cursor": str(shown[-1].run.id) if has_more else None}


def changes_page_json(run_id: int, change: Change, keys: Sequence[str], next_cursor: str | None) -> Json:
    return {"run": run_id, "change": change, "paths": list(keys), "next_cursor": next_cursor}


def held_page_json(
    run_id: int, held: HeldList | None, page: Sequence[RemovalCandidate], why_not: str, *, has_more: bool
) -> Json:
    """`held` is None behind the first page: the whole list is gone through for its digest."""
    return {
        "run": run_id,
        "count": held.count if held is not None else None,
        "digest": (held.digest or None) if held is not None else None,
        "approvable": not why_not,
        "because": why_not or None,
        "removals": [{"path": candidate.key, "reason": candidate.reason.value} for candidate in page],
        "next_cursor": page[-1].key if has_more else None,
    }


def schedules_for_readers(value: Json) -> Json:
    """Without paths of the machine."""
    told = without_places(value) | {"base": None}
    told["schedules"] = [
        one | {"roots": [PurePath(root).name or root for root in one["roots"]]} for one in value["schedules"]
    ]
    return told


def event_run_json(shown: ShownRun, now_ns: int) -> Json:
    """A run as events tell it: with what it is at in words."""
    return {**run_json(shown, now_ns), "words": now_words(shown, now_ns)}


def lasting_run(value: Json, shown: ShownRun, now_ns: int) -> Json:
    """What of it stays the same for as long as nothing happens; that nothing does is told once a minute."""
    return {**value, "words": None, "still_seconds": still_s(shown.run, now_ns) // STILL_TOLD_EVERY_S}


def events_json(runs: Sequence[Json], health: Json | None) -> Json:
    """The data of an event; `health` is null where it is about one run."""
    return {"runs": list(runs), "health": health}


def run_end_json(shown: ShownRun) -> Json:
    return {"run": shown.run.id, "state": shown.run.state}


def event_problem_json(error: KnowledgeError) -> Json:
    return error_json(error)
