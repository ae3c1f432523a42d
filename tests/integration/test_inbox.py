"""The one writer: groups, answers, and its end (C-03, R24, S2-44)."""

import asyncio
import threading
from pathlib import Path

import aiosqlite
import pytest

from domain.errors import DiskFullError, KnowledgeError, StorageError
from domain.layout import BaseLayout
from store import files
from store.documents import SqliteStoreWriter
from store.sqlite import open_store_writer
from store.write_port import GroupResult, WriteGroup
from tests.support.stores import document_write
from tests.support.writing import FakeStore, finished, running, writer_over
from workers.checking import FinishedPage
from workers.writer.inbox import DocumentWriter


async def test_a_page_alone_is_committed_alone() -> None:
    """R24: when one document waits, it is alone."""
    async with writer_over(FakeStore()) as it, running(it.writer):
        outcome = await it.writer.submit(finished(1, ["docs/a"]))
        assert outcome.counts == {"added": 1}
        await it.writer.commit(finished(2, ["docs/b"]), attempt=1)
    assert it.store.committed == [["docs/a"], ["docs/b"]]
    assert [page.number for page, _ in it.observed] == [1, 2]
    assert [outcome.page for outcome in it.recorded] == [1, 2]
    assert len(it.writer.holds_s) == 2


async def test_waiting_pages_are_one_group_in_their_order() -> None:
    async with writer_over(FakeStore()) as it:
        answers = [asyncio.create_task(it.writer.submit(finished(n, [f"docs/{n}"]))) for n in range(5)]
        await asyncio.sleep(0)
        async with running(it.writer):
            outcomes = await asyncio.gather(*answers)
    assert it.store.committed == [[f"docs/{n}" for n in range(5)]]
    assert [outcome.page for outcome in outcomes] == list(range(5))


async def test_a_group_is_no_larger_than_it_may_be() -> None:
    async with writer_over(FakeStore()) as it:
        pages = [finished(n, [f"docs/{n}"], text_bytes=600_000) for n in range(4)]
        answers = [asyncio.create_task(it.writer.submit(page)) for page in pages]
        await asyncio.sleep(0)
        async with running(it.writer):
            await asyncio.gather(*answers)
    assert len(it.store.committed[0]) == 1
    assert sorted(key for group in it.store.committed for key in group) == [f"docs/{n}" for n in range(4)]


async def test_a_page_that_comes_twice_is_never_in_a_group_twice() -> None:
    """C-04."""
    async with writer_over(FakeStore()) as it:
        page = finished(1, ["docs/a"])
        answers = [asyncio.create_task(it.writer.submit(page)) for _ in range(3)]
        await asyncio.sleep(0)
        async with running(it.writer):
            await asyncio.gather(*answers)
    assert it.store.committed == [["docs/a"]] * 3


async def test_a_guilty_document_takes_nobody_along() -> None:
    """R24."""
    async with writer_over(FakeStore(refuses={"docs/3"})) as it:
        answers = [asyncio.create_task(it.writer.submit(finished(n, [f"docs/{n}"]))) for n in range(6)]
        await asyncio.sleep(0)
        async with running(it.writer):
            outcomes = await asyncio.gather(*answers)
    assert [outcome.counts for outcome in outcomes] == [{"added": 1}] * 3 + [{"failed": 1}] + [{"added": 1}] * 2


async def test_a_storage_error_stops_the_writer_and_reaches_everyone() -> None:
    """R24: those in the group, those waiting, and those who come later."""
    store = FakeStore()
    store.fails_with = StorageError("the disk says no")
    async with writer_over(store) as it:
        pages = [finished(n, [f"docs/{n}"], text_bytes=900_000) for n in range(3)]
        answers = [asyncio.create_task(it.writer.submit(page)) for page in pages]
        await asyncio.sleep(0)
        async with running(it.writer) as task:
            ends = await asyncio.gather(*answers, return_exceptions=True)
            assert ends == [store.fails_with] * 3
            with pytest.raises(StorageError, match="the disk says no"):
                await task
            with pytest.raises(StorageError, match="the disk says no"):
                await it.writer.submit(finished(9))
    assert len(store.asked) == 1
    assert not it.recorded


async def test_a_fault_of_ours_stops_the_writer_and_reaches_everyone() -> None:
    store = FakeStore()
    store.fails_with = TypeError("a fault")
    async with writer_over(store) as it:
        answer = asyncio.create_task(it.writer.submit(finished(1, ["docs/a"])))
        await asyncio.sleep(0)
        async with running(it.writer) as task:
            with pytest.raises(TypeError):
                await answer
            with pytest.raises(TypeError):
                await task


async def test_a_writer_that_was_ended_leaves_nobody_waiting() -> None:
    async with writer_over(FakeStore()) as it:
        async with running(it.writer):
            await it.writer.submit(finished(1))
        with pytest.raises(StorageError, match="has stopped"):
            await it.writer.submit(finished(2, ["docs/b"]))
        waiting = asyncio.create_task(it.writer.submit(finished(3)))
        with pytest.raises(StorageError, match="has stopped"):
            await waiting
    assert it.store.committed == [[]]


async def test_a_submitter_that_gives_up_does_not_break_the_writer() -> None:
    async with writer_over(FakeStore()) as it:
        leaving = asyncio.create_task(it.writer.submit(finished(1, ["docs/a"])))
        staying = asyncio.create_task(it.writer.submit(finished(2, ["docs/b"])))
        await asyncio.sleep(0)
        leaving.cancel()
        async with running(it.writer):
            assert (await staying).counts == {"added": 1}
            assert (await it.writer.submit(finished(3, ["docs/c"]))).counts == {"added": 1}
        assert leaving.cancelled()
    assert it.store.committed[0] == ["docs/a", "docs/b"]


class HeldStore(FakeStore):
    """Waits inside its transaction until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self.threads: set[int] = set()

    def apply(self, group: WriteGroup) -> GroupResult:
        self.threads.add(threading.get_ident())
        self.entered.set()
        assert self.go_on.wait(20)
        return super().apply(group)


async def test_a_group_is_written_while_the_loop_goes_on() -> None:
    """S2-44: the transaction is one function on a thread of its own, and the loop does not wait for it."""
    store = HeldStore()
    async with writer_over(store) as it, running(it.writer):
        answer = asyncio.create_task(it.writer.submit(finished(1, ["docs/a"])))
        await asyncio.to_thread(store.entered.wait, 20)
        turns = 0
        for _ in range(100):
            await asyncio.sleep(0)
            turns += 1
        assert not answer.done()
        store.go_on.set()
        await answer
    assert turns == 100
    assert threading.get_ident() not in store.threads
    assert len(store.threads) == 1


async def test_what_comes_during_a_transaction_is_the_next_group() -> None:
    store = HeldStore()
    async with writer_over(store) as it, running(it.writer):
        first = asyncio.create_task(it.writer.submit(finished(1, ["docs/a"])))
        await asyncio.to_thread(store.entered.wait, 20)
        later = [asyncio.create_task(it.writer.submit(finished(n, [f"docs/{n}"]))) for n in (2, 3)]
        await asyncio.sleep(0)
        store.go_on.set()
        await asyncio.gather(first, *later)
    assert store.committed == [["docs/a"], ["docs/2", "docs/3"]]


async def test_a_writer_ended_in_the_middle_of_a_group_finishes_it() -> None:
    """Nothing is left half done: the function runs to its end on its thread, the submitter is told of the end."""
    store = HeldStore()
    async with writer_over(store) as it, running(it.writer) as task:
        answer = asyncio.create_task(it.writer.submit(finished(1, ["docs/a"])))
        await asyncio.to_thread(store.entered.wait, 20)
        task.cancel()
        await asyncio.sleep(0)
        store.go_on.set()
        with pytest.raises(StorageError, match="has stopped"):
            await answer
    assert store.committed == [["docs/a"]]


class _Borrowed:
    def close(self) -> None:
        return None


class StandingStill:
    """A real store whose transactions begin when the loop stands still."""

    def __init__(self, store: SqliteStoreWriter) -> None:
        self.store = store
        self.called, self.stands_still, self.committed = threading.Event(), threading.Event(), threading.Event()

    def apply(self, group: WriteGroup) -> GroupResult:
        self.called.set()
        assert self.stands_still.wait(20)
        result = self.store.apply(group)
        assert not self.store.connection.in_transaction
        self.committed.set()
        return result

    def highest_generation(self) -> int:
        return self.store.highest_generation()

    def close_generation(self, generation: int, *, complete: bool = False) -> None:
        self.store.close_generation(generation, complete=complete)


async def test_a_transaction_of_a_real_store_needs_no_turn_of_the_loop(tmp_path: Path) -> None:
    """S2-44: from BEGIN to COMMIT nothing is awaited, so it ends while the loop stands still."""
    layout = BaseLayout(tmp_path / "home")
    files.make_home(layout)
    store = StandingStill(open_store_writer(layout, base_id="b", substring_index="auto"))
    documents = tuple(document_write(key, f"# {key}\n\ntext\n") for key in ("docs/a.md", "docs/b.md"))
    page = FinishedPage(1, 1, "docs", documents=documents)
    try:
        async with aiosqlite.Connection(_Borrowed, 64) as connection:  # type: ignore[arg-type]
            writer = DocumentWriter(connection, store, record=_ignore, observe=_ignore)
            async with running(writer):
                answer = asyncio.create_task(writer.submit(page))
                await asyncio.to_thread(store.called.wait, 20)
                store.stands_still.set()
                assert store.committed.wait(20)  # without a turn of the loop
                assert (await answer).counts == {"added": 2}
    finally:
        store.store.close()


class Roomless:
    """A brake that has the writer try again."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def pass_by(self) -> None:
        return

    async def await_room(self, error: DiskFullError) -> None:
        self.told.append(error.message)


async def test_a_group_that_found_no_room_is_committed_once_there_is_some(tmp_path: Path) -> None:
    """P23, finding 10: also where it was in the store all the same; it counts once."""
    layout = BaseLayout(tmp_path / "home")
    files.make_home(layout)
    store = open_store_writer(layout, base_id="b", substring_index="auto")
    page = FinishedPage(1, 1, "docs", documents=(document_write("docs/a.md", "# A\n\ntext\n"),))
    brake, refusals = Roomless(), ["before", "after"]
    apply = store.apply

    def refusing(group: WriteGroup) -> GroupResult:
        when = refusals.pop(0) if refusals else ""
        result = apply(group) if when != "before" else None
        if when or result is None:
            raise DiskFullError(f"no space left, {when}", hint="free some")
        return result

    store.apply = refusing  # type: ignore[method-assign]
    try:
        async with aiosqlite.Connection(_Borrowed, 64) as connection:  # type: ignore[arg-type]
            writer = DocumentWriter(connection, store, record=_ignore, observe=_ignore, brake=brake)
            async with running(writer):
                assert (await writer.submit(page)).counts == {"added": 1}
    finally:
        store.close()
    assert brake.told == ["no space left, before", "no space left, after"]


def _ignore(*arguments: object) -> None:
    return None


def test_the_error_of_the_writer_is_one_for_people() -> None:
    assert issubclass(StorageError, KnowledgeError)
    assert StorageError.exit_status == 14
