"""The write-ahead log stays small beside readers, idle and busy ones (P25, fault 24)."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from domain.layout import sidecars
from store import log_keeping
from store.connection import open_reader, open_writer
from store.log_keeping import LogKeeper, truncate_log

ROW = "x" * 8000


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "knowledge.db"
    with closing(open_writer(path, synchronous="NORMAL")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
    yield path


def test_the_log_is_truncated_once_it_is_large(database: Path) -> None:
    with closing(open_writer(database, synchronous="NORMAL")) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        keeper = LogKeeper(connection, database)
        connection.executemany("INSERT INTO t (text) VALUES (?)", [(ROW,)] * 50)
        assert not keeper.keep(large_bytes=10_000_000)
        assert keeper.log_bytes() > 400_000
        assert keeper.keep(large_bytes=100_000)
        assert keeper.log_bytes() == 0
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (50,)


def test_it_is_tried_once_a_second_and_a_reader_keeps_it_from_nothing_but_the_truncation(database: Path) -> None:
    now_s = [0.0]
    with closing(open_writer(database, synchronous="NORMAL")) as connection, closing(open_reader(database)) as reader:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        keeper = LogKeeper(connection, database, lambda: now_s[0])
        connection.executemany("INSERT INTO t (text) VALUES (?)", [(ROW,)] * 20)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (20,)
        connection.execute("INSERT INTO t (text) VALUES (?)", (ROW,))
        assert not keeper.keep(large_bytes=1000)
        reader.execute("COMMIT")
        assert not keeper.keep(large_bytes=1000), "tried less than a second ago"
        now_s[0] = 1.5
        assert keeper.keep(large_bytes=1000)
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (21,)


def test_readers_that_overlap_do_not_let_it_grow_without_bound(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four readers whose short transactions overlap starve SQLite's own checkpoints; ours gets through.

    It is tried at each write, and as often as a busy machine may need: what is proved is that readers who come
    meanwhile do not keep it waiting, not how fast the disk or the machine is.
    """
    monkeypatch.setattr(log_keeping, "TRY_EVERY_S", 0.0)
    monkeypatch.setattr(log_keeping, "WAIT_FOR_READERS_MS", 30_000)
    done = threading.Event()

    def read() -> None:
        with closing(open_reader(database)) as reader:
            while not done.is_set():
                reader.execute("BEGIN")
                reader.execute("SELECT max(id) FROM t").fetchall()
                done.wait(0.02)
                reader.execute("COMMIT")

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    largest = 0
    try:
        with closing(open_writer(database, synchronous="NORMAL")) as connection:
            keeper = LogKeeper(connection, database)
            for _ in range(400):
                connection.execute("INSERT INTO t (text) VALUES (?)", (ROW * 4,))
                keeper.keep(large_bytes=1_000_000)
                largest = max(largest, sidecars(database)[1].stat().st_size)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert largest < 1_100_000, "13 MB were written"


def test_the_time_that_a_writer_waits_for_others_stays_as_it_was(database: Path) -> None:
    with closing(open_writer(database, synchronous="NORMAL")) as connection:
        before = connection.execute("PRAGMA busy_timeout").fetchone()
        truncate_log(connection, log_keeping.WAIT_FOR_READERS_MS)
        assert connection.execute("PRAGMA busy_timeout").fetchone() == before


def test_a_log_that_another_writer_is_at_is_not_told_as_cut(database: Path) -> None:
    """It may hold no frame and still have its length, and in it what was removed."""
    with (
        closing(open_writer(database, synchronous="NORMAL")) as connection,
        closing(open_writer(database, synchronous="NORMAL")) as other,
    ):
        assert truncate_log(connection, log_keeping.WAIT_FOR_READERS_MS)
        other.execute("BEGIN IMMEDIATE")
        assert not truncate_log(connection, log_keeping.WAIT_FOR_READERS_MS)
        other.execute("COMMIT")
        assert truncate_log(connection, log_keeping.WAIT_FOR_READERS_MS)
