"""A watch in words: one line a pass, and what is told beside them; as JSON, one object a line."""

import json
from typing import TYPE_CHECKING, assert_never

from app.present import Json, count, duration, utc
from app.present_reasons import OUTCOME_ORDER, counts_words, held_words
from app.present_safe import name, one_line
from scheduler.watch import WatchPass

if TYPE_CHECKING:
    from app.outcomes import IndexReport
    from app.watching import WatchNotice
    from store.run_port import RunRecord

_SETTINGS = {"max_user_watches": "fs.inotify.max_user_watches", "max_user_instances": "fs.inotify.max_user_instances"}
_MAX_NAMED = 5


def notice_line(notice: "WatchNotice", *, debounce_s: float) -> str:
    """One line, without its end."""
    match notice.kind:
        case "watching":
            folders = f" ({count(notice.folders, 'folder')})" if notice.folders else ""
            return (
                f"watching: {_names(notice.paths)}{folders}; a pass comes {duration(debounce_s)} after the last change"
            )
        case "root_missing":
            return f"warning: not there, and not watched: {_names(notice.paths)}; what was indexed of it stays"
        case "root_back":
            return f"watching again: {_names(notice.paths)}"
        case "limited":
            return f"warning: {limit_words(notice)}"
        case "retrying":
            message = one_line(notice.error.message, 300) if notice.error is not None else ""
            return f"warning: {message}; tried again, first in {duration(notice.retry_s)}"
    assert_never(notice.kind)


def limit_words(notice: "WatchNotice") -> str:
    """Which setting of the kernel is in the way, and what happens instead."""
    instead = "what cannot be watched is looked at every minute or less often"
    setting = _SETTINGS.get(notice.limit, "")
    if setting:
        return (
            f"the kernel watches no more folders for this user ({setting}); {instead};"
            f" to raise it: sysctl {setting}=NUMBER; the watch finds out by itself"
        )
    return f"not every folder can be watched ({one_line(notice.detail, 200)}); {instead}"


def pass_line(pass_: WatchPass, report: "IndexReport") -> str:
    """`pass: 2 paths changed; 1 added, 1 updated (run 12, 0.4 s)`."""
    troubles = [f"{count(failure.count, 'file')} failed" for failure in report.failures]
    troubles += [f"{count(len(report.problems), 'folder')} not read"] if report.problems else []
    troubles += [
        f"{count(held.count, 'removal')} held below {name(held.root)} ({held_words(held.cause)})"
        for held in report.removals.held
    ]
    trouble = f"; {', '.join(troubles)}: `knowledge status` says more" if troubles else ""
    took = f"run {report.run.id}, {duration(report.elapsed_s)}"
    return f"{cause_words(pass_)}: {counts_words(report.counts)}{trouble} ({took})"


def service_pass_line(pass_: WatchPass, run: "RunRecord") -> str:
    """The same of a pass that a service has carried out."""
    trouble = "" if run.state == "done" else f"; {run.state}: `knowledge runs show {run.id}` says more"
    took = f"run {run.id} of the service, {duration(_took_s(run))}"
    return f"{cause_words(pass_)}: {counts_words(run.counts)}{trouble} ({took})"


def service_pass_json(pass_: WatchPass, run: "RunRecord", now_ns: int) -> str:
    """As `pass_json`; null is what the record of a run does not tell."""
    return _line(
        {
            "event": "pass",
            "at": utc(now_ns),
            "cause": pass_.cause,
            "paths": len(pass_.paths),
            "run": run.id,
            "status": run.state,
            "counts": {outcome: run.counts.get(outcome, 0) for outcome in OUTCOME_ORDER},
            "failed": run.counts.get("failed", 0),
            "unread_folders": None,
            "removals_held": None,
            "elapsed_s": round(_took_s(run), 3),
        }
    )


def _took_s(run: "RunRecord") -> float:
    return ((run.ended_ns or run.started_ns) - run.started_ns) / 1e9


def is_worth_a_line(pass_: WatchPass, report: "IndexReport") -> bool:
    """Not where everything was looked at without being asked, and nothing was found."""
    changed = any(count for outcome, count in report.counts.items() if outcome not in ("unchanged", "skipped"))
    return pass_.cause != "rescan" or changed or bool(report.exit_status)


def cause_words(pass_: WatchPass) -> str:
    match pass_.cause:
        case "initial":
            return "first pass"
        case "changes":
            return f"{count(len(pass_.paths), 'path')} changed"
        case "rescan":
            return "look at everything"
    assert_never(pass_.cause)


def notice_json(notice: "WatchNotice", now_ns: int) -> str:
    value: Json = {"event": notice.kind, "at": utc(now_ns)}
    if notice.paths:
        value["paths"] = list(notice.paths)
    if notice.kind == "watching":
        value["folders"] = notice.folders or None
    if notice.kind == "limited":
        value |= {"setting": _SETTINGS.get(notice.limit), "message": limit_words(notice)}
    if notice.error is not None:
        value |= {"code": notice.error.code, "message": notice.error.message, "retry_s": notice.retry_s}
    return _line(value)


def pass_json(pass_: WatchPass, report: "IndexReport", now_ns: int) -> str:
    return _line(
        {
            "event": "pass",
            "at": utc(now_ns),
            "cause": pass_.cause,
            "paths": len(pass_.paths),
            "run": report.run.id,
            "status": report.state,
            "counts": {outcome: report.counts.get(outcome, 0) for outcome in OUTCOME_ORDER},
            "failed": sum(failure.count for failure in report.failures),
            "unread_folders": len(report.problems),
            "removals_held": sum(held.count for held in report.removals.held),
            "elapsed_s": round(report.elapsed_s, 3),
        }
    )


def _line(value: Json) -> str:
    """In ASCII: a line stays one line, whatever a file is called."""
    return json.dumps(value)


def _names(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(name(path) for path in paths[:_MAX_NAMED]) + more
