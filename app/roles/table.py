"""The roles by name."""

from collections.abc import Awaitable, Callable

from app.roles.runtime import Runtime
from app.roles.scheduler_role import scheduler_role
from app.roles.serve_role import serve_role
from app.roles.worker_role import worker_role
from app.roles.writer_role import writer_role

ROLES: dict[str, Callable[[Runtime], Awaitable[None]]] = {
    "scheduler": scheduler_role,
    "worker": worker_role,
    "writer": writer_role,
    "serve": serve_role,
}
