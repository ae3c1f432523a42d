"""A look at a queue for `knowledge doctor`: whether it answers, and whether it is fit to hold work."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from domain.errors import QueueError
from scheduler.queue.address import QueueAddress
from scheduler.queue.client import unreachable

if TYPE_CHECKING:
    from redis import Redis

TIMEOUT_S = 2.0
SAFE_POLICY = "noeviction"  # any other one drops waiting work without an error when memory is short


class QueueFacts(Struct, frozen=True):
    server: str  # "valkey 9.0.1", "redis 7.2.4"
    memory_policy: str  # "" where the server does not say
    has_append_only_file: bool
    clock_ahead_s: float  # of the server against this machine; negative: it is behind


def probe(address: QueueAddress, clock: Callable[[], float] = time.time) -> QueueFacts:
    """Ask the server at an address. Raises QueueError where nobody answers, or not to us."""
    from redis.exceptions import RedisError

    client: Any = short_client(address)
    try:
        facts: dict[str, Any] = {}
        for section in ("server", "memory", "persistence"):
            facts.update(client.info(section))
        before_s = clock()
        seconds, microseconds = client.time()
        now_s = (before_s + clock()) / 2
    except (RedisError, OSError, ValueError) as error:
        raise refusal(address, error) from error
    finally:
        client.close()
    return QueueFacts(
        server=_server(facts),
        memory_policy=str(facts.get("maxmemory_policy", "")),
        has_append_only_file=str(facts.get("aof_enabled", "0")) == "1",
        clock_ahead_s=seconds + microseconds / 1e6 - now_s,
    )


def short_client(address: QueueAddress) -> "Redis":
    """For a look at a server, outside of any event loop; one that does not answer soon is away."""
    from redis import Redis

    return Redis(
        host=address.host or "localhost",
        port=address.port,
        db=address.database,
        unix_socket_path=address.socket or None,
        username=address.username,
        password=address.password,
        ssl=address.tls,
        socket_timeout=TIMEOUT_S,
        socket_connect_timeout=TIMEOUT_S,
    )


def refusal(address: QueueAddress, error: Exception) -> QueueError:
    """What to say of a server that did not answer, or not to us."""
    from redis.exceptions import AuthenticationError, AuthorizationError, NoPermissionError

    if isinstance(error, AuthenticationError | AuthorizationError | NoPermissionError):
        return QueueError(
            f"the queue at {address} refuses this user or password", hint="check user and password in queue.url"
        )
    return unreachable(address)


def _server(facts: dict[str, Any]) -> str:
    if "valkey_version" in facts:
        return f"valkey {facts['valkey_version']}"
    return f"redis {facts.get('redis_version', '?')}"
