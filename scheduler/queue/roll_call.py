"""Who of a base's service answers now, and how much waits: one look from outside, for a command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from scheduler.queue.address import QueueAddress
from scheduler.queue.leases import LeaseNote
from scheduler.queue.names import QueueNames
from scheduler.queue.probe import refusal, short_client

_notes = msgspec.json.Decoder(LeaseNote)


@dataclass(frozen=True, slots=True)
class RollCall:
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
    return RollCall([note for value in said if (note := _note(value)) is not None], checks, writes)


def _note(value: bytes | None) -> LeaseNote | None:
    """None for what is no lease of ours, or has just run out."""
    if value is None:
        return None
    try:
        return _notes.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
