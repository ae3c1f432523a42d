"""A writer to whom nobody sends anything gives up what it only keeps to be faster."""

import asyncio
import threading
from pathlib import Path

import pytest

from domain.layout import BaseLayout
from store import files
from store.connection import forget_pages
from store.sqlite import open_store_writer
from store.write_port import WriteGroup
from tests.support.stores import document_write
from tests.support.waiting import eventually_true
from tests.support.writing import FakeStore, finished, running, writer_over
from workers.writer import inbox


async def test_where_nothing_comes_for_a_while_the_writer_rests_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "REST_AFTER_S", 0.01)
    rested: list[int] = []
    async with writer_over(FakeStore()) as it, running(it.writer):
        it.writer.rest = lambda: rested.append(threading.get_ident())
        for number in (1, 2):
            await it.writer.submit(finished(number, [f"docs/{number}"]))
            await eventually_true(lambda number=number: len(rested) == number)  # type: ignore[misc]
            await asyncio.sleep(0.05)
            assert len(rested) == number, "once, until a page comes"
    assert threading.get_ident() not in rested, "on the connection's thread"
    assert it.store.committed == [["docs/1"], ["docs/2"]]


def test_pages_that_were_forgotten_are_read_again(tmp_path: Path) -> None:
    layout = BaseLayout(tmp_path / "home")
    files.make_home(layout)
    store = open_store_writer(layout, base_id="b", substring_index="auto")
    try:
        for number in (1, 2):
            group = WriteGroup(documents=[document_write(f"docs/{number}.md", "# t\n\nwords\n")])
            assert store.apply(group).results[0].verdict == "applied"
            forget_pages(store.connection)
        assert store.connection.execute("SELECT count(*) FROM documents").fetchone() == (2,)
    finally:
        store.close()
