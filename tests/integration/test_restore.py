"""`restore`: one pair of databases in the place of another, whoever reads, and whatever comes between (P32, R25)."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app import backing_up
from app.backing_up import back_up, restore
from app.wiring import readable_base, writable_base
from domain.errors import (
    LockedError,
    RefusedError,
    StorageError,
    UnsafePlaceError,
)
from domain.settings import Settings
from store.connection import open_reader
from store.lock import WriteLock
from store.pending_restore import finish_restore
from store.port import Visibility
from tests.support import drifts
from tests.support.backups import elsewhere, listing
from tests.support.bases import (
    ALL_KEYS,
    assert_sound,
    build_base,
    index_into,
    keys_of,
    layout_of,
    write_files,
)

PROJECT = Path(__file__).resolve().parents[2]


def test_an_index_in_the_way(base: Settings, place: Path, out: Path) -> None:
    """Refused with what would go; the generation goes on from the highest that was ever given (R25)."""
    back_up(base, out / "b.tar", force=False)
    docs = place / "docs"
    write_files(docs, {"later.md": "# Later\n\nwords\n"})
    with writable_base(base, "test") as held:
        generations = [index_into(held, base, docs, "docs", ["later.md"]) for _ in range(4)]
    before = listing(base.home)
    with pytest.raises(RefusedError) as caught:
        restore(base, out / "b.tar", force=False)
    assert "6 documents and 12 chunks" in caught.value.message
    assert "its 5 documents" in caught.value.message
    assert "--force" in caught.value.hint
    assert listing(base.home) == before
    report = restore(base, out / "b.tar", force=True)
    assert report.was_replaced
    assert report.generation > generations[-1]
    assert keys_of(base) == ALL_KEYS
    with writable_base(base, "test") as held:
        assert index_into(held, base, docs, "docs", ["later.md"]) > report.generation
    assert_sound(base)


def test_a_reader_of_the_old_index_goes_on(base: Settings, out: Path) -> None:
    """Its files are replaced, not written over; it leaves the new log alone when it ends."""
    back_up(base, out / "b.tar", force=False)
    old = open_reader(layout_of(base).database)
    try:
        old.execute("BEGIN")
        assert old.execute("SELECT count(*) FROM documents").fetchone() == (5,)
        restore(base, out / "b.tar", force=True)
        with writable_base(base, "test") as held:
            held.writer.connection.execute("PRAGMA wal_autocheckpoint = 0")
            write_files(base.home.parent / "docs", {"new.md": "# New\n\nwords\n"})
            index_into(held, base, base.home.parent / "docs", "docs", ["new.md"])
            assert old.execute("SELECT count(*) FROM chunks").fetchone() == (11,)
            old.close()
            assert len(keys_of(base)) == 6
    finally:
        old.close()
    assert len(keys_of(base)) == 6
    assert_sound(base)


def test_a_damaged_index_is_replaced(base: Settings, out: Path) -> None:
    back_up(base, out / "b.tar", force=False)
    layout_of(base).database.write_bytes(b"no database " * 1000)
    layout_of(base).state.write_bytes(b"no database " * 1000)
    with pytest.raises(RefusedError, match="unknown number"):
        restore(base, out / "b.tar", force=False)
    restore(base, out / "b.tar", force=True)
    assert_sound(base)


@pytest.mark.parametrize("name", ["knowledge.db", "state.db"])
def test_another_programs_database_is_left_alone(base: Settings, out: Path, name: str) -> None:
    back_up(base, out / "b.tar", force=False)
    path = base.home / name
    path.unlink()
    connection = drifts.open_plain(path)
    connection.execute("CREATE TABLE recipes (name)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(RefusedError, match="another program"):
        restore(base, out / "b.tar", force=True)
    assert path.read_bytes() == before


def test_a_link_in_the_home_is_refused(base: Settings, place: Path, out: Path) -> None:
    back_up(base, out / "b.tar", force=False)
    target = place / "precious"
    target.write_bytes(b"precious")
    other = elsewhere(place)
    other.home.mkdir(parents=True)
    (other.home / "state.db").symlink_to(target)
    with pytest.raises(UnsafePlaceError):
        restore(other, out / "b.tar", force=True)
    assert target.read_bytes() == b"precious"


def test_a_writer_keeps_its_index(base: Settings, out: Path) -> None:
    back_up(base, out / "b.tar", force=False)
    before = listing(base.home)
    with (
        WriteLock(layout_of(base).lock, purpose="knowledge index"),
        pytest.raises(LockedError, match="`knowledge index`"),
    ):
        restore(base, out / "b.tar", force=True)
    assert listing(base.home) == before


def cut_short(settings: Settings, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that was killed between its decision and its last step."""

    def killed(layout: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(backing_up, "finish_restore", killed)
    with pytest.raises(KeyboardInterrupt):
        restore(settings, source, force=True)
    monkeypatch.undo()
    assert (settings.home / "restore.ready").is_dir()


def test_the_next_command_finishes_a_restore(
    base: Settings, place: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader does it as well as a writer, and one that cannot have the lock does not read the old pair."""
    back_up(base, out / "b.tar", force=False)
    other = build_base(place / "other", {"x.md": "# X\n\nother\n"})
    cut_short(other, out / "b.tar", monkeypatch)
    monkeypatch.setattr("store.pending_restore.WAIT_S", 0.0)
    with WriteLock(layout_of(other).lock, purpose="knowledge index"), pytest.raises(LockedError):
        keys_of(other)
    assert keys_of(other) == ALL_KEYS
    assert not list(other.home.glob("restore*"))
    again = build_base(place / "again", {"x.md": "# X\n\nother\n"})
    cut_short(again, out / "b.tar", monkeypatch)
    assert back_up(again, out / "c.tar", force=True).documents == len(ALL_KEYS)
    cut_short(again, out / "b.tar", monkeypatch)
    assert_sound(again)
    assert keys_of(again) == ALL_KEYS


def test_who_may_not_write_finishes_no_restore(
    base: Settings, place: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads neither pair, says what does the last step, and waits only where somebody is at it."""
    back_up(base, out / "b.tar", force=False)
    cut_short(base, out / "b.tar", monkeypatch)
    before = listing(base.home)
    with pytest.raises(StorageError, match="cut short") as caught, readable_base(base, finishes_restores=False):
        pytest.fail("it was opened")
    assert "`knowledge status`" in caught.value.hint
    assert listing(base.home) == before
    with WriteLock(layout_of(base).lock, purpose="knowledge restore"), ThreadPoolExecutor(1) as threads:
        count = threads.submit(documents_without_writing, base)
        with pytest.raises(TimeoutError):
            count.result(timeout=0.2)
        finish_restore(layout_of(base))
        assert count.result() == len(ALL_KEYS)
    cut_short(base, out / "b.tar", monkeypatch)
    monkeypatch.setattr("store.pending_restore.WAIT_S", 0.0)
    with WriteLock(layout_of(base).lock, purpose="knowledge restore"), pytest.raises(LockedError, match="restored"):
        documents_without_writing(base)


def documents_without_writing(settings: Settings) -> int:
    with readable_base(settings, finishes_restores=False) as base:
        return base.store.reader().counts("", visibility=Visibility.everything()).documents


READER = """
import sys, select
from pathlib import Path
sys.path.insert(0, {project!r})
from app.wiring import readable_base
from store.port import Visibility
from tests.support.bases import settings_of
settings, seen = settings_of(Path({home!r})), set()
print("reads", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    with readable_base(settings) as base:
        keys = [row.key for row in base.store.reader().documents("", visibility=Visibility.everything())]
        seen.add((base.state.base_id(), len(keys)))
print(len(seen), *sorted(count for _, count in seen))
"""


def test_a_reader_meets_one_pair(base: Settings, place: Path, out: Path) -> None:
    """While two bases take each other's place, no reader fails, and none sees one file of each."""
    other = build_base(place / "other", {"x.md": "# X\n\nother\n"})
    back_up(base, out / "five.tar", force=False)
    back_up(other, out / "one.tar", force=False)
    code = READER.format(project=str(PROJECT), home=str(base.home))
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/"
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"reads\n"
        for _ in range(6):
            restore(base, out / "one.tar", force=True)
            restore(base, out / "five.tar", force=True)
        assert child.poll() is None
    finally:
        told, errors = child.communicate(timeout=60)
    assert child.returncode == 0, errors.decode()
    assert told.split()[1:] in ([b"1"], [b"5"], [b"1", b"5"])


def test_a_link_where_a_restore_works_is_refused(base: Settings, place: Path, out: Path) -> None:
    back_up(base, out / "b.tar", force=False)
    (base.home / "restore.part").symlink_to(out)
    with pytest.raises((UnsafePlaceError, StorageError)):
        restore(base, out / "b.tar", force=True)
    assert [path.name for path in out.iterdir()] == ["b.tar"]
    assert keys_of(base) == ALL_KEYS
