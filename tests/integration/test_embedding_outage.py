"""A server that goes away and comes back: who waits, how often it is asked, and when that ends (R18, R21, P17)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from typing import Any

import httpx
import pytest

from domain.errors import EmbeddingsUnavailableError
from domain.settings import EmbeddingsSettings
from embedding.client import EmbeddingClient
from embedding.failures import Rejected, Unreachable
from embedding.outage import OutageGate, Patience
from tests.support.embedding_server import Down, EmbeddingServer, embedding_server, is_vector_of

DIMENSION = 8
INTERVAL_S = 0.1  # in the place of a second
PATIENCE = Patience(interval_s=INTERVAL_S, longest_s=2 * INTERVAL_S)


class Counted(httpx.AsyncHTTPTransport):
    """Notes when each request leaves: what nobody listens to cannot be counted on the other side."""

    def __init__(self) -> None:
        super().__init__(trust_env=False)
        self.left_at_s: list[float] = []
        self.failures_left_at_s: list[float] = []  # when those left that failed

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        left_at_s = asyncio.get_running_loop().time()
        self.left_at_s.append(left_at_s)
        try:
            response = await super().handle_async_request(request)
        except httpx.TransportError:
            self.failures_left_at_s.append(left_at_s)
            raise
        if response.status_code != 200:
            self.failures_left_at_s.append(left_at_s)
        return response


class Setup:
    """A client, what it was told of waiting, and its requests."""

    def __init__(self, server: EmbeddingServer, settings: dict[str, Any], client: dict[str, Any]) -> None:
        self.told: list[str] = []
        self.transport = Counted()
        usual = {"timeout_s": 5.0, "outage_limit_s": 30.0, "concurrency": 4}
        self.client = EmbeddingClient(
            EmbeddingsSettings(base_url=server.url, model="m", **(usual | settings)),
            None,
            waiting=self.told.append,
            transport=self.transport,
            **({"patience": PATIENCE} | client),
        )

    async def embed_all(self, count: int) -> None:
        """Texts one by one, and the vectors are looked at."""

        async def one(text: str) -> None:
            answer = await self.client.request([text])
            assert is_vector_of(answer.vectors[0].astype("<f4").tobytes(), text, DIMENSION)

        await asyncio.gather(*(one(f"text {number}") for number in range(count)))


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to that")


@contextmanager
def served(**behaviour: Any) -> Iterator[EmbeddingServer]:
    with embedding_server(dimension=DIMENSION, **behaviour) as server:
        yield server


@pytest.mark.parametrize("how", ["refuse", "disconnect", "503", "429"])
async def test_an_outage_is_waited_for_by_one_scout_at_a_time(how: Down) -> None:
    """R18, P17: what was in flight fails together, then one request an interval, then all goes on by itself."""
    with served(delay_s=0.02, down_after=10, down_how=how, down_for_s=1.0) as server:
        setup = Setup(server, {}, {})
        async with aclosing(setup.client):
            await setup.embed_all(60)
    assert setup.told[0].startswith(f"the embedding server at {server.host}: ")
    assert setup.told[-1] == ""
    assert all(setup.told[:-1])
    failures_at_s = sorted(setup.transport.failures_left_at_s)
    assert len(setup.transport.left_at_s) == 60 + len(failures_at_s)
    assert len(failures_at_s) >= 2
    in_flight_at_first = 4  # at most; some of these may be scouts already
    assert all(after - before >= INTERVAL_S for before, after in pairwise(failures_at_s[in_flight_at_first:]))


async def test_scouts_keep_their_distance_however_many_wait() -> None:
    """R18: also where processes share the second."""
    with served(status=503) as server:
        setup = Setup(server, {"outage_limit_s": 1.5}, {"share": 0.5})
        async with aclosing(setup.client):
            results = await asyncio.gather(*(setup.client.request([f"{n}"]) for n in range(20)), return_exceptions=True)
    assert all(isinstance(result, EmbeddingsUnavailableError) for result in results)
    at_s = setup.transport.left_at_s
    in_flight_at_first = 2  # its share of four
    assert all(b - a >= 2 * INTERVAL_S for a, b in pairwise(at_s[in_flight_at_first:]))
    assert 3 <= len(at_s) <= 1.5 / (2 * INTERVAL_S) + 1 + in_flight_at_first
    assert setup.told[0]
    assert setup.told[-1] == ""


async def test_the_end_of_patience_names_the_cause() -> None:
    """R18: exit 15 with host, cause and duration."""
    with served() as server:
        server.take_down()
        setup = Setup(server, {"outage_limit_s": 0.3}, {})
        async with aclosing(setup.client):
            with pytest.raises(EmbeddingsUnavailableError) as caught:
                await setup.client.request(["a"])
            assert server.host in caught.value.message
            assert "connection refused" in caught.value.message
            assert "embeddings.base_url" in caught.value.hint
            assert setup.told == [f"the embedding server at {server.host}: connection refused", ""]
            server.bring_up()
            await setup.client.request(["a"])
    assert setup.told[2:] == []


async def test_no_patience_is_one_try() -> None:
    with served(status=503) as server:
        setup = Setup(server, {"outage_limit_s": 0.0}, {})
        async with aclosing(setup.client):
            with pytest.raises(EmbeddingsUnavailableError):
                await setup.client.request(["a"])
    assert len(server.requests) == 1
    assert setup.told == []


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_obeyed(form: str) -> None:
    """R21: longer than a scout would have waited by itself."""
    until_utc = (datetime.now(UTC) + timedelta(seconds=3)).replace(microsecond=0)
    header = "1" if form == "seconds" else format_datetime(until_utc, usegmt=True)
    with served(status=429, retry_after=header) as server:
        setup = Setup(server, {"concurrency": 1}, {})
        async with aclosing(setup.client):
            waiting = asyncio.create_task(setup.embed_all(3))
            await until(lambda: bool(server.requests))
            server.behaviour.status = 0
            await waiting
    refused, *answered = server.requests
    assert (refused.how, [request.how for request in answered]) == ("status_429", ["", "", ""])
    if form == "seconds":
        assert answered[0].at_s - refused.at_s >= 1.0
    else:
        assert datetime.now(UTC) >= until_utc


async def test_good_answers_to_what_was_in_flight_do_not_open_the_gate() -> None:
    """R21: Retry-After holds for the next request, however well the last ones went."""
    gate = OutageGate("host", 30.0, patience=PATIENCE)
    clock = asyncio.get_running_loop().time
    async with gate.passage(0):
        with pytest.raises(Unreachable):
            async with gate.passage(0):
                refused_at_s = clock()
                raise Unreachable("busy", "status 429", retry_after_s=0.5)
    async with gate.passage(0):
        assert clock() - refused_at_s >= 0.5
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), gate.passage(0):
                pass  # the scout is not back yet
    async with asyncio.timeout(0.05), gate.passage(0), gate.passage(0):
        pass


async def fail(gate: OutageGate) -> None:
    with pytest.raises(Unreachable):
        async with gate.passage(0):
            raise Unreachable("connection", "gone")


async def pass_through(gate: OutageGate) -> float:
    """When it was let through."""
    async with gate.passage(0):
        return asyncio.get_running_loop().time()


async def cancelled(task: "asyncio.Task[float]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_scout_that_is_cancelled_before_its_time_is_replaced() -> None:
    gate = OutageGate("host", 30.0, patience=PATIENCE)
    await fail(gate)
    first, second = (asyncio.create_task(pass_through(gate)) for _ in range(2))
    await asyncio.sleep(0)
    await cancelled(first)
    await asyncio.wait_for(second, 20)
    await asyncio.wait_for(pass_through(gate), 20)


async def test_the_pace_is_kept_without_passing_a_closed_gate() -> None:
    """R18: whoever was let through to wait for his turn is stopped when the server goes away meanwhile."""
    may_go = asyncio.Event()
    gate = OutageGate("host", 30.0, patience=PATIENCE, pace=_turns(may_go))
    slow, slower = (asyncio.create_task(pass_through(gate)) for _ in range(2))
    await asyncio.sleep(0)
    may_go.set()
    clock = asyncio.get_running_loop().time
    closed_at_s = clock()
    await fail(gate)
    for task in (slow, slower):
        assert await asyncio.wait_for(task, 20) - closed_at_s >= INTERVAL_S


async def test_a_scout_that_is_cancelled_in_its_turn_is_replaced() -> None:
    may_go = asyncio.Event()
    may_go.set()
    gate = OutageGate("host", 30.0, patience=Patience(0.0, jitter=0.0), pace=_turns(may_go))
    await fail(gate)
    may_go.clear()
    first, second = (asyncio.create_task(pass_through(gate)) for _ in range(2))
    await asyncio.sleep(0.05)
    await cancelled(first)
    may_go.set()
    await asyncio.wait_for(second, 20)


def _turns(may_go: asyncio.Event) -> Callable[[], Awaitable[None]]:
    async def turn() -> None:
        await may_go.wait()

    return turn


async def test_the_wait_grows_up_to_its_longest_and_ends_with_the_limit() -> None:
    """R18: the last scout goes out when the limit is reached, not long after."""
    gate = OutageGate("host", 0.6, patience=Patience(0.05, growth=2.0, longest_s=0.2, jitter=0.0))
    clock = asyncio.get_running_loop().time
    went_out_s = []
    with pytest.raises(EmbeddingsUnavailableError, match=r"server at host for \d+ s: gone"):
        while True:
            with suppress(Unreachable):
                async with gate.passage(0):
                    went_out_s.append(clock())
                    raise Unreachable("connection", "gone")
    distances_s = [after - before for before, after in pairwise(went_out_s)]
    assert all(found >= least for found, least in zip(distances_s, [0.05, 0.1, 0.2, 0.2, 0.05], strict=False))
    assert 2 <= len(went_out_s) <= 6


async def test_waiting_is_told_when_the_cause_changes() -> None:
    with served(status=503) as server:
        setup = Setup(server, {}, {})
        async with aclosing(setup.client):
            task = asyncio.create_task(setup.client.request(["a"]))
            await until(lambda: len(server.requests) >= 3)
            server.take_down()
            await until(lambda: len(setup.told) >= 2)
            server.behaviour.status = 0
            server.bring_up()
            await task
    first, *_, last = setup.told
    assert first.startswith(f"the embedding server at {server.host}: status 503")
    assert f"the embedding server at {server.host}: connection refused" in setup.told
    assert last == ""
    assert all(a != b for a, b in pairwise(setup.told))


async def test_a_cancelled_scout_is_replaced() -> None:
    """Cancelled while it waits for its time, and while it is out."""
    with served(status=503) as server:
        setup = Setup(server, {"concurrency": 2}, {})
        async with aclosing(setup.client):
            tasks = [asyncio.create_task(setup.client.request([f"{n}"])) for n in range(6)]
            await until(lambda: len(server.requests) >= 4)
            server.behaviour.status = 0
            server.behaviour.trick = "hang"
            hung = len(server.requests)
            await until(lambda: len(server.requests) > hung)
            for task in tasks[:5]:
                task.cancel()
            await asyncio.gather(*tasks[:5], return_exceptions=True)
            server.behaviour.trick = ""
            await asyncio.wait_for(asyncio.gather(tasks[5], return_exceptions=True), 20)
            await asyncio.wait_for(setup.embed_all(8), 20)
    assert setup.told[-1] == ""


async def test_a_refusal_ends_an_outage() -> None:
    """R21: whoever refuses is there."""
    with served(status=503) as server:
        setup = Setup(server, {}, {})
        async with aclosing(setup.client):
            task = asyncio.create_task(setup.client.request(["a"]))
            await until(lambda: bool(server.requests))
            server.behaviour.status = 500
            with pytest.raises(Rejected):
                await task
    assert setup.told[-1] == ""


async def test_a_text_that_breaks_every_connection_is_told_from_an_outage() -> None:
    """R21: while others are answered, the third time the batch itself is refused, and can be halved."""
    with served() as server:
        setup = Setup(server, {}, {})
        server.behaviour.vector_for = _breaks_on_poison
        async with aclosing(setup.client):
            poisoned = asyncio.create_task(setup.client.request(["poison"]))
            while not poisoned.done():
                await setup.client.request(["fine"])
            with pytest.raises(Rejected, match="while other requests were answered"):
                await poisoned
    assert server.texts_seen.count("poison") == 3


def _breaks_on_poison(text: str) -> list[float]:
    if text == "poison":
        raise ConnectionError
    return [1.0] * DIMENSION
