"""Texts in batches over a server that refuses some of them.

What is told apart (R21): a server that is away (`Unreachable`) is the client's business, which sends the same request
again, later; a batch that is refused (`Rejected`) is halved, down to single texts. Good halves keep their results,
and the order of the results is that of the texts. One refused text among n costs 2 log2(n) + 1 requests, and fails
alone; n refused ones cost 2n - 1.

A server that refuses whatever it is sent would be asked 2n - 1 times for every batch. So after a number of refusals
without a single answer between them it is asked about harmless texts, and given up where it refuses those too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from domain.errors import EmbeddingsUnavailableError
from domain.markdown.borders import utf8_size
from domain.measures import EMBEDDING_HALVINGS
from domain.telemetry import SILENCE, Telemetry
from domain.vectors import CANARY_TEXTS
from embedding.failures import Rejected
from embedding.unit_vectors import unit_vectors

REFUSALS_IN_A_ROW = 16  # then it is asked whether it refuses everything
BATCH_TOO_LARGE = 413
SIZE_STATUSES = (400, BATCH_TOO_LARGE, 422)
BATCHES_BEFORE_MORE = 16
TIMES_TO_BELIEVE = 2  # that a batch was refused for its size, where the status does not say so

Vector = bytes


class Answer(Protocol):
    """What is used of an answer of the client's."""

    @property
    def vectors(self) -> NDArray[np.float32]: ...


Ask = Callable[[Sequence[str]], Awaitable[Answer]]
"""Raises Rejected, EmbeddingsUnavailableError, EmbeddingsChangedError."""


def batch_end(sizes_bytes: Sequence[int], start: int, max_texts: int, max_bytes: int) -> int:
    """Behind the last text of the batch that begins at `start`; a text that is too large is one by itself."""
    end, total = start + 1, sizes_bytes[start]
    latest = min(start + max_texts, len(sizes_bytes))
    while end < latest and total + sizes_bytes[end] <= max_bytes:
        total += sizes_bytes[end]
        end += 1
    return end


class BatchLimits:
    """How much a server takes at a time: as configured, lowered by what it was seen to refuse (fault 29).

    Learnt only from a batch that was refused although its halves were answered: then no text of it was at fault. A 413
    is believed at once; a 400 or 422, which may be a lie that happened once, when a batch of that count is refused a
    second time and none as large was answered in between. Whether the count was too high or the bytes were too many is
    told by what was answered before: a count that was answered once is not at fault, and then it is the bytes. That may
    blame the count where the bytes were at fault, so after many batches at a lowered count twice as many are tried.
    """

    def __init__(self, max_texts: int, max_bytes: int) -> None:
        self.max_texts = max_texts
        self.max_bytes = max_bytes
        self.alone_from_bytes = max_bytes + 1  # texts that would spoil a batch, being too long by themselves
        self.part_bytes = 0  # what such a text is cut into; 0: no part was taken yet
        self._most_texts = max_texts
        self._answered_texts = 1
        self._batches_at_limit = 0
        self._batches_before_more = BATCHES_BEFORE_MORE
        self._doubted_texts = 0
        self._doubts = 0

    def allow(self, texts: int, size_bytes: int) -> bool:
        return texts <= self.max_texts and size_bytes <= self.max_bytes

    def answered(self, texts: int, size_bytes: int) -> None:
        self._answered_texts = max(self._answered_texts, texts)
        if texts >= self._doubted_texts:
            self._doubts = 0
        if texts == self.max_texts < self._most_texts:
            self._batches_at_limit += 1
            if self._batches_at_limit >= self._batches_before_more:
                self._batches_at_limit = 0
                self.max_texts = min(2 * texts, self._most_texts)
        if texts == 1 and size_bytes >= self.alone_from_bytes:
            self.alone_from_bytes = size_bytes + 1
            self.part_bytes = max(self.part_bytes, size_bytes) if self.part_bytes else 0

    def refused_together(self, status: int, texts: int, half_bytes: int) -> None:
        """A batch was refused, all of its halves were answered; the larger of them had `half_bytes`."""
        if status not in SIZE_STATUSES or not (status == BATCH_TOO_LARGE or self._is_believed(texts)):
            return
        if texts > self._answered_texts:
            self._lower_texts(self._answered_texts)
        else:
            self.max_bytes = max(1, min(self.max_bytes, half_bytes))

    def _lower_texts(self, texts: int) -> None:
        if texts < self.max_texts:
            self.max_texts = texts
            self._batches_at_limit = 0
            self._batches_before_more *= 4  # the more often it was refused, the more rarely it is tried

    def _is_believed(self, texts: int) -> bool:
        self._doubts = self._doubts + 1 if texts == self._doubted_texts else 1
        self._doubted_texts = texts
        return self._doubts >= TIMES_TO_BELIEVE

    def taken_in_parts(self, size_bytes: int) -> None:
        """A text of this size was refused whole and taken in parts."""
        self.alone_from_bytes = min(self.alone_from_bytes, size_bytes)

    def parts_refused(self, refused: int, parts: int) -> None:
        """Of the parts of a text; where most were, the next text is cut smaller."""
        if 2 * refused > parts:
            self.part_bytes //= 2


class Batcher:
    """Sends texts in batches, several at a time; holds what is learnt of a server during a run."""

    def __init__(
        self, ask: Ask, limits: BatchLimits, *, lanes: int, server: str, telemetry: Telemetry = SILENCE
    ) -> None:
        """`lanes`: batches on their way at a time, for each call. `server`: as people are told of it."""
        self.limits = limits
        self._ask = ask
        self._lanes = lanes
        self._server = server
        self._refusals = 0  # since the last answer
        self._asking = asyncio.Lock()
        self._telemetry = telemetry

    async def embed(self, texts: Sequence[str]) -> list[Vector | Rejected]:
        """The vector of each text at unit length, or what it was refused with, in the order of the texts.

        Raises EmbeddingsUnavailableError, also where the server refuses everything, and EmbeddingsChangedError.
        """
        call = _Call(texts, self.limits)
        lanes = [asyncio.ensure_future(self._lane(call)) for _ in range(min(self._lanes, len(texts)))]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
        return [call.results[at] for at in range(len(texts))]

    async def _lane(self, call: "_Call") -> None:
        while batch := call.next_batch():
            await self._settle(call, batch, is_first_try=True)

    async def _settle(self, call: "_Call", batch: Sequence[int], *, is_first_try: bool = False) -> bool:
        """Whether all texts of the batch have their vectors now."""
        if len(batch) == 1:
            return await self._settle_one(call, batch, is_first_try=is_first_try)
        if not self.limits.allow(len(batch), call.size_bytes(batch)):  # learnt while the other half was on its way
            return await self._settle_halves(call, batch)
        rejected = await self._try(call, batch)
        if rejected is None:
            return True
        is_good = await self._settle_halves(call, batch)
        if is_good:
            half_bytes = max(map(call.size_bytes, _halves(batch)))
            self.limits.refused_together(rejected.status, len(batch), half_bytes)
        return is_good

    async def _settle_halves(self, call: "_Call", batch: Sequence[int]) -> bool:
        """One after the other: what the first teaches is used for the second."""
        self._telemetry.count(EMBEDDING_HALVINGS)
        return all([await self._settle(call, half) for half in _halves(batch)])

    async def _settle_one(self, call: "_Call", batch: Sequence[int], *, is_first_try: bool) -> bool:
        rejected = await self._try(call, batch)
        if rejected and is_first_try and not rejected.is_too_long:
            rejected = await self._try(call, batch)  # the last word on a text is never the first one
        if rejected:
            call.results[batch[0]] = rejected
        return rejected is None

    async def _try(self, call: "_Call", batch: Sequence[int]) -> Rejected | None:
        """One request for a batch; its results are kept, or its refusal is returned."""
        try:
            answer = await self._ask([call.texts[at] for at in batch])
        except Rejected as rejected:
            await self._count_refusal(rejected)
            return rejected
        self._refusals = 0
        self.limits.answered(len(batch), call.size_bytes(batch))
        call.results.update(zip(batch, unit_vectors(answer.vectors), strict=True))
        return None

    async def _count_refusal(self, rejected: Rejected) -> None:
        self._refusals += 1
        if self._refusals < REFUSALS_IN_A_ROW:
            return
        async with self._asking:  # the other lanes wait for what comes of it
            if self._refusals >= REFUSALS_IN_A_ROW and not await self._takes_anything():
                raise EmbeddingsUnavailableError(
                    f"the embedding server at {self._server} refuses whatever it is sent: {rejected.words}",
                    hint="see what its own log says, and whether model, key and address are right in the configuration",
                )
            self._refusals = 0

    async def _takes_anything(self) -> bool:
        """Whether it answers for one of a few harmless texts, each asked alone: one refusal may be bad luck."""
        for text in CANARY_TEXTS:
            try:
                await self._ask([text])
            except Rejected:
                continue
            return True
        return False


def _halves(batch: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    middle = len(batch) // 2
    return batch[:middle], batch[middle:]


class _Call:
    """The texts of one call: those that wait, and the results of the others."""

    def __init__(self, texts: Sequence[str], limits: BatchLimits) -> None:
        self.texts = texts
        self.results: dict[int, Vector | Rejected] = {}
        self._limits = limits
        self._sizes_bytes = [utf8_size(text) for text in texts]
        self._waiting: Sequence[int] = range(len(texts))

    def size_bytes(self, batch: Sequence[int]) -> int:
        return sum(self._sizes_bytes[at] for at in batch)

    def next_batch(self) -> list[int]:
        """As many of the waiting texts as the limits allow by now; at last the large ones, each alone."""
        limits = self._limits
        together = [at for at in self._waiting if self._sizes_bytes[at] < limits.alone_from_bytes]
        if together:
            end = batch_end([self._sizes_bytes[at] for at in together], 0, limits.max_texts, limits.max_bytes)
            batch = together[:end]
        else:
            batch = list(self._waiting[:1])
        taken = set(batch)
        self._waiting = [at for at in self._waiting if at not in taken]
        return batch
