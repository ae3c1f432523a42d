"""Batches over a server that refuses some: S0-28, S0-29, C-02, R21, faults 28 and 29."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from domain.errors import EmbeddingsChangedError, EmbeddingsUnavailableError
from domain.vectors import CANARY_TEXTS
from embedding.batching import REFUSALS_IN_A_ROW, Batcher, BatchLimits, batch_end
from embedding.failures import Rejected
from tests.support.embedding_server import is_vector_of, vector_array_of

DIMENSION = 8


class Answered(NamedTuple):
    vectors: NDArray[np.float32]


class Server:
    """What a client's `request` would raise or return; `status_of` says with which status a batch is refused."""

    def __init__(self, status_of: Callable[[Sequence[str]], int | None]) -> None:
        self.status_of = status_of
        self.asked: list[list[str]] = []
        self.refused: list[int] = []
        self.in_flight = self.most_in_flight = 0

    async def request(self, texts: Sequence[str]) -> Answered:
        self.asked.append(list(texts))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(0)
        finally:
            self.in_flight -= 1
        status = self.status_of(texts)
        if status is not None:
            self.refused.append(len(texts))
            raise Rejected(f"status {status}", status=status, count=len(texts))
        return Answered(np.array([vector_array_of(text, DIMENSION) for text in texts], dtype=np.float32))

    @property
    def counts(self) -> list[int]:
        return [len(texts) for texts in self.asked]


def batcher(server: Server, *, max_texts: int = 64, max_bytes: int = 1 << 20, lanes: int = 1) -> Batcher:
    return Batcher(server.request, BatchLimits(max_texts, max_bytes), lanes=lanes, server="models.example:1234")


def refusing(*poisoned: str, status: int = 500) -> Callable[[Sequence[str]], int | None]:
    return lambda texts: status if set(poisoned) & set(texts) else None


def above(count: int, status: int) -> Callable[[Sequence[str]], int | None]:
    return lambda texts: status if len(texts) > count else None


def names(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


def assert_placed(texts: Sequence[str], results: Sequence[bytes | Rejected], refused: set[str]) -> None:
    assert len(results) == len(texts)
    for text, result in zip(texts, results, strict=True):
        if text in refused:
            assert isinstance(result, Rejected), text
        else:
            assert isinstance(result, bytes), text
            assert is_vector_of(result, text, DIMENSION)


def plan_batches(sizes_bytes: list[int], max_texts: int, max_bytes: int) -> list[range]:
    """Batch after batch, as a call of the batcher cuts them."""
    planned: list[range] = []
    while (at := planned[-1].stop if planned else 0) < len(sizes_bytes):
        planned.append(range(at, batch_end(sizes_bytes, at, max_texts, max_bytes)))
    return planned


def test_a_plan_keeps_both_limits() -> None:
    assert plan_batches([10] * 5, 2, 1000) == [range(2), range(2, 4), range(4, 5)]
    assert plan_batches([10, 10, 10], 64, 20) == [range(2), range(2, 3)]
    assert plan_batches([10, 99, 10], 64, 20) == [range(1), range(1, 2), range(2, 3)]
    assert plan_batches([], 64, 20) == []


@given(st.lists(st.integers(0, 50)), st.integers(1, 6), st.integers(1, 100))
def test_a_plan_covers_every_text_once_and_is_as_full_as_may_be(sizes: list[int], texts: int, size: int) -> None:
    """S0-28."""
    planned = plan_batches(sizes, texts, size)
    assert [at for batch in planned for at in batch] == list(range(len(sizes)))
    for batch in planned:
        assert 0 < len(batch) <= texts
        assert len(batch) == 1 or sum(sizes[at] for at in batch) <= size
        if batch.stop < len(sizes):
            assert len(batch) == texts or sum(sizes[at] for at in range(batch.start, batch.stop + 1)) > size


async def test_64_texts_a_request_and_the_order_of_the_texts() -> None:
    """S0-28, S0-29, C-02."""
    server = Server(refusing())
    texts = names(150)
    assert_placed(texts, await batcher(server).embed(texts), set())
    assert server.counts == [64, 64, 22]
    assert await batcher(server).embed([]) == []


async def test_batches_of_a_call_are_on_their_way_together() -> None:
    server = Server(refusing())
    await batcher(server, max_texts=10, lanes=4).embed(names(100))
    assert server.most_in_flight == 4
    assert len(server.asked) == 10


async def test_one_bad_text_fails_alone_and_costs_a_request_for_each_half() -> None:
    """S0-28, R21: halved to single texts; good halves are not sent again."""
    server = Server(refusing("text 37"))
    texts = names(64)
    assert_placed(texts, await batcher(server).embed(texts), {"text 37"})
    assert len(server.asked) == 13
    answered = [text for asked in server.asked if "text 37" not in asked for text in asked]
    assert sorted(answered) == sorted(set(texts) - {"text 37"})


@given(st.integers(1, 40), st.sets(st.integers(0, 39), max_size=12), st.integers(1, 9), st.integers(1, 3))
def test_whatever_is_refused_every_other_text_gets_its_own_vector(
    count: int, bad: set[int], max_texts: int, lanes: int
) -> None:
    """S0-28, S0-29."""
    texts = names(count)
    poisoned = {f"text {number}" for number in bad}
    server = Server(refusing(*poisoned))
    results = asyncio.run(batcher(server, max_texts=max_texts, lanes=lanes).embed(texts))
    assert_placed(texts, results, poisoned)


@pytest.mark.parametrize(("status", "tries"), [(500, 2), (0, 2), (400, 1), (413, 1), (422, 1)])
async def test_a_lone_text_is_sent_twice_unless_its_length_may_be_the_reason(status: int, tries: int) -> None:
    """Fault 28: what will be refused again is not sent again."""
    server = Server(refusing("alone", status=status))
    (result,) = await batcher(server).embed(["alone"])
    assert isinstance(result, Rejected)
    assert len(server.asked) == tries


async def test_a_lone_text_survives_one_bad_answer() -> None:
    """A run over one changed file has no halves that would make up for it."""
    statuses = iter([0, None])
    server = Server(lambda texts: next(statuses))
    assert_placed(["alone"], await batcher(server).embed(["alone"]), set())


async def test_a_server_that_takes_32_is_not_asked_for_64_again() -> None:
    """Fault 29: halved on 413, the limit remembered, nothing lost."""
    server = Server(above(32, 413))
    learning = batcher(server, lanes=2)
    for _ in range(3):
        texts = names(256)
        assert_placed(texts, await learning.embed(texts), set())
    assert len(server.refused) <= 2, "once for each lane"
    assert learning.limits.max_texts == 32
    assert max(server.counts[8:]) == 32


@pytest.mark.parametrize("status", [400, 422])
async def test_a_limit_told_by_another_status_is_believed_at_the_second_time(status: int) -> None:
    """Fault 29: servers that answer 422 for a batch that is too large."""
    server = Server(above(16, status))
    learning = batcher(server)
    texts = names(640)
    assert_placed(texts, await learning.embed(texts), set())
    assert learning.limits.max_texts == 16
    assert server.refused == [64, 32, 32, 64, 32, 32][: len(server.refused)]
    assert max(server.counts[20:]) == 16


async def test_nothing_is_learnt_from_a_lie_that_happens_now_and_then() -> None:
    """A 400 out of the blue, a malformed answer, a 500: whole batches go on being sent."""
    chance = random.Random(7)
    server = Server(lambda texts: chance.choice([500, 0, 502]) if chance.random() < 0.3 else None)
    learning = batcher(server)
    for _ in range(40):
        await learning.embed(names(64))
    assert (learning.limits.max_texts, learning.limits.max_bytes) == (64, 1 << 20)
    once = iter([400])
    server.status_of = lambda texts: next(once, None)
    await learning.embed(names(640))
    assert learning.limits.max_texts == 64


async def test_a_limit_of_bytes_is_told_from_one_of_texts() -> None:
    """Fault 29: a server with a body limit; many small texts still go together."""
    server = Server(lambda texts: 413 if sum(map(len, texts)) > 4_000 else None)
    learning = batcher(server)
    small = names(64)
    large = [f"{number} " + "x" * 500 for number in range(64)]
    for texts in (small, large, large, small):
        assert_placed(texts, await learning.embed(texts), set())
    assert learning.limits.max_texts == 64
    assert 2_000 <= learning.limits.max_bytes <= 4_000
    assert server.counts[-1] == 64
    refused = len(server.refused)
    await learning.embed(large)
    assert len(server.refused) == refused


async def test_a_count_that_was_blamed_wrongly_is_raised_again() -> None:
    """Two large texts in the first request, and a limit of bytes: the other 100,000 texts are not sent one by one."""
    server = Server(lambda texts: 413 if sum(map(len, texts)) > 4_000 else None)
    learning = batcher(server)
    await learning.embed(["x" * 3_000, "y" * 3_000])
    assert learning.limits.max_texts == 1
    await learning.embed(names(6_400))
    assert learning.limits.max_texts == 64
    assert server.refused == [2]


async def test_a_count_that_is_refused_again_is_tried_more_and_more_rarely() -> None:
    server = Server(above(32, 413))
    learning = batcher(server)
    for _ in range(20):
        await learning.embed(names(32 * 64))
    assert 2 <= len(server.refused) <= 4
    assert learning.limits.max_texts == 32


async def test_a_poisoned_batch_teaches_nothing() -> None:
    server = Server(refusing("text 3", "text 70", status=413))
    learning = batcher(server)
    await learning.embed(names(128))
    assert learning.limits.max_texts >= 32
    assert learning.limits.max_bytes == 1 << 20


async def test_no_limit_falls_below_one_text() -> None:
    limits = BatchLimits(64, 1 << 20)
    for _ in range(20):
        limits.refused_together(413, 2, 1)
        limits.refused_together(413, 1, 0)
    assert limits.max_texts >= 1
    assert limits.max_bytes >= 1


async def test_texts_that_are_too_long_by_themselves_no_longer_spoil_a_batch() -> None:
    """Fault 28: once one was taken in parts, the like of it goes alone; a size that proves fine joins the others."""
    server = Server(lambda texts: 400 if any(len(text) > 100 for text in texts) else None)
    learning = batcher(server)
    learning.limits.taken_in_parts(101)
    texts = [*names(30), *(f"{number:03}" * 40 for number in range(2)), *names(20)]
    results = await learning.embed(texts)
    assert server.counts == [50, 1, 1]
    assert [isinstance(result, Rejected) for result in results] == [False] * 30 + [True] * 2 + [False] * 20
    learning.limits.answered(1, 300)
    assert learning.limits.alone_from_bytes == 301


async def test_a_server_that_refuses_everything_is_given_up_after_a_few_requests() -> None:
    """R21, trap 3 of the house style: not 127 requests for every 64 texts."""
    server = Server(lambda texts: 500)
    with pytest.raises(
        EmbeddingsUnavailableError, match=r"models\.example:1234 refuses whatever it is sent: status 500"
    ):
        await batcher(server, lanes=4).embed(names(1_000))
    assert len(server.asked) < 2 * REFUSALS_IN_A_ROW
    assert server.in_flight == 0, "what was on its way was ended"


async def test_many_bad_texts_in_a_row_are_no_reason_to_give_up() -> None:
    """The harmless texts that it is asked about then are answered."""
    texts = names(100)
    poisoned = set(texts[:80])
    server = Server(refusing(*poisoned))
    assert_placed(texts, await batcher(server).embed(texts), poisoned)
    assert [CANARY_TEXTS[0]] in server.asked


async def test_what_ends_the_run_is_passed_on_as_it_is() -> None:
    async def changed(_texts: Sequence[str]) -> Answered:
        raise EmbeddingsChangedError("another model answers")

    ending = Batcher(changed, BatchLimits(8, 1000), lanes=3, server="here")
    with pytest.raises(EmbeddingsChangedError, match="another model answers"):
        await ending.embed(names(50))


async def test_a_cancelled_call_leaves_nothing_running() -> None:
    begun = asyncio.Event()
    ended: list[int] = []

    async def hang(texts: Sequence[str]) -> Answered:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(len(texts))
        raise AssertionError

    call = asyncio.ensure_future(Batcher(hang, BatchLimits(8, 1000), lanes=3, server="here").embed(names(50)))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ended == [8, 8, 8]
