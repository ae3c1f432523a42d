"""C-04, R25: whatever order the readings of one file arrive in, the newest of them is what the store says."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from domain.files import FileStat, Reason
from domain.layout import BaseLayout
from store import files
from store.documents import SqliteStoreWriter
from store.sqlite import open_store_writer
from store.write_port import SkipWrite, WriteGroup
from tests.support.audit import audit
from tests.support.stores import document_write

KEY = "docs/a.md"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[SqliteStoreWriter]:
    layout = BaseLayout(tmp_path / "home")
    files.make_home(layout)
    opened = open_store_writer(layout, base_id="b" * 32, substring_index="auto")
    yield opened
    opened.close()


def reading(observed_ns: int) -> WriteGroup:
    made = document_write(KEY, f"# Read\n\nat {observed_ns}\n", generation=1)
    return WriteGroup(documents=[msgspec.structs.replace(made, observed_ns=observed_ns, checked_ns=observed_ns)])


def skipping(observed_ns: int) -> WriteGroup:
    stat = FileStat(0, 0, 0, 0, 0)
    return WriteGroup(skips=[SkipWrite(KEY, "docs", Reason.EMPTY, stat, observed_ns, observed_ns, 1)])


def stored(writer: SqliteStoreWriter) -> tuple[int | None, int | None]:
    """The time of the stored reading and of the stored skip; None where there is none."""
    found = writer.connection.execute(
        "SELECT (SELECT observed_ns FROM documents), (SELECT checked_ns FROM skipped_files)"
    ).fetchone()
    return found[0], found[1]


def test_an_older_reading_does_not_bring_a_skipped_file_back(writer: SqliteStoreWriter) -> None:
    writer.apply(skipping(200))
    answer = writer.apply(reading(100)).results[0]
    assert answer.verdict == "stale"
    assert stored(writer) == (None, 200)
    assert writer.apply(reading(300)).results[0].verdict == "applied"
    assert stored(writer) == (300, None)


@pytest.mark.parametrize("order", list(itertools.permutations((100, 200, 300))))
def test_the_newest_reading_stands_in_every_order(writer: SqliteStoreWriter, order: tuple[int, ...]) -> None:
    for observed_ns in (*order, *order):
        writer.apply(reading(observed_ns))
    assert stored(writer) == (300, None)


def test_the_store_is_sound_after_all_that(writer: SqliteStoreWriter, tmp_path: Path) -> None:
    for group in (skipping(50), reading(100), skipping(40), reading(90), reading(300), reading(200)):
        writer.apply(group)
    assert audit(tmp_path / "home" / "knowledge.db", deep=True) == []


def test_becoming_complete_is_a_change_that_a_query_can_see(writer: SqliteStoreWriter) -> None:
    """R25: caches hang on (store_uuid, commit_seq), and an answer says whether the index is complete."""
    before = writer.identity()
    assert before.complete_ns is None
    writer.close_generation(1, complete=True)
    first = writer.identity()
    writer.close_generation(2, complete=True)
    assert first.commit_seq == before.commit_seq + 1
    assert writer.identity().commit_seq == first.commit_seq
    assert writer.identity().store_uuid == before.store_uuid
