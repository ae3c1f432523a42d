"""`compact`: what it gives back, what it leaves as it was, and that searches go on beside it (S2-55, faults 23, 24)."""

import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from app import maintenance
from app.wiring import writable_base
from domain.errors import IntegrityError, LockedError, NotBuiltError
from domain.layout import sidecars
from domain.settings import Settings
from store import compacting, vector_queries
from store.connection import open_reader
from store.format_gate import FULL_TEXT_TABLES
from store.port import Visibility
from store.sqlite import SqliteStore
from tests.support import drifts
from tests.support.bases import (
    assert_sound,
    build_base,
    identity_of,
    index_into,
    keys_of,
    layout_of,
    settings_of,
    write_files,
)
from tests.support.vector_stores import embed_base, writing

ROUNDS = 12
NAMES = [f"n{number:02}.md" for number in range(30)]


def text_of(name: str, turn: int) -> str:
    return f"# {name}\n\nneedle in turn{turn} of {name} " + " ".join(f"word{turn}x{n}" for n in range(300)) + "\n"


@pytest.fixture
def churned(place: Path) -> Settings:
    """Every document replaced a dozen times, in a run each, and a third of them removed at last."""
    settings = build_base(place, {name: text_of(name, 0) for name in NAMES})
    with writable_base(settings, "test") as base:
        for turn in range(1, ROUNDS):
            write_files(place / "docs", {name: text_of(name, turn) for name in NAMES})
            index_into(base, settings, place / "docs", "docs", NAMES)
    maintenance.remove_paths(settings, place, [f"docs/{name}" for name in NAMES[::3]])
    return settings


def found(settings: Settings, words: list[str]) -> list[str]:
    with closing(SqliteStore(layout_of(settings).database, base_id=None)) as store:
        snapshot, everything = store.reader(), Visibility.everything()
        ids = snapshot.rank_words(words, limit=50, scope=None, visibility=everything)
        return sorted(chunk.key for chunk in snapshot.found_chunks(ids, visibility=everything))


def test_segments_are_merged_and_pages_given_back(churned: Settings) -> None:
    path, seen, keys = layout_of(churned).database, identity_of(churned), keys_of(churned)
    answers = found(churned, ["needl"])
    on_disk = path.stat().st_size
    report = maintenance.compact(churned)
    assert report.before.bytes == on_disk
    assert report.after.bytes < report.before.bytes * 2 // 3
    assert report.after.free_bytes == 0
    assert report.before.segments >= 4
    assert report.after.segments == 2  # nothing is in the table of substrings
    assert report.is_log_truncated
    assert path.stat().st_size == report.after.bytes
    assert not sidecars(path)[1].exists()
    assert found(churned, ["needl"]) == answers
    assert (identity_of(churned), keys_of(churned)) == (seen, keys)
    assert_sound(churned)


def test_a_second_time_there_is_nothing_to_do(churned: Settings) -> None:
    maintenance.compact(churned)
    again = maintenance.compact(churned)
    assert (again.before.bytes, again.before.segments) == (again.after.bytes, again.after.segments)
    assert_sound(churned)


def test_each_step_is_short_and_gives_the_lock_back(churned: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer of the file gets its turn between two steps: no step is a transaction around all."""
    monkeypatch.setattr(compacting, "MERGED_PAGES_PER_STEP", 1)
    monkeypatch.setattr(compacting, "VACUUMED_PAGES_PER_STEP", 1)
    path = layout_of(churned).database
    statements: list[tuple[str, bool]] = []
    with writable_base(churned, "test") as base:
        connection = base.writer.connection
        connection.set_trace_callback(lambda text: statements.append((text, connection.in_transaction)))
        compacting.merge_full_text(connection, path)
        compacting.give_back_pages(connection, path)
        connection.set_trace_callback(None)
        assert compacting.sizes(connection, path)[1:] == (0, 2)
    steps = [inside for text, inside in statements if "'merge'" in text or "incremental_vacuum" in text]
    assert len(steps) > 20
    assert not any(inside for inside in steps)
    assert_sound(churned)


def test_searches_go_on(churned: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "MERGED_PAGES_PER_STEP", 1)
    expected, answers, errors, is_over = found(churned, ["needl"]), [0], list[BaseException](), threading.Event()

    def search() -> None:
        while not is_over.is_set():
            try:
                assert found(churned, ["needl"]) == expected
            except BaseException as error:  # noqa: BLE001 - the test tells of it
                errors.append(error)
                return
            answers[0] += 1

    searcher = threading.Thread(target=search)
    searcher.start()
    try:
        while not answers[0] and not errors:
            time.sleep(0.001)
        report = maintenance.compact(churned)
    finally:
        is_over.set()
        searcher.join()
    assert errors == []
    assert report.after.segments == 2
    assert_sound(churned)


def test_a_reader_that_stays_is_told(churned: Settings) -> None:
    """A pinned state keeps the log (reliability, finding 11): it is said, and nothing else fails."""
    with closing(open_reader(layout_of(churned).database)) as reader:
        reader.execute("BEGIN")
        before = reader.execute("SELECT count(*) FROM documents").fetchone()
        quick = pytest.MonkeyPatch()
        quick.setattr("store.connection.BUSY_TIMEOUT_S", 0.05)
        try:
            report = maintenance.compact(churned)
        finally:
            quick.undo()
        assert reader.execute("SELECT count(*) FROM documents").fetchone() == before
    assert not report.is_log_truncated
    assert report.after.segments == 2
    assert maintenance.compact(churned).is_log_truncated
    assert_sound(churned)


def test_vectors_of_no_chunk_go(place: Path) -> None:
    settings = build_base(place)
    with writable_base(settings, "test") as base:
        embed_base(base.writer)
    maintenance.remove_paths(settings, place, ["docs/sub/"])
    with writable_base(settings, "test") as base:
        unused = vector_queries.counts(base.writer.connection).unused
    report = maintenance.compact(settings)
    assert report.vectors_dropped == unused > 0
    with writable_base(settings, "test") as base:
        counts = vector_queries.counts(base.writer.connection)
    assert counts.unused == 0
    assert counts.vectors > 0
    assert_sound(settings)


def test_a_command_takes_effect_once(churned: Settings) -> None:
    first = maintenance.compact(churned, command_id="c1")
    assert not first.is_repeated
    again = maintenance.compact(churned, command_id="c1")
    assert again.is_repeated
    assert again.before == again.after


def test_what_it_needs(churned: Settings, place: Path) -> None:
    with writable_base(churned, "knowledge index"), pytest.raises(LockedError, match="knowledge index") as caught:
        maintenance.compact(churned)
    assert caught.value.exit_status == 11
    with pytest.raises(NotBuiltError):
        maintenance.compact(settings_of(place / "nowhere"))
    assert not (place / "nowhere").exists()


def test_damage_is_named_and_mended_as_ever(churned: Settings) -> None:
    drifts.apply_drift(layout_of(churned).database, drifts.zeroed_full_text_page)
    with pytest.raises(IntegrityError, match="damaged") as caught:
        maintenance.compact(churned)
    assert "knowledge verify" in caught.value.hint
    maintenance.rebuild(churned)
    maintenance.compact(churned)
    assert_sound(churned)


def test_segments_are_counted_as_full_text_counts_them(tmp_path: Path) -> None:
    """Against FTS5's own record: after a cookie of four bytes, the number of levels and the number of segments."""
    with writing(tmp_path / "home") as writer:
        path = Path(writer.connection.execute("PRAGMA database_list").fetchone()[2])
        assert compacting.sizes(writer.connection, path).segments == 0
    settings = build_base(tmp_path / "base", {f"n{n}.md": text_of(f"n{n}.md", n) for n in range(3)})
    with writable_base(settings, "test") as base:
        for turn in range(5):
            write_files(tmp_path / "base" / "docs", {"n1.md": text_of("n1.md", turn + 50)})
            index_into(base, settings, tmp_path / "base" / "docs", "docs", ["n1.md"])
        records = [
            base.writer.connection.execute(f"SELECT block FROM {table}_data WHERE id = 10").fetchone()[0]  # noqa: S608
            for table in FULL_TEXT_TABLES
        ]
        numbers = [record[8:] if record[4:8] == b"\xff\x00\x00\x01" else record[4:] for record in records]
        own = compacting.sizes(base.writer.connection, layout_of(settings).database).segments
        assert own == sum(number[1] for number in numbers) > 2
