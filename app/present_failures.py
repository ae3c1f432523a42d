"""Failures in words and as JSON: what a run has left alone, and what `failures`, `retry` and `ignore` say."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from app.present import Json, ago, count, duration, utc
from app.present_reasons import reason_words
from app.present_safe import name, one_line
from domain.retry_rules import FailureStanding, is_waiting
from store.failure_port import FailureCount, FailureRecord

if TYPE_CHECKING:
    from app.failures import ToRetry
    from scheduler.plan import NotTried

_NS = 1_000_000_000
RETRY_HINT = "to try them now: knowledge retry --all (or a path); to see all: knowledge failures"


def next_words(standing: str, next_ns: int, now_ns: int) -> str:
    """When a file that failed is tried again."""
    if standing == "ignored":
        return "ignored: not tried again"
    if standing == "quarantined":
        return "quarantined: not tried again before it changes"
    if is_waiting(next_ns, now_ns):
        return f"next try in {duration(max(1, round((next_ns - now_ns) / _NS)))}"
    return "tried again in the next run"


def left_words(failure: FailureRecord, now_ns: int) -> str:
    """Why a run leaves one file alone, and what makes it try."""
    verb = "ignore --undo" if failure.standing == "ignored" else "retry"
    when = next_words(failure.standing, failure.next_ns, now_ns)
    return f"{when}, or `knowledge {verb} {name(failure.key)}`"


def not_tried_lines(left: "Mapping[tuple[str, FailureStanding], NotTried]", now_ns: int) -> Iterator[str]:
    """What a run has met that failed before, and has not tried."""
    for (reason, standing), files in sorted(left.items()):
        first = name(files.first) if files.files == 1 else f"{files.files:,}, the first is {name(files.first)}"
        yield f"  failed before, {reason_words(reason)}: {first}; {next_words(standing, files.next_ns, now_ns)}"
    if left:
        yield f"    {RETRY_HINT}"


def not_tried_json(left: "Mapping[tuple[str, FailureStanding], NotTried]") -> list[Json]:
    return [
        {
            "reason": reason,
            "standing": standing,
            "count": files.files,
            "first": files.first,
            "next_at": utc(files.next_ns) if files.next_ns else None,
        }
        for (reason, standing), files in sorted(left.items())
    ]


def counts_line(counts: Sequence[FailureCount]) -> str:
    """`3 files failed: 1 to be tried again, 2 quarantined; 1 more ignored`."""
    by_standing: dict[str, int] = {}
    for one in counts:
        by_standing[one.standing] = by_standing.get(one.standing, 0) + one.files
    ignored = by_standing.pop("ignored", 0)
    words = {"open": "to be tried again", "quarantined": "quarantined"}
    parts = ", ".join(f"{by_standing[key]:,} {words[key]}" for key in words if by_standing.get(key))
    failed = f"{count(sum(by_standing.values()), 'file')} failed: {parts}" if parts else "no file failed"
    return f"{failed}; {ignored:,} more ignored" if ignored else failed


def failure_lines(rows: Iterable[FailureRecord], now_ns: int) -> Iterator[str]:
    for row in rows:
        detail = f" ({one_line(row.detail, 200)})" if row.detail else ""
        tries = f"{count(row.tries, 'try', 'tries')}, the first {ago(row.first_ns, now_ns)}"
        last = f", the last {ago(row.last_ns, now_ns)}" if row.tries > 1 else ""
        yield f"{name(row.key)}\n"
        yield f"  {reason_words(row.reason)}{detail}\n"
        yield f"  {tries}{last}; {next_words(row.standing, row.next_ns, now_ns)}\n"


def failure_json(row: FailureRecord) -> Json:
    return {
        "path": row.key,
        "reason": row.reason,
        "detail": row.detail,
        "standing": row.standing,
        "tries": row.tries,
        "first_at": utc(row.first_ns),
        "last_at": utc(row.last_ns),
        "next_at": utc(row.next_ns) if row.next_ns and row.standing == "open" else None,
    }


def failures_json(rows: Iterable[FailureRecord], counts: Sequence[FailureCount]) -> Json:
    by_standing = {"open": 0, "quarantined": 0, "ignored": 0}
    for one in counts:
        by_standing[one.standing] += one.files
    return {"status": "ok", "exit_status": 0, **by_standing, "failures": [failure_json(row) for row in rows]}


def retry_lines(asked: "ToRetry") -> Iterator[str]:
    """What is tried, and what is not; before the run's own words."""
    if asked.files:
        yield f"trying again: {_files(asked.files)}\n"
    if asked.gone:
        yield f"not there any more, and forgotten: {_files(asked.gone)}\n"
    if asked.left:
        yield f"not tried, their root is no longer in the configuration: {_files(asked.left)}\n"
    if not (asked.files or asked.gone or asked.left):
        yield "nothing to try again\n"


def retry_json(asked: "ToRetry", run: Json | None) -> Json:
    """`run`: of a run here, or of a service; they say in different fields how they have ended."""
    ended = "nothing_to_do" if run is None else run.get("status") or run["state"]
    return {
        "status": ended,
        "exit_status": run["exit_status"] if run is not None else 0,
        "files": len(asked.files),
        "gone": [row.key for row in asked.gone],
        "not_tried": [row.key for row in asked.left],
        "run": run,
    }


def ignore_text(changed: Sequence[FailureRecord], asked: Sequence[FailureRecord], *, undo: bool) -> str:
    if not changed:
        return f"{'not ignored before' if undo else 'ignored already'}: {_files(asked)}\n"
    if undo:
        return f"no longer ignored, tried again in the next run: {_files(changed)}\n"
    return f"ignored from now on: {_files(changed)}; a document that was indexed before stays as it is\n"


def ignore_json(changed: Sequence[FailureRecord], *, undo: bool) -> Json:
    return {"status": "done", "exit_status": 0, "ignored": not undo, "changed": [row.key for row in changed]}


def _files(rows: Sequence[FailureRecord]) -> str:
    first = name(rows[0].key)
    return first if len(rows) == 1 else f"{len(rows):,} files, the first is {first}"
