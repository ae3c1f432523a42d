"""Idempotency-Key: a request that is sent again, as its answer was lost, begins nothing a second time."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from domain.errors import RefusedError

MOST_KEPT = 1000


class _Asked(NamedTuple):
    what: str
    run_id: int


class AskedBefore:
    """Remembers the runs of the newest keys, for as long as the process lives. May be used from several threads."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._asked: OrderedDict[str, _Asked] = OrderedDict()

    def once(self, key: str, what: str, begin: Callable[[], int]) -> int:
        """The run that `begin` gives, or that it gave when this key came first; "" is no key. What `begin` raises
        is not remembered. Raises RefusedError where the key came with another request."""
        if not key:
            return begin()
        with self._lock:  # also while it begins: a second request waits for the first one's run
            known = self._asked.get(key)
            if known is None:
                known = self._asked[key] = _Asked(what, begin())
                if len(self._asked) > self._most:
                    self._asked.popitem(last=False)
            if known.what != what:
                raise RefusedError(
                    "this Idempotency-Key has come with another request", hint="make a new key for each request"
                )
            return known.run_id
