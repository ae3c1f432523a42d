"""What somebody is to be told: each change of a state once, and never again (store.notice_port).

Deciding is pure; what was told is remembered only once it has arrived, so what could not be delivered is told later.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from app.notice_delivery import Delivery, deliver
from app.overdue import overdue_since_ns
from app.present_notify import message_of
from domain.settings import NotifyEvent, NotifySettings, Settings
from store.notice_port import ToldState
from store.run_port import RunRecord
from store.state import SqliteStateStore

LOOKED_AT_RUNS = 500  # as many as are kept
TRIED_AGAIN_AFTER_S = 5 * 60.0  # what could not be delivered
QUARANTINED = "quarantined"
_FINE = ("", "done", "0")
_SEVERITY = ("done", "partial", "removals_held", "failed")
RunStanding = Literal["done", "partial", "removals_held", "failed"]


class Situation(Struct, frozen=True):
    """The states that are told of, now."""

    runs: Mapping[str, tuple[RunStanding, RunRecord]] = field(default_factory=dict)  # by `run:<kind>:<root>`
    quarantined: int = 0
    overdue: Mapping[str, int | None] = field(default_factory=dict)  # by schedule: without success since; None = not so


class Notice(Struct, frozen=True):
    """One message: an event, and the subjects whose state it changes."""

    event: NotifyEvent
    states: Mapping[str, str]  # what is remembered once it is told
    run: RunRecord | None = None
    roots: tuple[str, ...] = ()
    schedule: str = ""
    since_ns: int = 0
    files: int = 0


class Decision(Struct, frozen=True):
    """What is to be told, and what has changed without being worth a message."""

    notices: tuple[Notice, ...]
    unspoken: Mapping[str, str]


def notices_of(previous: Mapping[str, ToldState], now: Situation, on: Sequence[NotifyEvent]) -> Decision:
    """Compare what was told with what is. Events that are not asked for change what is remembered without a word;
    a recovery is told only of what was told to be wrong."""
    found = [*_run_notices(previous, now), *_file_notices(previous, now), *_schedule_notices(previous, now)]
    told: list[Notice] = []
    unspoken: dict[str, str] = {}
    for notice in found:
        if notice.event in on and (notice.event != "recovered" or _was_told(notice, previous, on)):
            told.append(notice)
        else:
            unspoken |= notice.states
    known = {subject for notice in found for subject in notice.states}
    quiet = {subject: state for subject, state in _states(now).items() if subject not in known}
    return Decision(
        tuple(told), {**{s: state for s, state in quiet.items() if _last(previous, s) != state}, **unspoken}
    )


def _states(now: Situation) -> dict[str, str]:
    return {
        **{subject: standing for subject, (standing, _) in now.runs.items()},
        QUARANTINED: str(now.quarantined),
        **{f"schedule:{name}": "" if since is None else "overdue" for name, since in now.overdue.items()},
        **{f"seen:{name}": "seen" for name in now.overdue},  # when there was first somebody to look
    }


def _last(previous: Mapping[str, ToldState], subject: str) -> str | None:
    return previous[subject].state if subject in previous else None


def _was_told(notice: Notice, previous: Mapping[str, ToldState], on: Sequence[NotifyEvent]) -> bool:
    before = {_last(previous, subject) or "" for subject in notice.states}
    return any(state in on or (state.isdigit() and QUARANTINED in on) for state in before - set(_FINE))


def _run_notices(previous: Mapping[str, ToldState], now: Situation) -> list[Notice]:
    """One for each run that has changed something, whatever the number of its roots."""
    changed: dict[tuple[NotifyEvent, int], tuple[RunRecord, dict[str, str]]] = {}
    for subject, (standing, run) in now.runs.items():
        before = _last(previous, subject)
        if before == standing or (standing == "done" and before in (None, *_FINE)):
            continue
        event: NotifyEvent = "recovered" if standing == "done" else standing
        changed.setdefault((event, run.id), (run, {}))[1][subject] = standing
    return [
        Notice(event, states, run, tuple(sorted(subject.split(":", 2)[2] for subject in states)))
        for (event, _), (run, states) in changed.items()
    ]


def _file_notices(previous: Mapping[str, ToldState], now: Situation) -> list[Notice]:
    before = int(_last(previous, QUARANTINED) or 0)
    states = {QUARANTINED: str(now.quarantined)}
    if now.quarantined > before:
        return [Notice("quarantined", states, files=now.quarantined)]
    return [Notice("recovered", states)] if before and not now.quarantined else []


def _schedule_notices(previous: Mapping[str, ToldState], now: Situation) -> list[Notice]:
    notices = []
    for name, since_ns in now.overdue.items():
        subject = f"schedule:{name}"
        was_overdue = _last(previous, subject) == "overdue"
        if since_ns is not None and not was_overdue:
            notices.append(Notice("overdue", {subject: "overdue"}, schedule=name, since_ns=since_ns))
        elif since_ns is None and was_overdue:
            notices.append(Notice("recovered", {subject: ""}, schedule=name))
    return notices


def run_standings(runs: Sequence[RunRecord]) -> dict[str, tuple[RunStanding, RunRecord]]:
    """What the ended runs say of each root, by kind of work. `runs`: the newest first.

    A run over a part of a root does not make up for a full one that ended badly; and it counts where it is worse.
    """
    newest: dict[str, RunRecord] = {}
    newest_full: dict[str, RunRecord] = {}
    ended = [run for run in runs if run.ended_ns is not None and _standing(run) is not None]
    for run in sorted(ended, key=lambda run: run.ended_ns or 0, reverse=True):
        kind = "index" if run.kind == "reindex" else run.kind
        for root in run.roots or ("*",):
            subject = f"run:{kind}:{root}"
            newest.setdefault(subject, run)
            if run.full:
                newest_full.setdefault(subject, run)
    standings: dict[str, tuple[RunStanding, RunRecord]] = {}
    for subject, run in newest.items():
        candidates = [(_standing(run) or "done", run)]
        if subject in newest_full:
            candidates.append((_standing(newest_full[subject]) or "done", newest_full[subject]))
        standings[subject] = max(candidates, key=lambda pair: _SEVERITY.index(pair[0]))
    return standings


def _standing(run: RunRecord) -> RunStanding | None:
    """None for an ending that says nothing: cancelled, interrupted."""
    match run.state:
        case "done":
            return "done"
        case "failed":
            return "failed"
        case "partial" | "needs_approval":
            return "removals_held" if run.cause == "removals_held" else "partial"
    return None


def situation(settings: Settings, state: SqliteStateStore, told: Mapping[str, ToldState], now_ns: int) -> Situation:
    """What is, read from state.db."""
    names = [schedule.name for schedule in settings.schedules]
    first_seen = {name: told[f"seen:{name}"].told_ns for name in names if f"seen:{name}" in told}
    return Situation(
        run_standings(state.runs(LOOKED_AT_RUNS)),
        sum(count.files for count in state.failure_counts() if count.standing == "quarantined"),
        overdue_since_ns(settings, state.schedules(), first_seen, now_ns),
    )


class Notifier:
    """Tells what has changed; keeps nothing but when to try again. For one process of a base at a time."""

    def __init__(
        self,
        settings: Settings,
        send: Callable[[NotifySettings, Mapping[str, object]], Delivery] = deliver,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._send = send
        self._clock_s = clock_s
        self._not_before_s = clock_s()

    def tell(self, state: SqliteStateStore, now_ns: int) -> list[Delivery]:
        """Deliver what is to be told; how each delivery went, for the log. Never raises for a delivery that failed.

        Blocks for as long as a delivery takes, in no transaction; to be called in a thread.
        """
        notify = self._settings.notify
        if notify is None or self._clock_s() < self._not_before_s:
            return []
        told = state.told_states()
        decision = notices_of(told, situation(self._settings, state, told, now_ns), notify.on)
        if decision.unspoken:
            state.remember_told(decision.unspoken, now_ns)
        if gone := _of_no_schedule(told, self._settings):
            state.forget_told(gone)
        deliveries = []
        for notice in decision.notices:
            delivery = self._send(notify, message_of(notice, self._settings, now_ns))
            deliveries.append(delivery)
            if not delivery.is_delivered:
                self._not_before_s = self._clock_s() + TRIED_AGAIN_AFTER_S
                break
            state.remember_told(notice.states, now_ns)
        return deliveries


def _of_no_schedule(told: Mapping[str, ToldState], settings: Settings) -> list[str]:
    names = {schedule.name for schedule in settings.schedules}
    return [
        subject
        for subject in told
        if subject.startswith(("schedule:", "seen:")) and subject.split(":", 1)[1] not in names
    ]
