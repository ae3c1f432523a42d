"""What a command line may do while a service has the base, and what it may not."""

from domain.errors import LockedError, RefusedError
from domain.layout import BaseLayout
from store.files import refuse_unsafe
from store.lock import holder_of, is_held

WRITER_PURPOSE = "knowledge writer"  # as the holder of the base's lock says it
_START_ONE = "start one with `knowledge scheduler`, or all of the service with `knowledge up`"


def is_service_up(layout: BaseLayout) -> bool:
    """Whether a scheduler has this base: then it carries out whatever is asked for."""
    return is_held(layout.scheduler_lock)


def has_serving_writer(layout: BaseLayout) -> bool:
    """Whether the base's lock is held by a service's writer, which answers calls with or without a scheduler."""
    return is_held(layout.lock) and WRITER_PURPOSE in holder_of(layout.lock)


def refuse_beside_service(layout: BaseLayout) -> None:
    """Raises LockedError where a service has the base: what follows exchanges files that it has open; UnsafePlaceError
    where a lock is a link."""
    for lock in (layout.lock, layout.scheduler_lock):
        refuse_unsafe(lock)
    is_led = is_service_up(layout)
    if is_led or has_serving_writer(layout):
        holder = holder_of(layout.scheduler_lock if is_led else layout.lock)
        raise LockedError(
            f"the service of this index is up ({holder or 'its scheduler'})",
            hint="stop it first: this command exchanges files that the service has open",
        )


def require_scheduler(layout: BaseLayout) -> None:
    """Raises RefusedError where nobody would begin a run that is handed over."""
    if not is_service_up(layout):
        raise RefusedError("no scheduler is there to hand a run to", hint=_START_ONE)


def no_scheduler(layout: BaseLayout) -> LockedError:
    """The base's lock is held by a writer that nobody gives any work."""
    return LockedError(
        f"the index is being written by {holder_of(layout.lock) or 'the writer of a service'},"
        " and no scheduler is there to hand a run to",
        hint=_START_ONE,
    )
