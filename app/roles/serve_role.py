"""The role that others ask: the HTTP service, health and numbers of the whole; it only reads.

It answers as soon as it listens (server.role_process), with or without an index, with or without a queue.
"""

from contextlib import suppress

from app.present import NO_INDEX
from app.roles.queue_place import queue_place
from app.roles.runtime import TRY_AGAIN_S, Runtime, beside
from app.roles.service_numbers import ServiceNumbers
from app.roles.standby import known_base_id
from domain.errors import ConfigurationError, KnowledgeError
from scheduler.queue.address import QueueAddress
from scheduler.queue.client import lazy_pool
from scheduler.queue.leases import Lease
from scheduler.queue.names import QueueNames


async def serve_role(runtime: Runtime) -> None:
    """Until the runtime is told to end."""
    address = _queue_there_is(runtime)
    runtime.status.is_active = True
    runtime.goes_on()
    base_id = await _base(runtime)
    if not base_id:
        return
    names = QueueNames(base_id)
    if address is None:
        await beside(runtime.stopping.wait, {"numbers": ServiceNumbers(runtime, None, names).run})
        return
    async with lazy_pool(address) as pool:
        lease = Lease(pool, names, runtime.lease_note)
        numbers = ServiceNumbers(runtime, pool, names)
        try:
            await beside(runtime.stopping.wait, {"lease": lease.run, "numbers": numbers.run})
        finally:
            await lease.end()


def _queue_there_is(runtime: Runtime) -> QueueAddress | None:
    """None: an index of one person, whose runs bring their own queue. Raises ConfigurationError where one is configured
    and cannot be asked."""
    try:
        return queue_place(runtime.settings, runtime.layout)
    except ConfigurationError:
        if runtime.settings.queue.url:
            raise
        return None


async def _base(runtime: Runtime) -> str:
    """Its id; questions are answered with index_not_built meanwhile. "" where the role is told to end before."""
    while not runtime.stopping.is_set():
        with suppress(KnowledgeError):  # it is being made; or it is of a kind that every question is told of
            if base_id := known_base_id(runtime):
                runtime.status.doing = ""
                return base_id
        runtime.status.doing = NO_INDEX
        await runtime.pause(TRY_AGAIN_S)
    return ""
