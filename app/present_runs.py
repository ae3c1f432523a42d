"""Runs in words and as JSON: what a run is at, why and since when, how quickly, and what it has changed.

Slow, waiting and dead are told apart by what has moved: counters that grow, a cause that is named, a process that is
gone (app.runs).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from app.approving import HeldList
from app.discovery import Located
from app.present import Json, ago, count, duration, index_line, size, tier_line, utc
from app.present_reasons import counts_words, held_words
from app.present_safe import name, one_line
from app.present_standstill import standstill_json, standstill_words
from app.run_standstill import still_s
from app.runs import ShownRun, exit_status_of
from domain.settings import Settings
from domain.status import Tier
from store.port import StoreCounts
from store.run_port import Change, RunRecord

_NS = 1_000_000_000
STILL_AFTER_S = 60  # without a counter that has moved: that is said
_STATES = {
    "queued": "queued",
    "walking": "looking for files",
    "checking": "reading files",
    "embedding": "making vectors",
    "writing": "writing",
    "paused": "paused",
    "waiting": "waiting",
    "needs_approval": "ended, and needs approval",
    "interrupted": "interrupted",
    "cancelled": "cancelled",
    "partial": "ended with something left out",
    "done": "ended well",
    "failed": "failed",
}
_STATES_OF_KIND = {("verify", "checking"): "checking the index", ("compact", "writing"): "compacting"}
_TRIGGERS = {"cli": "command line", "start": "first start", "schedule": "schedule", "watch": "watch", "api": "API"}
NO_SCHEDULER = "no scheduler is running: it goes on when one is (`knowledge up`)"
NO_SCHEDULER_QUEUED = "no scheduler is running: it begins when one is (`knowledge up`)"


class Pace(NamedTuple):
    """How quickly a run gets on. `per_second` is of files that were read; 0.0: not known."""

    per_second: float
    remaining_s: float | None  # None: not known


def average_pace(run: RunRecord) -> Pace:
    """Over the whole run so far; a run that stood still meanwhile is quicker than this says."""
    checked = run.progress.get("checked", 0)
    took_s = (run.progressed_ns - run.started_ns) / _NS
    return pace(run, checked / took_s if checked and took_s > 0 else 0.0)


def pace(run: RunRecord, per_second: float) -> Pace:
    """With the time that the rest takes at this rate, where it is known how much that is."""
    left = run.progress.get("to_check", 0) - run.progress.get("checked", 0)
    is_known = bool(run.progress.get("is_plan_complete")) and per_second > 0 and run.state == "checking" and left > 0
    return Pace(per_second, left / per_second if is_known else None)


def state_words(run: RunRecord) -> str:
    return _STATES_OF_KIND.get((run.kind, run.state), _STATES.get(run.state, run.state.replace("_", " ")))


def now_words(shown: ShownRun, now_ns: int, at: Pace | None = None) -> str:
    """What a run is at: `reading files for 3 min: 9,210 of 12,000 files, 310/s, 9 s left`."""
    run = shown.run
    if run.ended_ns is not None or run.state == "interrupted":
        return _ended_words(run, now_ns)
    for_s = max(0, now_ns - (run.since_ns or run.started_ns)) // _NS
    words = state_words(run) + (f" for {duration(for_s)}" if for_s else "")
    if run.requested:
        words += f", asked to {run.requested}"
    words += _cause_words(run)
    told = [*_counters(run), *_pace_words(at or average_pace(run)), *_still_words(shown, now_ns)]
    words += f": {', '.join(told)}" if told else ""
    if shown.awaits_scheduler:
        words += f"; {NO_SCHEDULER_QUEUED if run.state == 'queued' else NO_SCHEDULER}"
    return words


def _ended_words(run: RunRecord, now_ns: int) -> str:
    ended_ns = run.ended_ns
    words = state_words(run) + _cause_words(run)
    if ended_ns is not None:
        took_s = (ended_ns - run.started_ns) / _NS if run.generation else 0.0
        words += f" {ago(ended_ns, now_ns)}" + (f", took {duration(took_s)}" if took_s > 0 else "")
    told = _counts_words(run)
    return f"{words}: {told}" if told else words


def _cause_words(run: RunRecord) -> str:
    """Why a run is in its state: a code, with names of its own behind a colon, or a few words."""
    if not run.cause or run.cause == run.state:
        return ""
    code, colon, detail = run.cause.partition(": ")
    words = code.replace("_", " ") if " " not in code else code
    return f" ({one_line(f'{words}{colon}{detail}', 200)})"


def _counts_words(run: RunRecord) -> str:
    counts = run.counts
    if "checks" in counts:
        return f"{count(counts['checks'], 'check')}, {counts.get('checks_failed', 0):,} failed"
    if "bytes_after" in counts:
        return f"{size(counts['bytes_after'])}, before {size(counts.get('bytes_before', 0))}"
    return counts_words(counts) if counts else ""


def _counters(run: RunRecord) -> Iterator[str]:
    progress = run.progress
    if not progress:
        return
    checked, found = progress.get("checked", 0), progress.get("found", 0)
    if not checked:
        yield f"{count(found, 'file')} found"
    elif progress.get("is_plan_complete"):
        yield f"{checked:,} of {count(progress.get('to_check', 0), 'file')} read"
    else:
        yield f"{count(checked, 'file')} read of {found:,} found so far"
    if progress.get("embedded") or progress.get("reused"):
        yield f"{count(progress.get('embedded', 0), 'text')} embedded"


def _pace_words(at: Pace) -> Iterator[str]:
    if at.per_second:
        yield f"{at.per_second:,.0f}/s" if at.per_second >= 10 else f"{at.per_second:.1f}/s"
    if at.remaining_s is not None:
        yield f"{duration(round(max(at.remaining_s, 1)))} left"


def _still_words(shown: ShownRun, now_ns: int) -> Iterator[str]:
    """What is dead or silent is told at once, what is slow only after a while."""
    seconds, found = still_s(shown.run, now_ns), shown.standstill
    if seconds < STILL_AFTER_S and (found is None or found.how == "slow"):
        return
    words = f"no progress for {duration(seconds)}"
    # the cause of a run that waits says it already, unless nobody has been able to write one down
    is_told = found is not None and (shown.run.state != "waiting" or found.who == "scheduler")
    if found is not None and is_told:
        yield f"{words} ({standstill_words(found)})" if seconds else standstill_words(found)
    elif seconds:
        yield words


def asked_words(run: RunRecord) -> str:
    by = f"schedule {name(run.schedule)}" if run.schedule else _TRIGGERS.get(run.trigger, run.trigger)
    roots = f" of {', '.join(map(name, run.roots))}" if run.roots else ""
    return f"{run.kind}{roots}, by {by}"


def run_line(shown: ShownRun, now_ns: int) -> str:
    return f"run {shown.run.id}: {asked_words(shown.run)}; {now_words(shown, now_ns)}"


def runs_text(shown: Sequence[ShownRun], located: Located, settings: Settings, now_ns: int) -> str:
    lines = [index_line(located, settings), *(run_line(one, now_ns) for one in shown)]
    if not shown:
        lines.append("no run is on record")
    lines += [
        f"  run {one.run.id} holds removals: `knowledge runs show {one.run.id}` shows them"
        for one in shown
        if one.run.state == "needs_approval"
    ]
    return "\n".join(lines) + "\n"


def run_text(shown: ShownRun, now_ns: int) -> str:
    """All that is known of one run."""
    return "\n".join(_run_lines(shown, now_ns)) + "\n"


def _run_lines(shown: ShownRun, now_ns: int) -> Iterator[str]:
    run = shown.run
    yield f"run {run.id}: {asked_words(run)}"
    yield f"  {now_words(shown, now_ns)}"
    yield f"  asked for at {utc(run.queued_ns or run.started_ns)}" + (
        f", begun at {utc(run.started_ns)}" if run.generation else ", not begun"
    )
    if run.ended_ns is not None:
        yield f"  ended at {utc(run.ended_ns)}"
    if run.message:
        yield f"  why: {one_line(run.message, 500)}"
    if run.hint:
        yield f"  hint: {one_line(run.hint, 500)}"
    if shown.held is not None and shown.held.count:
        yield from _held_lines(run, shown.held)


def _held_lines(run: RunRecord, held: HeldList) -> Iterator[str]:
    yield f"  holds the removal of {count(held.count, 'document')}, which stay in the index:"
    yield from (f"    {name(key)}" for key in held.first)
    if held.count > len(held.first):
        yield f"    and {held.count - len(held.first):,} more"
    yield f"  digest of the list: {held.digest}"
    if run.state == "needs_approval":
        yield f"  to let exactly these go: knowledge runs approve {run.id} --digest {held.digest[:12]}"


def ended_run_text(shown: ShownRun, tier: Tier, counts: StoreCounts) -> str:
    """The summary of a run of the service, in the words of one on a command line as far as its record has them."""
    run = shown.run
    lines = [tier_line(tier)]
    verb = {"index": "indexed", "reindex": "reindexed"}.get(run.kind, run.kind)
    lines.append(f"{verb}: {_counts_words(run) or 'nothing to do'}")
    if run.counts.get("failed"):
        lines.append("  files that failed: `knowledge failures` lists them")
    if run.cause:
        lines.append(f"  {state_words(run)}: {one_line(held_words(run.cause), 200)}")
    if shown.held is not None and shown.held.count:
        lines += _held_lines(run, shown.held)
    lines.append(f"{count(counts.documents, 'file')}, {count(counts.chunks, 'chunk')} in the index")
    took_s = ((run.ended_ns or run.started_ns) - run.started_ns) / _NS
    lines.append(f"run {run.id} took {duration(took_s)}")
    return "\n".join(lines) + "\n"


def follow_line(shown: ShownRun, now_ns: int, at: Pace) -> str:
    return f"run {shown.run.id}: {now_words(shown, now_ns, at)}"


def detached_text(run_id: int) -> str:
    return f"run {run_id} goes on; to follow it again: knowledge runs show {run_id} --follow\n"


def submitted_text(run: RunRecord) -> str:
    return f"run {run.id} is handed to the service; to follow it: knowledge runs show {run.id} --follow\n"


def asked_text(run: RunRecord, wish: str, now_ns: int) -> str:
    """What has become of what was asked of a run."""
    told = now_words(ShownRun(run), now_ns)
    verb = {"pause": "pause", "cancel": "end", "": "go on"}[wish]
    has_done = run.ended_ns is not None or (run.state == "paused") == (wish == "pause")
    if wish == "cancel" and run.ended_ns is None:
        has_done = False
    return f"run {run.id}: {told}\n" if has_done else f"run {run.id} is asked to {verb}: {told}\n"


def change_lines(change: Change, keys: Iterable[str]) -> Iterator[str]:
    return (f"{change} {name(key)}\n" for key in keys)


def changes_gone_text(run_id: int, kept: int) -> str:
    return f"what run {run_id} has changed is on record no more: it is kept for the newest {kept} runs\n"


def held_json(held: HeldList | None) -> Json | None:
    return None if held is None else {"count": held.count, "first": list(held.first), "digest": held.digest or None}


def run_json(shown: ShownRun, now_ns: int) -> Json:
    run, at = shown.run, average_pace(shown.run)
    is_over = run.ended_ns is not None or run.state == "interrupted"
    progress: dict[str, Any] = {**run.progress, "is_plan_complete": bool(run.progress.get("is_plan_complete"))}
    return {
        "id": run.id,
        "kind": run.kind,
        "trigger": run.trigger,
        "schedule": run.schedule or None,
        "roots": list(run.roots),
        "full": run.full,
        "state": run.state,
        "cause": run.cause,
        "message": run.message or None,
        "hint": run.hint or None,
        "requested": run.requested or None,
        "generation": run.generation or None,
        "queued_at": utc(run.queued_ns or None),
        "started_at": utc(run.started_ns) if run.generation else None,
        "since_at": utc(run.since_ns or None),
        "ended_at": utc(run.ended_ns),
        "counts": run.counts,
        "progress": progress if run.progress else {},
        "progressed_at": utc(run.progressed_ns or None),
        "still_seconds": still_s(run, now_ns),
        "standstill": standstill_json(shown.standstill),
        "files_per_second": round(at.per_second, 1) if not is_over else None,
        "remaining_seconds": round(at.remaining_s) if at.remaining_s is not None and not is_over else None,
        "awaits_scheduler": shown.awaits_scheduler,
        "exit_status": exit_status_of(run) if is_over else None,
    }


def runs_json(shown: Sequence[ShownRun], now_ns: int) -> Json:
    return {"exit_status": 0, "runs": [run_json(one, now_ns) for one in shown]}
