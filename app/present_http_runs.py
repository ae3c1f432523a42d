"""What the HTTP answers about runs, failures and schedules have beside those of the command line: pages, and fewer
places for those who only read."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from app.approving import HeldList
from app.present import Json, error_json
from app.present_http import not_built_for_readers, without_places
from app.present_runs import now_words, run_json, runs_json
from app.run_standstill import still_s
from app.runs import ShownRun
from domain.errors import KnowledgeError, NotBuiltError
from domain.settings import Settings
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


def machine_places(settings: Settings) -> list[str]:
    """Paths that sentences may name, the longest first."""
    places = [settings.home, *(root.path for root in settings.roots), settings.config_path]
    return sorted({str(place) for place in places if place is not None}, key=len, reverse=True)


def told_to_readers(error: KnowledgeError, settings: Settings) -> KnowledgeError:
    """The error for callers who are told of no place on this machine; it may be the same one, changed."""
    if isinstance(error, NotBuiltError):
        return not_built_for_readers()
    places = machine_places(settings)
    error.message, error.hint = without_named(error.message, places), without_named(error.hint, places)
    return error


def without_named(value: Any, places: Sequence[str]) -> Any:
    """The same with `...` for each of these places, in sentences too."""
    if isinstance(value, str):
        for place in places:
            value = value.replace(place, "...")
        return value
    if isinstance(value, list):
        return [without_named(one, places) for one in value]
    if isinstance(value, dict):
        return {key: without_named(one, places) for key, one in value.items()}
    return value


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
