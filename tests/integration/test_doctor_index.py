"""What the doctor says of knowledge.db itself: its log, who reads it, restores, and runs that it does not know."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.backing_up import back_up, restore
from app.consistency import absence_of, is_blank_under_runs, is_older_than_recorded, standing_of, told_consistently
from app.doctor import diagnose, exit_status
from app.doctor_database import WAL_ALARM_BYTES, check_log
from app.maintenance import reset, verify
from app.wiring import readable_base, writable_base
from domain.checks import CheckResult, CheckState
from domain.errors import IntegrityError
from domain.settings import Settings
from domain.status import Absence, SearchStatus, Standing
from retrieval.answer import SearchRequest
from retrieval.search import search
from store.connection import open_reader
from store.lock import WriteLock
from store.log_state import LogFrames, log_frames, reading_processes
from store.port import StoreIdentity
from store.run_port import RunRecord
from store.state_port import RootRecord
from tests.support import drifts
from tests.support.bases import index_into, layout_of, settings_of, write_files

PROJECT = Path(__file__).resolve().parents[2]
HAS_LOCK_TABLE = Path("/proc/locks").exists()


def seen(settings: Settings, name: str) -> CheckResult:
    """The check of this name; a failed one has a hint, one that was not run a reason."""
    result = next(result for result in diagnose(settings) if result.name == name)
    assert result.state is not CheckState.FAIL or (result.detail and result.hint)
    assert result.state is not CheckState.NOT_RUN or result.detail
    return result


READER = """
import sys
sys.path.insert(0, {project!r})
from pathlib import Path
from store.connection import open_reader
connection = open_reader(Path({path!r}))
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM documents").fetchone()
print("reads", flush=True)
sys.stdin.read()
connection.close()
"""


@contextmanager
def reading(database: Path) -> Iterator[int]:
    """Another process with a read transaction; its id."""
    code = READER.format(project=str(PROJECT), path=str(database))
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"reads\n"
        yield child.pid
    finally:
        child.communicate(timeout=30)
    assert child.returncode == 0


def test_the_log_and_its_readers(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 11, fault 24: frames in the log against those folded in; the process that keeps them there."""
    assert seen(base, "checkpoint").state is CheckState.PASS
    if HAS_LOCK_TABLE:
        assert "no other process" in seen(base, "readers").detail
    root = base.home.parent / "docs"
    write_files(root, {"x.md": "# X\n\n" + "words and more " * 3000})
    monkeypatch.setattr("app.doctor_database.WAL_ALARM_BYTES", 8192 * 3)
    with writable_base(base, "test") as held, reading(layout_of(base).database) as pid:
        index_into(held, base, root, "docs", ["x.md"])
        folded = held.writer.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        assert folded[0] == 0
        assert folded[1] > folded[2] + 3
        results = diagnose(base)
        by_name = {result.name: result for result in results}
        assert by_name["checkpoint"].state is CheckState.FAIL
        assert f"{folded[2]} of {folded[1]} frames" in by_name["checkpoint"].detail
        assert "knowledge compact" in by_name["checkpoint"].hint
        if HAS_LOCK_TABLE:
            assert f"process {pid}" in by_name["checkpoint"].hint
            assert f"process {pid}" in by_name["readers"].detail
            assert str(os.getpid()) not in by_name["readers"].detail
        assert exit_status(results) == 0


def test_looking_at_the_log_folds_nothing_in(base: Settings) -> None:
    root = base.home.parent / "docs"
    write_files(root, {"x.md": "# X\n\nwords\n"})
    with writable_base(base, "test") as held:
        index_into(held, base, root, "docs", ["x.md"])
        reader = open_reader(layout_of(base).database)
        try:
            first = log_frames(reader)
            assert first is not None
            assert first.lag > 0
            assert log_frames(reader) == first
        finally:
            reader.close()


def test_an_older_sqlite_does_not_say(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take the word for an order to write."""
    monkeypatch.setattr("store.driver.sqlite_version_info", (3, 46, 0))
    assert seen(base, "checkpoint").state is CheckState.NOT_RUN


@pytest.mark.parametrize(
    ("frames", "state"),
    [
        (LogFrames(0, 0), CheckState.PASS),
        (LogFrames(10**6, 10**6), CheckState.PASS),
        (LogFrames(10**6, 10), CheckState.FAIL),
        (None, CheckState.NOT_RUN),
    ],
)
def test_the_states_of_the_checkpoint(frames: LogFrames | None, state: CheckState) -> None:
    result = check_log(frames, 8192, None)
    assert (result.state, result.is_fatal and state is CheckState.FAIL) == (state, False)
    assert WAL_ALARM_BYTES < 8192 * 10**6


def test_a_system_that_does_not_tell_who_reads(base: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table, or one in which not even the own lock is to be seen: nothing is claimed."""
    table = tmp_path / "locks"
    database = layout_of(base).database
    reader = open_reader(database)
    try:
        reader.execute("SELECT count(*) FROM documents").fetchone()
        assert reading_processes(database, table) is None
        table.write_text("1: POSIX  ADVISORY  READ 1 fe:00:1 128 128\n2: FLOCK  ADVISORY  WRITE 9 fe:00:2 0 EOF\n")
        assert reading_processes(database, table) is None
        status = database.with_name("knowledge.db-shm").stat()
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        own = f"POSIX  ADVISORY  READ {os.getpid()} {place} 128 128\n"
        others = f"2: POSIX  ADVISORY  READ 77 {place} 124 124\n3: POSIX  ADVISORY  READ 0 {place} 123 123\n"
        idle = f"4: POSIX  ADVISORY  READ 88 {place} 128 128\n5: POSIX  ADVISORY  WRITE 99 {place} 120 120\n"
        table.write_text(f"1: {own}{others}{idle}4: -> POSIX  ADVISORY  READ 66 {place} 124 124\n")
        assert reading_processes(database, table) == (0, 77)
    finally:
        reader.close()
    monkeypatch.setattr("app.doctor_database.reading_processes", lambda path: None)
    assert seen(base, "readers").state is CheckState.NOT_RUN


def full_run(settings: Settings) -> int:
    """A full run on record, as `index` leaves it."""
    with writable_base(settings, "test") as held:
        root = settings.home.parent / "docs"
        write_files(root, {"x.md": "# X\n\nwords\n"})
        generation = index_into(held, settings, root, "docs", ["x.md"])
        held.state.mark_full(["docs"], generation)
        held.state.end_run(held.state.runs(1)[0].id, "done", {"added": 1}, "")
    return generation


def searched(settings: Settings) -> SearchStatus:
    with readable_base(settings) as opened:
        with opened.store.snapshot() as snapshot:
            found = search(snapshot, SearchRequest("words"))
        return told_consistently(found, opened).status


def test_a_blank_index_under_runs_that_have_filled_it(base: Settings) -> None:
    """S2-21: not an ordinary empty answer; a reset and a first run are none of it."""
    full_run(base)
    assert seen(base, "index_consistent").state is CheckState.PASS
    assert searched(base) is SearchStatus.OK
    layout_of(base).database.unlink()
    with writable_base(base, "test"):
        pass  # makes a blank one
    blank = seen(base, "index_consistent")
    assert (blank.state, blank.is_fatal) == (CheckState.FAIL, True)
    assert "knowledge index" in blank.hint
    assert exit_status(diagnose(base)) == 5
    assert searched(base) is SearchStatus.INDEX_INCONSISTENT
    full_run(base)
    assert seen(base, "index_consistent").state is CheckState.PASS
    reset(base, force=True)
    assert seen(base, "index_consistent").state is CheckState.PASS
    assert searched(base) is SearchStatus.INDEX_INCOMPLETE


def test_an_older_copy_put_back_by_hand(base: Settings) -> None:
    """P32: what a plain copy of knowledge.db beside today's state.db is. It answers, and is told of."""
    old = layout_of(base).database.read_bytes()
    full_run(base)
    for path in base.home.glob("knowledge.db*"):
        path.unlink()
    layout_of(base).database.write_bytes(old)
    older = seen(base, "index_consistent")
    assert (older.state, older.is_fatal) == (CheckState.FAIL, False)
    assert "generation 1" in older.detail
    assert searched(base) is SearchStatus.INDEX_OUTDATED
    layout_of(base).state.write_bytes(b"no database " * 1000)
    assert seen(base, "index_consistent").state is CheckState.NOT_RUN


def test_an_answer_from_before_a_run_ended_is_no_older_copy(base: Settings) -> None:
    """A suspicion that comes of the order in which both files were read is looked into before it is told."""
    full_run(base)
    with readable_base(base) as opened:
        with opened.store.snapshot() as snapshot:
            found = search(snapshot, SearchRequest("words"))
        full_run(base)  # a later generation, in both files
        assert is_older_than_recorded(found.identity.generation, opened.state.roots())
        assert told_consistently(found, opened).status is SearchStatus.OK
        assert standing_of(opened) is Standing.COMPLETE


def test_why_there_is_no_index(tmp_path: Path, base: Settings) -> None:
    assert absence_of(settings_of(tmp_path / "nowhere")) is Absence.NEVER_BUILT
    full_run(base)
    layout = layout_of(base)
    kept = layout.state.read_bytes()
    for path in base.home.glob("state.db*"):
        path.unlink()
    assert absence_of(base) is Absence.RECORD_LOST
    layout.state.write_bytes(kept)
    for path in base.home.glob("knowledge.db*"):
        path.unlink()
    assert absence_of(base) is Absence.LOST
    layout.database.touch()
    assert absence_of(base) is Absence.LOST
    layout.state.write_bytes(b"no database " * 1000)
    assert absence_of(base) is Absence.NEVER_BUILT
    began = settings_of(tmp_path / "began")
    with writable_base(began, "test"):
        pass
    layout_of(began).database.write_bytes(b"")
    assert absence_of(began) is Absence.CUT_SHORT


def test_without_state_db_nothing_is_well(base: Settings) -> None:
    """knowledge.db alone answers nothing: the doctor and verify do not call it sound."""
    for path in base.home.glob("state.db*"):
        path.unlink()
    assert seen(base, "state").state is CheckState.FAIL
    assert exit_status(diagnose(base)) == 5
    assert verify(base, deep=False).exit_status == 13


def test_what_mends_a_damaged_record(base: Settings) -> None:
    """What the hint says: a reset keeps state.db, so a damaged one has to be out of its way."""
    layout = layout_of(base)
    layout.state.write_bytes(b"no database " * 1000)
    assert "move it away" in seen(base, "state").hint
    assert seen(base, "last_run").state is CheckState.NOT_RUN
    with pytest.raises(IntegrityError, match=r"state\.db is damaged"):
        reset(base, force=True)
    layout.state.rename(layout.state.with_suffix(".away"))
    reset(base, force=True)
    full_run(base)
    assert searched(base) is SearchStatus.OK


def run_of(kind: str, **counts: int) -> RunRecord:
    return RunRecord(1, 1, kind, "cli", (), "done", 1, 2, counts)


@pytest.mark.parametrize(
    ("runs", "is_blank"),
    [
        ([], False),
        ([run_of("index")], False),
        ([run_of("index", skipped=3, failed=1)], False),
        ([run_of("index", added=3)], True),
        ([run_of("index", failed=1), run_of("restore"), run_of("index", unchanged=3)], True),
        ([run_of("reset"), run_of("index", added=3)], False),
        ([run_of("rm"), run_of("index", added=3)], False),
        ([run_of("index", removed=3), run_of("index", added=3)], False),
    ],
)
def test_runs_that_have_filled_an_index(runs: list[RunRecord], is_blank: bool) -> None:
    identity = StoreIdentity("b", "u", 0, 1, "auto", None)
    assert is_blank_under_runs(identity, 0, runs) is is_blank
    assert not is_blank_under_runs(identity, 1, runs)
    assert not is_blank_under_runs(identity._replace(complete_ns=1), 0, runs)


def test_generations_on_record() -> None:
    roots = [RootRecord(f"r{generation}", "/r", (), generation) for generation in (3, 4)]
    assert [is_older_than_recorded(generation, roots) for generation in (3, 4, 5)] == [True, False, False]
    assert not is_older_than_recorded(0, [])


def test_the_states_of_a_restore(base: Settings, tmp_path: Path) -> None:
    layout = layout_of(base)
    assert seen(settings_of(tmp_path / "nowhere"), "restore").state is CheckState.NOT_RUN
    assert seen(base, "restore").state is CheckState.PASS
    layout.restore_staging.mkdir(mode=0o700)
    left = seen(base, "restore")
    assert (left.state, left.is_fatal) == (CheckState.FAIL, False)
    with WriteLock(layout.lock, purpose="knowledge restore"):
        assert seen(base, "restore").state is CheckState.NOT_RUN
    layout.restore_staging.rename(layout.restore_ready)
    results = diagnose(base)
    states = {result.name: result.state for result in results}
    assert states["restore"] is CheckState.FAIL
    assert states["format"] is CheckState.NOT_RUN  # of which pair?
    assert exit_status(results) == 5
    with readable_base(base):
        assert seen(base, "restore").state is CheckState.PASS


def test_folders_of_the_home(base: Settings) -> None:
    spool = layout_of(base).spool
    spool.mkdir(mode=0o700, exist_ok=True)
    spool.chmod(0o755)
    modes = seen(base, "store_private")
    assert (modes.state, modes.is_fatal) == (CheckState.FAIL, False)
    assert "spool" in modes.detail
    subprocess.run(modes.hint.split(), check=True)
    assert seen(base, "store_private").state is CheckState.PASS
    spool.rmdir()
    spool.symlink_to(base.home.parent)
    assert seen(base, "store_links").state is CheckState.FAIL
    assert exit_status(diagnose(base)) == 5


def test_a_journal_of_another_kind(base: Settings) -> None:
    connection = drifts.open_plain(layout_of(base).database)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    journal = seen(base, "journal")
    assert (journal.state, journal.is_fatal) == (CheckState.FAIL, True)


def test_a_restored_base_is_in_order(base: Settings, tmp_path: Path) -> None:
    full_run(base)
    back_up(base, tmp_path / "b.tar", force=False)
    full_run(base)
    restore(base, tmp_path / "b.tar", force=True)
    results = {result.name: result for result in diagnose(base)}
    assert results["index_consistent"].state is CheckState.PASS
    assert results["last_run"].detail.startswith("restore of ")
    assert results["format"].state is CheckState.PASS
