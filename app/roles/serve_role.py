"""The role that others ask: health and metrics of the whole service; it only reads."""

from app.roles.queue_place import queue_place
from app.roles.runtime import Runtime, beside
from app.roles.service_numbers import ServiceNumbers
from app.roles.worker_role import known_base
from scheduler.queue.client import lazy_pool
from scheduler.queue.leases import Lease
from scheduler.queue.names import QueueNames


async def serve_role(runtime: Runtime) -> None:
    """Until the runtime is told to end."""
    address = queue_place(runtime.settings, runtime.layout)  # refused at once where there can be none
    base_id = await known_base(runtime)
    if not base_id:
        return
    async with lazy_pool(address) as pool:
        names = QueueNames(base_id)
        lease = Lease(pool, names, runtime.lease_note)
        numbers = ServiceNumbers(runtime, pool, names)
        runtime.status.is_active = True
        runtime.goes_on()
        try:
            await beside(runtime.stopping.wait, {"lease": lease.run, "numbers": numbers.run})
        finally:
            await lease.end()
