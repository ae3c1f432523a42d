"""Dispatch: as many pages in flight as may be, each counted once, and a deadly file found among its neighbours."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from domain.files import FileCheck, Page, Reason
from scheduler import dispatch
from scheduler.dispatch import PART_NUMBERS, InFlight, after_death
from store.state_port import RemovalCandidate
from tests.support.queues import Dispatching


def pages_of(count: int, files_a_page: int = 8) -> list[Page]:
    return [
        Page(number, "docs", tuple(FileCheck(f"docs/{number:02}-{file:02}") for file in range(files_a_page)))
        for number in range(1, count + 1)
    ]


def keys_of(pages: Sequence[Page]) -> list[str]:
    return sorted(file.key for page in pages for file in page.files)


@asynccontextmanager
async def working(*workers: object) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(worker) for worker in workers]  # type: ignore[call-overload]
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("window_pages", [1, 3, 8, 32])
async def test_the_window_is_never_exceeded(window_pages: int) -> None:
    """C-05: and the plan is not pulled any faster."""
    it = Dispatching(window_pages=window_pages)
    pulled = 0

    def plan() -> Iterator[Page | RemovalCandidate]:
        nonlocal pulled
        for page in pages_of(50):
            pulled += 1
            yield page

    pulled_ahead: list[int] = []

    def before(page: Page) -> None:
        pulled_ahead.append(pulled - len(it.counted) // 8)

    async with working(it.work(before=before)):
        await it.dispatcher.dispatch(plan())
    assert sorted(it.counted) == keys_of(pages_of(50))
    assert it.queue.most <= window_pages
    assert max(pulled_ahead) <= window_pages
    assert it.dispatcher.in_flight == []


async def test_pages_and_candidates_are_recorded_before_they_are_sent() -> None:
    """R35: the queue is only transport."""
    it = Dispatching()
    gone = [RemovalCandidate(f"docs/gone-{number}", Reason.GONE) for number in range(3)]
    async with working(it.work(before=lambda page: _recorded(it, page.number))):
        await it.dispatcher.dispatch(iter([gone[0], *pages_of(20), *gone[1:]]))
    assert it.state.pages == list(range(1, 21))
    assert it.state.candidates == gone


def _recorded(it: Dispatching, number: int) -> None:
    assert number in it.state.pages


async def test_nothing_planned_is_nothing_to_wait_for() -> None:
    it = Dispatching()
    await it.dispatcher.dispatch(iter([]))
    await it.dispatcher.dispatch(iter([RemovalCandidate("docs/a", Reason.GONE)]))
    assert len(it.state.candidates) == 1


async def test_done_twice_is_no_news() -> None:
    """C-04."""
    it = Dispatching()
    (page,) = pages_of(1)
    sending = asyncio.create_task(it.dispatcher.dispatch(iter([page])))
    await it.queue.begin()
    assert it.dispatcher.done(page.number)
    assert not it.dispatcher.done(page.number)
    assert not it.dispatcher.done(77)
    await sending


def test_a_page_is_tried_with_care_then_halved_and_a_file_fails() -> None:
    """R23: with care, each file is read in a limited process of its own."""
    (page,) = pages_of(1, 5)
    numbers = iter((101, 102))
    careful = after_death(InFlight(page, 3), lambda: next(numbers))
    assert careful.again == (InFlight(replace(page, alone=True), 4),)
    assert careful.failed == ()
    halved = after_death(careful.again[0], lambda: next(numbers))
    assert [(half.page.number, half.attempt, half.page.alone) for half in halved.again] == [
        (101, 1, True),
        (102, 1, True),
    ]
    assert tuple(file for half in halved.again for file in half.page.files) == page.files
    assert [len(half.page.files) for half in halved.again] == [2, 3]

    single = Page(7, "docs", page.files[:1], alone=True)
    last = after_death(InFlight(single, 2), lambda: 0)
    assert last.again == ()
    assert [(failure.key, failure.reason) for failure in last.failed] == [("docs/01-00", Reason.WORKER_DIED)]


@pytest.mark.parametrize("at_a_time", [1, 3])
@pytest.mark.parametrize("deadly", [{"docs/01-00"}, {"docs/20-07"}, {"docs/07-03"}, {"docs/07-03", "docs/31-05"}])
async def test_a_deadly_file_is_found_and_no_other_is_given_up(deadly: set[str], at_a_time: int) -> None:
    """R23: every other file is in the store, and counted once."""
    it = Dispatching()
    async with working(it.work(deadly=deadly, at_a_time=at_a_time)):
        await it.dispatcher.dispatch(iter(pages_of(40)))
    assert {failure.key for failure in it.dispatcher.gave_up} == deadly
    assert len(it.dispatcher.gave_up) == len(deadly)
    assert sorted(it.counted) == sorted(set(keys_of(pages_of(40))) - deadly)
    # one to notice, one for the page alone, one with care, three of its halves, one of the file; less where pages met
    assert it.deaths <= 7 * len(deadly)
    assert not it.queue.jobs


async def test_a_page_of_only_deadly_files() -> None:
    it = Dispatching()
    pages = pages_of(3, 4)
    deadly = {file.key for file in pages[1].files}
    async with working(it.work(deadly=deadly)):
        await it.dispatcher.dispatch(iter(pages))
    assert {failure.key for failure in it.dispatcher.gave_up} == deadly
    assert sorted(it.counted) == sorted(set(keys_of(pages)) - deadly)


async def test_with_two_workers_an_innocent_file_is_never_given_up() -> None:
    it = Dispatching()
    deadly = {"docs/03-04"}
    async with working(it.work(deadly=deadly), it.work(deadly=deadly)):
        await it.dispatcher.dispatch(iter(pages_of(30)))
    assert {failure.key for failure in it.dispatcher.gave_up} == deadly
    assert sorted(it.counted) == sorted(set(keys_of(pages_of(30))) - deadly)


async def test_a_worker_that_died_of_nothing_costs_nobody_anything() -> None:
    """P2: somebody killed it."""
    it = Dispatching()
    (first, *_) = pages = pages_of(12)
    sending = asyncio.create_task(it.dispatcher.dispatch(iter(pages)))
    await it.queue.begin()
    assert await it.dispatcher.worker_died() == ()
    async with working(it.work()):
        await sending
    assert sorted(it.counted) == keys_of(pages)
    assert first.number < PART_NUMBERS


async def test_a_page_that_comes_late_after_all_counts_once() -> None:
    """C-04: its worker had handed it over before it died, or was another one than the dead."""
    it = Dispatching()
    pages = pages_of(2)
    sending = asyncio.create_task(it.dispatcher.dispatch(iter(pages)))
    for _ in pages:
        await it.queue.begin()
    await it.dispatcher.worker_died()
    it.commit(pages[1])  # a suspect by now, waiting for its turn
    async with working(it.work()):
        await sending
    assert sorted(it.counted) == keys_of(pages)


async def test_a_page_that_was_halved_and_comes_late_counts_with_its_halves() -> None:
    it = Dispatching()
    (page,) = pages_of(1)
    sending = asyncio.create_task(it.dispatcher.dispatch(iter([page])))
    for _ in ("alone already", "tried with care"):
        await it.queue.begin()
        await it.dispatcher.worker_died()
    it.commit(page)
    assert it.counted == []
    async with working(it.work()):
        await sending
    assert sorted(it.counted) == keys_of([page])


@pytest.mark.parametrize("pages", [1, 5])
async def test_what_the_queue_loses_is_sent_again(pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """P3, R35: the queue is only transport; a run does not wait for ever for what a broker forgot."""
    monkeypatch.setattr(dispatch, "LOOK_AFTER_S", 0.01)
    it = Dispatching()
    sending = asyncio.create_task(it.dispatcher.dispatch(iter(pages_of(pages))))
    await it.queue.begin()
    it.queue.lose_everything()
    async with working(it.work()):
        await sending
    assert sorted(it.counted) == keys_of(pages_of(pages))
    assert not it.dispatcher.gave_up


async def test_an_error_of_the_plan_is_raised() -> None:
    def broken() -> Iterator[Page | RemovalCandidate]:
        yield pages_of(1)[0]
        raise OSError("the disk says no")

    with pytest.raises(OSError, match="the disk"):
        await Dispatching().dispatcher.dispatch(broken())


def test_parts_have_numbers_above_every_planned_one() -> None:
    numbers: Callable[[], int] = iter([PART_NUMBERS + 1, PART_NUMBERS + 2]).__next__
    fate = after_death(InFlight(replace(pages_of(1)[0], alone=True), 1), numbers)
    assert all(half.page.number > PART_NUMBERS for half in fate.again)


async def test_the_last_page_takes_the_cause_of_a_wait_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """R18: also where it comes just while the queue is asked for that cause."""
    monkeypatch.setattr(dispatch, "LOOK_AFTER_S", 0.01)
    told: list[str] = []
    it = Dispatching(hold_up=told.append)
    (page,) = pages_of(1)

    async def asked() -> str:
        it.commit(page)
        return "the server is away"

    monkeypatch.setattr(it.queue, "hold_up", asked)
    await it.dispatcher.dispatch(iter([page]))
    assert told[-2:] == ["the server is away", ""]
