"""One gate for all requests of a process while its server is away (R18).

The first request that finds it unreachable closes the gate. From then on one request at a time goes out as a scout,
at most one a second of all processes together; the others wait. Its answer, be it a refusal, opens the gate for all.
What was in flight before is no witness: its answer says how the server was, and Retry-After is to be obeyed.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from domain.errors import EmbeddingsUnavailableError
from embedding.failures import Unreachable, UnreachableKind
from embedding.port import Waiting

_AGAIN = "then run the command again: what is indexed already is kept"
_HINTS: dict[UnreachableKind, str] = {
    "connection": f"start it or correct embeddings.base_url, {_AGAIN}",
    "timeout": f"raise embeddings.timeout or lower embeddings.batch, {_AGAIN}",
    "busy": f"lower embeddings.concurrency or set embeddings.requests_per_minute, {_AGAIN}",
}


class Patience(NamedTuple):
    """How the scouts follow each other."""

    interval_s: float = 1.0  # between two of them, at least
    growth: float = 1.5
    longest_s: float = 5.0  # a server that is back is noticed within this
    jitter: float = 0.25  # part of the wait, at random: the scouts of several processes do not march in step


USUAL_PATIENCE = Patience()


def not_waiting(words: str) -> None:
    """A Waiting that tells nobody."""


class OutageGate:
    """Used from one event loop. Cancelling whoever waits here or is inside leaves it as if he had never come."""

    def __init__(
        self,
        host: str,
        limit_s: float,
        *,
        patience: Patience = USUAL_PATIENCE,
        waiting: Waiting = not_waiting,
        pace: Callable[[], Awaitable[None]] | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`host` is for people. `pace` is awaited before each request that is let through."""
        self._host = host
        self._limit_s = limit_s
        self._patience = patience
        self._waiting = waiting
        self._pace = pace
        self._chance = chance
        self._since_s: float | None = None  # None: open
        self._cause = ""
        self._kind: UnreachableKind = "connection"
        self._next_scout_s = 0.0
        self._scouts_failed = 0
        self._scout_is_out = False
        self._change = asyncio.Event()  # set, and replaced, at each change that those who wait must see
        self._told = ""
        self.answers = 0  # so often a request got one, whatever it was
        self.endings_of_patience = 0

    @asynccontextmanager
    async def passage(self, arrived_at: int) -> AsyncIterator[None]:
        """Around one request. Waits while the server is away; Unreachable from inside closes the gate.

        `arrived_at`: `endings_of_patience` when the request was asked for. Raises EmbeddingsUnavailableError, in the
        place of Unreachable, once the outage has lasted for the limit, for all that were asked for until then. After
        that each further request is one try, and no more waiting.
        """
        is_scout = await self._let_through(arrived_at)
        try:
            yield
        except Unreachable as failure:
            self._closed_by(failure, is_scout)
            raise
        except Exception:
            self._answered(is_scout)  # whatever is wrong with it, it was an answer
            raise
        else:
            self._answered(is_scout)
        finally:
            if is_scout:
                self._scout_is_back()

    async def _let_through(self, arrived_at: int) -> bool:
        """Whether the request is the scout."""
        while True:
            is_scout = await self._admitted(arrived_at)
            try:
                if self._pace is not None:
                    await self._pace()
            except BaseException:
                if is_scout:
                    self._scout_is_back()
                raise
            if is_scout:
                self._next_scout_s = _now_s() + self._patience.interval_s  # also where this one is cancelled
            if is_scout or self._since_s is None:
                return is_scout

    async def _admitted(self, arrived_at: int) -> bool:
        while self._since_s is not None:
            if self.endings_of_patience != arrived_at:
                raise self._unavailable()
            if not self._scout_is_out:
                return await self._become_scout()
            await self._change.wait()
        return False

    async def _become_scout(self) -> bool:
        self._scout_is_out = True
        try:
            # a time is waited for, which Retry-After of another request may put off meanwhile
            while (wait_s := self._next_scout_s - _now_s()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(wait_s)
        except BaseException:
            self._scout_is_back()
            raise
        return True

    def _closed_by(self, failure: Unreachable, is_scout: bool) -> None:
        now_s = _now_s()
        begins = self._since_s is None
        if self._since_s is None:
            self._since_s = now_s
            self._next_scout_s = now_s  # what an earlier outage had put off is over
            self._scouts_failed = 0
        elif is_scout:
            self._scouts_failed += 1
        self._cause, self._kind = failure.words, failure.kind
        wait_s = self._scout_wait_s(now_s - self._since_s, failure.retry_after_s or 0.0)
        if begins or is_scout or failure.retry_after_s:
            self._next_scout_s = max(self._next_scout_s, now_s + wait_s)
        if now_s - self._since_s >= self._limit_s:
            self.endings_of_patience += 1
            self._tell("")
            raise self._unavailable() from failure
        self._tell(f"the embedding server at {self._host}: {failure.words}")

    def _scout_wait_s(self, lasted_s: float, asked_for_s: float) -> float:
        """Grows from scout to scout, obeys the server, and ends with the limit."""
        patience = self._patience
        grown_s = patience.interval_s * patience.growth ** min(self._scouts_failed, 50)
        wait_s = min(grown_s, max(patience.longest_s, patience.interval_s)) * (1 + patience.jitter * self._chance())
        left_s = self._limit_s - lasted_s
        if left_s > 0:
            wait_s = min(max(wait_s, asked_for_s), left_s)
        return max(wait_s, patience.interval_s)

    def _answered(self, is_scout: bool) -> None:
        self.answers += 1
        if is_scout:
            self._since_s = None
            self._tell("")

    def _scout_is_back(self) -> None:
        self._scout_is_out = False
        self._wake()

    def _wake(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    def _unavailable(self) -> EmbeddingsUnavailableError:
        lasted_s = _now_s() - (self._since_s or 0.0)
        words = f"no vectors from the embedding server at {self._host} for {lasted_s:.0f} s: {self._cause}"
        return EmbeddingsUnavailableError(words, hint=_HINTS[self._kind])

    def _tell(self, words: str) -> None:
        if words != self._told:
            self._told = words
            self._waiting(words)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
