"""Why a run of a service does not get on, as seen from outside: who is dead, who does not answer, who is only slow.

Dead and silent are told apart by two things that cannot lie: a lock is given back by the kernel when its process ends,
a lease runs out when its process does nothing. Whoever has the lock and no lease was stopped, or gets no processor.
"""

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from domain.errors import ConfigurationError, QueueError
from domain.layout import BaseLayout
from domain.settings import Settings
from store.lock import holder_of, is_held
from store.run_port import RunRecord

if TYPE_CHECKING:
    from scheduler.queue.roll_call import RollCall

LOOKED_AT_AFTER_S = 5  # without a counter that has moved: a lease has run out by then
_MOVING = ("index", "reindex")  # verify and compact are in one call of the writer: they count nothing
_STILL_ON_PURPOSE = ("queued", "paused", "interrupted")
_NS = 1_000_000_000

Who = Literal["queue", "scheduler", "worker", "writer"]
How = Literal["dead", "silent", "slow"]


class Standstill(Struct, frozen=True):
    """Who keeps a run from getting on. `dead`: no such process; `silent`: there is one, and it does nothing; `slow`: it
    answers, and has work in hand."""

    who: Who
    how: How
    holder: str = ""  # whose lock it is, in words; "" = not known
    pages: int = 0  # of the run that wait for it, or that it has in hand


def still_s(run: RunRecord, now_ns: int) -> int:
    """Seconds without a counter that has moved; 0 for a run that is not expected to move."""
    if run.ended_ns is not None or run.state in _STILL_ON_PURPOSE or run.kind not in _MOVING:
        return 0
    return max(0, now_ns - max(run.progressed_ns, run.started_ns)) // _NS


def standstill_of(
    settings: Settings, layout: BaseLayout, base_id: str, run: RunRecord, now_ns: int
) -> Standstill | None:
    """Who a run of a service waits for; None where it gets on, or where there is nobody to ask."""
    is_counted = run.kind in _MOVING
    stood_s = still_s(run, now_ns) if is_counted else (now_ns - run.started_ns) // _NS
    if stood_s < LOOKED_AT_AFTER_S or run.state in _STILL_ON_PURPOSE:
        return None
    from app.roles.queue_place import queue_place
    from scheduler.queue.names import QueueNames
    from scheduler.queue.roll_call import roll_call

    try:
        called = roll_call(queue_place(settings, layout), QueueNames(base_id))
    except QueueError:
        return Standstill("queue", "silent")
    except ConfigurationError:  # the queue of the service is not known here
        return None
    found = judged(layout, called)
    return found if is_counted or found is None or found.how != "slow" else None


def judged(layout: BaseLayout, called: "RollCall") -> Standstill | None:
    """From the way that a page takes: the first that is missing on it. None where nobody has anything in hand."""
    for who, lock in (("scheduler", layout.scheduler_lock), ("writer", layout.lock)):
        role: Who = "scheduler" if who == "scheduler" else "writer"
        if not is_held(lock):
            return Standstill(role, "dead")
        if not called.active(role):
            return Standstill(role, "silent", holder_of(lock), called.writes if role == "writer" else 0)
    if called.checks and not called.active("worker"):
        return Standstill("worker", "dead", pages=called.checks)
    if called.writes:
        return Standstill("writer", "slow", holder_of(layout.lock), called.writes)
    return Standstill("worker", "slow", pages=called.checks) if called.checks else None
