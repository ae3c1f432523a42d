"""Notices in words: the message that is sent, and what a test of it says. No document text, no names of files."""

from typing import TYPE_CHECKING, assert_never

from app.present import Json, count, utc
from app.present_reasons import counts_words
from app.present_safe import one_line
from domain.settings import Settings

if TYPE_CHECKING:
    from app.notice_delivery import Delivery
    from app.notifying import Notice

_MAX_ROOTS = 5


def message_of(notice: "Notice", settings: Settings, now_ns: int) -> Json:
    """`text` is for people, and what Slack, Mattermost and bridges to Matrix show; the rest is for programs."""
    run = notice.run
    return {
        "text": f"knowledge {one_line(settings.identity)}: {notice_words(notice)}",
        "event": notice.event,
        "base": settings.identity,
        "at": utc(now_ns),
        "roots": list(notice.roots),
        "schedule": notice.schedule or (run.schedule if run is not None else "") or None,
        "since": utc(notice.since_ns) if notice.since_ns else None,
        "files": notice.files or None,
        "run": None
        if run is None
        else {
            "id": run.id,
            "kind": run.kind,
            "trigger": run.trigger,
            "state": run.state,
            "cause": run.cause,
            "started_at": utc(run.started_ns),
            "ended_at": utc(run.ended_ns),
            "counts": dict(run.counts),
        },
    }


def trial_message(settings: Settings, now_ns: int) -> Json:
    return {
        "text": f"knowledge {one_line(settings.identity)}: this is a test; nothing has happened",
        "event": "test",
        "base": settings.identity,
        "at": utc(now_ns),
    }


def notice_words(notice: "Notice") -> str:
    run = _run_words(notice)
    match notice.event:
        case "failed":
            return f"{run} failed{_cause(notice)}"
        case "partial":
            return f"{run} ended with something left out{_cause(notice)}; `knowledge status` says more"
        case "removals_held":
            number = notice.run.id if notice.run is not None else 0
            return f"{run} holds removals back; look at them: `knowledge runs show {number}`"
        case "quarantined":
            return f"{count(notice.files, 'file')} in quarantine: `knowledge failures` says which"
        case "overdue":
            return f"schedule {one_line(notice.schedule)}: no run has ended well since {utc(notice.since_ns)}"
        case "recovered":
            return _recovered_words(notice, run)
    assert_never(notice.event)


def _recovered_words(notice: "Notice", run: str) -> str:
    if notice.run is not None:
        return f"{run} ended well again: {counts_words(notice.run.counts)}"
    if notice.schedule:
        return f"schedule {one_line(notice.schedule)}: a run has ended well again"
    return "no file is in quarantine any more"


def _run_words(notice: "Notice") -> str:
    run = notice.run
    if run is None:
        return ""
    more = f" and {len(notice.roots) - _MAX_ROOTS} more" if len(notice.roots) > _MAX_ROOTS else ""
    named = [one_line(root) for root in notice.roots[:_MAX_ROOTS] if root != "*"]
    roots = f" of {', '.join(named)}{more}" if named else ""
    return f"run {run.id} ({run.kind}{roots})"


def _cause(notice: "Notice") -> str:
    cause = one_line(notice.run.cause, limit=200) if notice.run is not None else ""
    return f" ({cause})" if cause else ""


def delivery_line(delivery: "Delivery") -> str:
    """`delivered to hooks.example.org: answered 200`."""
    tries = f" (after {count(delivery.tries, 'try', 'tries')})" if delivery.tries > 1 else ""
    if delivery.is_delivered:
        return f"delivered to {one_line(delivery.to)}: {one_line(delivery.detail, limit=300)}{tries}"
    return f"not delivered to {one_line(delivery.to)}: {one_line(delivery.detail, limit=300)}{tries}"


def delivery_json(delivery: "Delivery") -> Json:
    return {
        "status": "delivered" if delivery.is_delivered else "not_delivered",
        "delivered": delivery.is_delivered,
        "to": delivery.to,
        "detail": delivery.detail,
        "tries": delivery.tries,
    }
