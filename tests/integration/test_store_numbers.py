"""What a monitor is told of knowledge.db, against what SQLite says when it is asked at length."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from domain.layout import BaseLayout, sidecars
from store import driver, numbers
from store.compacting import merge_full_text, sizes
from store.connection import open_reader, open_writer
from store.format_gate import FULL_TEXT_TABLES
from store.log_state import ReadLock, log_frames, read_locks
from store.numbers import LogNumbers, LogWatch, full_text_segments, quick_numbers, slow_numbers, structure_segments
from store.wal_index import wal_index
from tests.support.stores import build_store
from tests.support.vector_stores import pin, put, put_words, writing

TEXTS = {f"docs/{number}.md": f"# Sheet {number}\n\nsome words number {number}\n" for number in range(40)}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "knowledge.db"
    with closing(open_writer(path, synchronous="NORMAL")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
    yield path


def insert(connection: driver.Connection, rows: int = 5) -> None:
    connection.executemany("INSERT INTO t (text) VALUES (?)", [("x" * 8000,)] * rows)


def looked(watch: LogWatch, now_s: float) -> LogNumbers:
    seen = watch.look(now_s)
    assert seen is not None
    return seen


def test_the_shared_memory_says_what_a_checkpoint_would(database: Path) -> None:
    with closing(open_writer(database, synchronous="NORMAL")) as connection, closing(open_reader(database)) as reader:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        insert(connection)
        seen, told = wal_index(database), log_frames(connection)
        assert seen is not None
        assert told is not None
        assert (seen.frames, seen.folded_in, seen.page_bytes) == (*told, 8192)
        assert seen.waiting_bytes == told.lag * 8192 > 0
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM t").fetchone()
        insert(connection)
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        seen, told = wal_index(database), log_frames(connection)
        assert seen is not None
        assert told is not None
        assert (seen.frames, seen.folded_in) == tuple(told)
        assert 0 < seen.folded_in < seen.frames
        assert sum(seen.keeps_back(lock) for lock in range(1, 5) if seen.marks[lock] == seen.folded_in) == 1
        reader.execute("COMMIT")


def test_no_log_is_none(database: Path, tmp_path: Path) -> None:
    assert wal_index(tmp_path / "nothing.db") is None
    sidecars(tmp_path / "short.db")[2].write_bytes(b"x" * 20)
    assert wal_index(tmp_path / "short.db") is None
    sidecars(tmp_path / "other.db")[2].write_bytes(b"x" * 400)
    assert wal_index(tmp_path / "other.db") is None
    assert LogWatch(tmp_path / "nothing.db").look() is None


def test_the_age_of_what_waits_in_the_log(database: Path) -> None:
    watch = LogWatch(database)
    with closing(open_writer(database, synchronous="NORMAL")) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        insert(connection)
        ages = [looked(watch, now_s).age_s for now_s in (100.0, 130.0)]
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        insert(connection)
        ages += [looked(watch, now_s).age_s for now_s in (140.0, 141.0)]
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        seen = looked(watch, 500.0)
    assert ages == [0.0, 30.0, 0.0, 1.0]
    assert (seen.waiting_bytes, seen.age_s) == (0, 0.0)


def test_the_oldest_reader_is_the_one_that_keeps_the_log(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sees the newest state keeps nothing; one that comes and goes at the same lock is another one each time."""
    held: list[ReadLock] = []
    monkeypatch.setattr(numbers, "read_locks", lambda path: tuple(held))
    watch = LogWatch(database)

    def oldest(now_s: float) -> float | None:
        return looked(watch, now_s).oldest_reader_s

    with closing(open_writer(database, synchronous="NORMAL")) as connection, closing(open_reader(database)) as reader:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        insert(connection)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM t").fetchone()
        index = wal_index(database)
        assert index is not None
        lock = next(number for number in range(1, 5) if index.marks[number] == index.frames)
        held[:] = [ReadLock(77, lock)]
        assert oldest(0.0) == 0.0
        assert oldest(50.0) == 0.0, "nothing was written since it began"
        insert(connection)
        assert [oldest(60.0), oldest(75.0)] == [0.0, 15.0]
        held[:] = [ReadLock(78, lock)]
        assert oldest(90.0) == 0.0, "another process"
        held[:] = []
        assert oldest(95.0) == 0.0
        reader.execute("COMMIT")
        monkeypatch.setattr(numbers, "read_locks", lambda path: None)
        assert oldest(99.0) is None


def test_read_locks_name_the_process_and_the_lock(database: Path, tmp_path: Path) -> None:
    table = tmp_path / "locks"
    with closing(open_reader(database)) as reader:
        reader.execute("SELECT count(*) FROM t").fetchone()
        status = sidecars(database)[2].stat()
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        lines = [f"POSIX  ADVISORY  READ {os.getpid()} {place} 128 128", f"POSIX  ADVISORY  READ 77 {place} 124 124"]
        lines += [f"POSIX  ADVISORY  READ 0 {place} 123 123", f"POSIX  ADVISORY  READ 77 {place} 128 128"]
        table.write_text("".join(f"{number}: {line}\n" for number, line in enumerate(lines, 1)))
        assert read_locks(database, table) == (ReadLock(0, 0), ReadLock(77, 1))


def test_segments_are_what_the_tables_hold(tmp_path: Path) -> None:
    path = build_store(tmp_path / "home", TEXTS, documents_a_group=4)
    with closing(open_writer(path, synchronous="NORMAL")) as connection:
        told = {table: full_text_segments(connection, table) for table in FULL_TEXT_TABLES}
        for table in FULL_TEXT_TABLES:
            (counted,) = connection.execute(f"SELECT count(DISTINCT segid) FROM {table}_idx").fetchone()  # noqa: S608
            assert told[table] == counted, table
        assert told["chunks_fts"] > 1
        assert quick_numbers(connection, path).segments == sizes(connection, path).segments
        merge_full_text(connection, path)
        assert full_text_segments(connection, "chunks_fts") == 1


@pytest.mark.parametrize(
    ("structure", "segments"),
    [
        (b"", 0),
        (b"\0\0\0\1", 0),
        (b"\0\0\0\1\2\5\0", 5),
        (b"\0\0\0\1\xff\0\0\1\2\7\0", 7),
        (b"\0\0\0\1\2\x81\1\0", 129),
    ],
)
def test_a_structure_record_is_read_as_far_as_it_goes(structure: bytes, segments: int) -> None:
    assert structure_segments(structure) == segments


def test_rows_are_counted_and_unused_vectors_too(tmp_path: Path) -> None:
    with writing(tmp_path / "home") as writer:
        pinned = pin(writer)
        put(writer, {"docs/a.md": "# A\n\nfirst words", "docs/b.md": "# B\n\nother words"}, pinned)
        before = slow_numbers(writer.connection, BaseLayout(tmp_path / "home").database)
        put_words(writer, {"docs/a.md": "# A\n\nwords of a later day"}, generation=2)
        after = slow_numbers(writer.connection, BaseLayout(tmp_path / "home").database)
    assert (before.documents, before.chunks, before.unused_vectors) == (2, before.vectors, 0)
    assert (after.documents, after.vectors, after.unused_vectors) == (2, before.vectors, 1)


def test_free_pages_and_sizes(tmp_path: Path) -> None:
    path = build_store(tmp_path / "home", TEXTS)
    with closing(open_writer(path, synchronous="NORMAL")) as connection:
        found = quick_numbers(connection, path)
        assert found.database_bytes == path.stat().st_size
        assert found.log_bytes == sidecars(path)[1].stat().st_size
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        assert found.free_bytes == free * 8192
        assert not connection.in_transaction
