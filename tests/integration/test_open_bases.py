"""Bases that stay open: another index in the place is followed, a failing one is not lent again, none is shared."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app import open_bases
from app.backing_up import back_up, restore
from app.maintenance import reset
from app.open_bases import OpenBases
from app.wiring import ReadableBase, writable_base
from domain.errors import KnowledgeError, NotBuiltError
from domain.settings import Settings
from store import driver, nearest
from store.port import Visibility
from store.vector_memory import memory
from tests.support import status_bases
from tests.support.bases import build_base, index_into, layout_of, settings_of, write_files
from tests.support.vector_stores import vector_of
from tests.support.waiting import eventually


@pytest.fixture
def bases(base: Settings) -> Iterator[OpenBases]:
    pool = OpenBases(base)
    yield pool
    pool.close()


def documents(bases: OpenBases) -> int:
    with bases.borrowed() as base, base.store.snapshot() as snapshot:
        return snapshot.counts(visibility=Visibility.everything()).documents


def store_of(bases: OpenBases) -> object:
    with bases.borrowed() as base:
        return base.store


def is_closed(base: ReadableBase) -> bool:
    try:
        base.store.reader().identity()
    except (KnowledgeError, driver.ProgrammingError):
        return True
    return False


def test_what_comes_back_is_lent_again(bases: OpenBases) -> None:
    assert store_of(bases) is store_of(bases)
    with bases.borrowed() as one, bases.borrowed() as two:
        assert one.store is not two.store


def test_those_that_nobody_has_needed_for_a_while_are_closed(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were opened for a rush; each holds a cache of pages. The one that came back last is lent first."""
    tidied: list[None] = []  # told of after the closing: a base may not be looked at in its midst
    monkeypatch.setattr(open_bases, "IDLE_S", 0.05)
    monkeypatch.setattr(open_bases, "give_back_free_memory", lambda: tidied.append(None))
    now_s = [0.0]
    pool = OpenBases(base, lambda: now_s[0])
    with pool.borrowed() as one, pool.borrowed() as two, pool.borrowed() as three:
        rush = [one, two, three]
    now_s[0] = 0.04
    with pool.borrowed() as last:
        assert last is one
    assert [is_closed(each) for each in rush] == [False] * 3
    now_s[0] = 0.06
    eventually(lambda: len(tidied) == 1)
    assert [is_closed(each) for each in rush] == [False, True, True]
    now_s[0] = 1.0
    eventually(lambda: len(tidied) == 2)
    assert is_closed(one)


def test_a_pool_that_is_closed_leaves_no_thread(base: Settings) -> None:
    pool = OpenBases(base)
    with pool.borrowed() as one, pool.borrowed() as two:
        assert pool._tidying is None
    tidying = pool._tidying
    assert tidying is not None
    pool.close()
    assert [is_closed(each) for each in (one, two)] == [True, True]
    eventually(lambda: not tidying.is_alive())


def test_a_commit_is_seen_without_opening_anew(bases: OpenBases, base: Settings, tmp_path: Path) -> None:
    before, store = documents(bases), store_of(bases)
    write_files(tmp_path, {"new.md": "# New\n\nwords\n"})
    with writable_base(base, "test") as writable:
        index_into(writable, base, tmp_path, "more", ["new.md"])
    assert documents(bases) == before + 1
    assert store_of(bases) is store


def test_a_reset_is_followed(bases: OpenBases, base: Settings) -> None:
    assert documents(bases)
    reset(base, force=True)
    assert documents(bases) == 0


def test_a_restore_is_followed(bases: OpenBases, base: Settings, out: Path) -> None:
    before = documents(bases)
    back_up(base, out / "b", force=False)
    reset(base, force=True)
    assert documents(bases) == 0
    restore(base, out / "b", force=True)
    assert documents(bases) == before


def test_an_exchange_of_the_file_is_followed(bases: OpenBases, base: Settings) -> None:
    """As an upgrade does it: another knowledge.db is moved over the old one."""
    with bases.borrowed() as lent:
        old = lent
    layout = layout_of(base)
    copy = layout.home / "copy.db"
    copy.write_bytes(layout.database.read_bytes())
    copy.chmod(0o600)
    copy.replace(layout.database)
    with bases.borrowed() as lent:
        assert lent.store is not old.store
        assert lent.store.reader().identity().store_uuid
    assert is_closed(old)


def test_an_index_that_goes_and_comes(bases: OpenBases, base: Settings) -> None:
    assert documents(bases)
    away = layout_of(base).home.with_name("away")
    layout_of(base).home.rename(away)
    for _ in range(2):
        with pytest.raises(NotBuiltError), bases.borrowed():
            pass
    away.rename(layout_of(base).home)
    assert documents(bases)


def test_a_base_in_whose_use_something_failed_is_not_lent_again(bases: OpenBases) -> None:
    with pytest.raises(RuntimeError), bases.borrowed() as lent:
        failed = lent
        raise RuntimeError
    assert is_closed(failed)
    assert store_of(bases) is not failed.store


def test_what_is_lent_at_the_end_is_closed_when_it_comes_back(bases: OpenBases) -> None:
    with bases.borrowed() as lent, bases.borrowed() as other:
        pass
    with bases.borrowed() as lent:
        bases.close()
        assert is_closed(other) != is_closed(lent)  # the idle one is closed at once
        assert lent.store.reader().identity().store_uuid
    assert is_closed(lent)


def test_as_many_stay_open_as_were_idle_at_most(bases: OpenBases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_bases, "MOST_IDLE", 2)
    opened = [bases.borrowed() for _ in range(4)]
    lent: list[ReadableBase] = [one.__enter__() for one in opened]
    for one in opened:
        one.__exit__(None, None, None)
    assert [is_closed(one) for one in lent].count(False) == 2


def test_two_threads_never_share_one(bases: OpenBases) -> None:
    used: set[int] = set()
    lock, together = threading.Lock(), threading.Barrier(8)

    def read(_: int) -> None:
        together.wait(30)
        for _ in range(40):
            with bases.borrowed() as base:
                with lock:
                    assert id(base.store) not in used
                    used.add(id(base.store))
                with base.store.snapshot() as snapshot:
                    assert snapshot.has_documents()
                with lock:
                    used.remove(id(base.store))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(read, range(8)))


def test_nothing_is_there(tmp_path: Path) -> None:
    pool = OpenBases(settings_of(tmp_path / "home"))
    with pytest.raises(NotBuiltError), pool.borrowed():
        pass
    build_base(tmp_path)
    assert documents(pool)
    pool.close()


def test_the_vectors_of_an_index_are_in_memory_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many bases are open."""
    monkeypatch.setattr(nearest, "MOST_EXACT_WARM", 0)
    settings = status_bases.with_vectors(tmp_path)
    pool = OpenBases(settings)
    query = vector_of("fox", status_bases.MODEL.dimension)
    with pool.borrowed() as one, pool.borrowed() as two:
        uuid = one.store.reader().identity().store_uuid
        for base in (one, two):
            with base.store.snapshot() as snapshot:
                found = snapshot.nearest(query, limit=3, scope=None, visibility=Visibility.everything())
                assert (found.method, len(found.hits)) == ("bits", 3)
        held = [kept for (store, _), kept in memory._sets.items() if store == uuid]
        assert len(held) == 1
        assert len(held[0].packed.ids) == 3
    pool.close()
