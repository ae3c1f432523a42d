"""Who of a base's service answers now, and how much waits: one look from outside, for a command line."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from scheduler.queue.address import QueueAddress
from scheduler.queue.leases import LeaseNote, read_notes
from scheduler.queue.names import QueueNames
from scheduler.queue.probe import refusal, short_client


class RollCall(Struct, frozen=True):
    """The leases that have not run out, by role and holder; jobs that wait or are in hand."""

    notes: Sequence[LeaseNote]
    checks: int  # pages on their way through workers
    writes: int  # pages on their way to the writer

    def active(self, role: str) -> Sequence[LeaseNote]:
        return [note for note in self.notes if note.role == role and note.is_active]


def roll_call(address: QueueAddress, names: QueueNames) -> RollCall:
    """Raises QueueError where nobody answers in a short time, or not to us."""
    from redis.exceptions import RedisError

    client: Any = short_client(address)
    try:
        keys = sorted(client.scan_iter(match=f"{names.leases}*", count=1000))
        said = client.mget(keys) if keys else []
        checks, writes = int(client.zcard(names.checks)), int(client.zcard(names.writes))
    except (RedisError, OSError, ValueError) as error:
        raise refusal(address, error) from error
    finally:
        client.close()
    return RollCall(read_notes(said), checks, writes)
