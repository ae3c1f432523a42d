"""What many ask for again and again, looked at once for all of them."""

import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar, cast

from anyio import Lock
from msgspec import Struct, field

MOST_KEPT = 64
Seen = TypeVar("Seen")


class _Entry(Struct):
    lock: Lock = field(default_factory=Lock)  # one looks, the others wait for what it sees
    value: Any = None
    at_s: float = float("-inf")


class SharedLooks:
    """Remembers what was seen under a key for a moment. Used from one event loop."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._entries: dict[Hashable, _Entry] = {}

    async def at(self, key: Hashable, look: Callable[[], Awaitable[Seen]], *, at_most_old_s: float) -> Seen:
        """What `look` gives, or gave somebody else so short a time ago. What it raises reaches its caller alone."""
        entry = self._entries.get(key)
        if entry is None:
            self._forget()
            entry = self._entries[key] = _Entry()
        async with entry.lock:
            if self._clock_s() - entry.at_s >= at_most_old_s:
                entry.value = await look()
                entry.at_s = self._clock_s()
            return cast("Seen", entry.value)

    def _forget(self) -> None:
        """Make room: the oldest go that nobody is looking at."""
        idle = [key for key, entry in self._entries.items() if not entry.lock.locked()]
        idle.sort(key=lambda key: self._entries[key].at_s)
        for key in idle[: max(0, len(self._entries) + 1 - MOST_KEPT)]:
            del self._entries[key]
