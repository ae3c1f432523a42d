"""When a file that failed is tried again by itself: one table, and pure functions of reason, tries and clock (C-06)."""

import hashlib
from collections.abc import Mapping
from typing import Literal

from domain.files import Reason

FailureStanding = Literal["open", "quarantined", "ignored"]
"""`open`: tried again when its time has come; `quarantined`: when the file changes or somebody asks; `ignored`: when
somebody asks."""

FIRST_DELAY_S = 60
LONGEST_DELAY_S = 24 * 3600
JITTER = 0.25  # of a delay, taken off: a thousand files that failed together do not come back together
_SECOND_NS = 1_000_000_000

# why a file fails, and after how many tries it is quarantined; None: what kept it from being read may pass
TRIES_BEFORE_QUARANTINE: Mapping[str, int | None] = {
    Reason.UNREADABLE: None,
    Reason.VANISHED: None,
    Reason.UNEXPECTED: None,
    Reason.STORE_REFUSED: None,
    Reason.EMBEDDING_REFUSED: None,
    Reason.TOO_SLOW: 3,  # the machine may have been busy, hardly three times
    Reason.OVER_LIMIT: 1,
    Reason.WORKER_DIED: 1,
}

# whoever tries such a file again does so in a process that may end with it
SUSPECT_REASONS = frozenset({Reason.WORKER_DIED.value, Reason.OVER_LIMIT.value})


def standing_after(reason: str, tries: int) -> FailureStanding:
    """Where a failure stands once a file has failed so often; a reason of a later version is one that may pass."""
    most = TRIES_BEFORE_QUARANTINE.get(reason)
    return "open" if most is None or tries < most else "quarantined"


def next_try_ns(reason: str, tries: int, key: str, now_ns: int) -> int:
    """When a file that fails for the `tries`-th time now is tried again, in nanoseconds since the epoch; 0 = not by
    itself. The delay doubles from a minute to a day; the jitter is the same for the same key and number of tries."""
    if standing_after(reason, tries) == "quarantined":
        return 0
    doublings = min(max(tries, 1) - 1, LONGEST_DELAY_S.bit_length())
    delay_s = min(LONGEST_DELAY_S, FIRST_DELAY_S * 2**doublings)
    digest = hashlib.blake2b(f"{tries}\0{key}".encode(errors="surrogatepass"), digest_size=4).digest()
    taken_off = JITTER * int.from_bytes(digest, "big") / 2**32
    return now_ns + int(delay_s * (1 - taken_off) * _SECOND_NS)


def is_waiting(next_ns: int, now_ns: int) -> bool:
    """Whether a next try is still to come. One further off than any delay was set by a clock that went wrong."""
    return now_ns < next_ns <= now_ns + LONGEST_DELAY_S * _SECOND_NS
