"""The doctor's checks in their three states, and which of them decide the exit status (S0-52, S1-44)."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.discovery import locate
from app.doctor import diagnose, exit_status
from app.doctor_database import WAL_ALARM_BYTES
from app.doctor_store import LEAST_FREE_BYTES
from app.wiring import writable_base
from domain.checks import CheckResult, CheckState
from domain.errors import QueueError, StorageError
from domain.settings import QueueSettings, RootSettings, Settings
from scheduler.queue.address import QueueAddress
from scheduler.queue.embedded import EmbeddedValkey
from scheduler.queue.probe import QueueFacts, probe
from store.engine import Engine
from store.lock import WriteLock
from tests.support import drifts
from tests.support.bases import build_base, layout_of, settings_of
from tests.support.scratch import scratch_directory

SOUND_QUEUE = QueueFacts("valkey 9.0.0", "noeviction", True, 0.01)


@pytest.fixture
def base() -> Iterator[Settings]:
    with scratch_directory() as path:
        yield build_base(path)


def by_name(results: tuple[CheckResult, ...]) -> dict[str, CheckResult]:
    named = {result.name: result for result in results}
    assert len(named) == len(results)
    for result in results:
        assert result.state is not CheckState.FAIL or (result.detail and result.hint), result
        assert result.state is not CheckState.NOT_RUN or result.detail, result
    return named


def states(results: tuple[CheckResult, ...], state: CheckState) -> set[str]:
    return {name for name, result in by_name(results).items() if result.state is state}


def listing(home: Path) -> dict[str, tuple[int, int, int]]:
    kept = {path.name: path.lstat() for path in home.iterdir() if not path.name.endswith(("-wal", "-shm"))}
    return {name: (seen.st_mode, seen.st_size, seen.st_mtime_ns) for name, seen in kept.items()}


def test_a_sound_base_passes_and_nothing_is_changed(base: Settings) -> None:
    before = listing(base.home)
    results = diagnose(base)
    assert states(results, CheckState.FAIL) <= {"extensions"}
    assert states(results, CheckState.NOT_RUN) <= {"file_system"}
    assert exit_status(results) == 0
    assert {"root:docs", "last_run", "queue", "journal", "free_disk", "lock"} <= set(by_name(results))
    assert "5 documents" in by_name(results)["index_searchable"].detail
    assert listing(base.home) == before


def test_nothing_is_there(tmp_path: Path) -> None:
    located = locate(tmp_path, config=None, environ={})
    settings = settings_of(tmp_path / "nowhere")
    results = diagnose(settings, located)
    assert by_name(results)["store_present"].state is CheckState.FAIL
    assert "default place" in by_name(results)["store_present"].detail
    assert "knowledge index" in by_name(results)["store_present"].hint
    assert {"lock", "index_searchable", "format", "roots", "last_run"} <= states(results, CheckState.NOT_RUN)
    assert exit_status(results) == 5
    assert not settings.home.exists()


def test_open_modes_are_found_and_not_fatal(base: Settings) -> None:
    layout_of(base).database.chmod(0o644)
    results = diagnose(base)
    assert "knowledge.db" in by_name(results)["store_private"].detail
    assert exit_status(results) == 0


@pytest.mark.parametrize("name", ["knowledge.db", "knowledge.db-wal", "state.db", "knowledge.lock"])
def test_a_link_is_fatal_and_nothing_is_opened(base: Settings, name: str) -> None:
    (base.home / name).unlink(missing_ok=True)
    (base.home / name).symlink_to(base.home.parent / "elsewhere")
    results = diagnose(base)
    assert by_name(results)["store_links"].state is CheckState.FAIL
    assert {"format", "journal", "index_searchable"} <= states(results, CheckState.NOT_RUN)
    assert exit_status(results) == 5


def test_the_holder_of_the_lock_is_named(base: Settings) -> None:
    with WriteLock(layout_of(base).lock, purpose="knowledge index"):
        results = diagnose(base)
    assert by_name(results)["lock"].state is CheckState.PASS
    assert f"process {os.getpid()}" in by_name(results)["lock"].detail
    assert exit_status(results) == 0


def test_the_format(base: Settings) -> None:
    connection = drifts.open_plain(layout_of(base).database)
    connection.execute("UPDATE meta SET value = '7' WHERE key = 'format_version'")
    connection.close()
    results = diagnose(base)
    assert by_name(results)["format"].state is CheckState.FAIL
    assert "upgrade" in by_name(results)["format"].hint
    assert {"journal", "index_searchable"} <= states(results, CheckState.NOT_RUN)
    assert exit_status(results) == 5


def test_full_text_that_does_not_answer(base: Settings) -> None:
    drifts.apply_drift(layout_of(base).database, drifts.lost_full_text_structure)
    results = diagnose(base)
    assert by_name(results)["index_searchable"].state is CheckState.FAIL
    assert exit_status(results) == 5


def test_no_database_and_no_state(base: Settings) -> None:
    layout_of(base).database.write_bytes(b"no database " * 1000)
    layout_of(base).state.write_bytes(b"no database " * 1000)
    results = diagnose(base)
    assert {"state", "format"} <= states(results, CheckState.FAIL)
    assert exit_status(results) == 5


def test_a_journal_that_has_grown(base: Settings) -> None:
    with writable_base(base, "test"):
        wal = layout_of(base).database.with_name("knowledge.db-wal")
        os.truncate(wal, WAL_ALARM_BYTES + 1)  # zeroes behind its end say nothing to SQLite
        results = diagnose(base)
    assert by_name(results)["journal"].state is CheckState.FAIL
    assert exit_status(results) == 0


def test_little_room(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.files.free_bytes", lambda directory: LEAST_FREE_BYTES - 1)
    results = diagnose(base)
    assert by_name(results)["free_disk"].state is CheckState.FAIL
    assert exit_status(results) == 0


@pytest.mark.parametrize(("kind", "state"), [("nfs4", "fail"), ("", "not_run"), ("ext4", "pass")])
def test_the_file_system(base: Settings, monkeypatch: pytest.MonkeyPatch, kind: str, state: str) -> None:
    monkeypatch.setattr("app.doctor_store.file_system_kind", lambda path: kind)
    results = diagnose(base)
    assert by_name(results)["file_system"].state.value == state
    assert exit_status(results) == 0


def test_a_root_that_is_gone_is_fatal(base: Settings) -> None:
    shutil.rmtree(base.home.parent / "docs")
    results = diagnose(base)
    assert "not there" in by_name(results)["root:docs"].detail
    assert "knowledge rm --root docs" in by_name(results)["root:docs"].hint
    assert exit_status(results) == 5


def test_a_configured_root_is_looked_at_once(base: Settings) -> None:
    docs, file = base.home.parent / "docs", base.home.parent / "file"
    file.write_bytes(b"x")
    configured = settings_of(base.home, roots=(RootSettings(docs), RootSettings(file, name="odd")))
    results = by_name(diagnose(configured))
    assert results["root:docs"].state is CheckState.PASS
    assert "not a folder" in results["root:odd"].detail


def test_a_run_that_did_not_end_well_is_said(base: Settings) -> None:
    with writable_base(base, "test") as held:
        run = held.state.runs(1)[0]
        held.state.end_run(run.id, "partial", {}, "removals_held")
    results = diagnose(base)
    assert "removals_held" in by_name(results)["last_run"].detail
    assert exit_status(results) == 0


def test_sqlite_that_lacks_something(base: Settings) -> None:
    results = diagnose(base, engine=lambda: Engine("sqlite3", "3.40.0", False, False))
    assert {"full_text_compiled", "extensions"} <= states(results, CheckState.FAIL)
    assert exit_status(results) == 5

    def too_old() -> Engine:
        raise StorageError("SQLite 3.8.0 is too old", hint="install the pysqlite3 package")

    assert by_name(diagnose(base, engine=too_old))["sqlite"].state is CheckState.FAIL
    only_words = diagnose(base, engine=lambda: Engine("sqlite3", "3.46.0", True, False))
    assert exit_status(only_words) == 0


def with_queue(settings: Settings, url: str = "redis://user:hunter2@queue:6379/0") -> Settings:
    return settings_of(settings.home, queue=QueueSettings(url=url))


@pytest.mark.parametrize(
    ("facts", "failing", "status"),
    [
        (SOUND_QUEUE, set(), 0),
        (QueueFacts("redis 7.2.4", "noeviction", True, -1.9), set(), 0),
        (QueueFacts("redis 7.2.4", "noeviction", False, 0.0), {"queue_append_only"}, 0),
        (QueueFacts("redis 7.2.4", "allkeys-lru", True, 0.0), {"queue_memory"}, 5),
        (QueueFacts("redis 7.2.4", "", True, 0.0), {"queue_memory"}, 5),
        (QueueFacts("redis 7.2.4", "noeviction", True, 3600.0), {"queue_clock"}, 0),
        (QueueFacts("redis 7.2.4", "noeviction", True, -3.0), {"queue_clock"}, 0),
    ],
)
def test_a_queue_that_is_configured(base: Settings, facts: QueueFacts, failing: set[str], status: int) -> None:
    results = diagnose(with_queue(base), probe_queue=lambda url: facts)
    assert states(results, CheckState.FAIL) - {"extensions"} == failing
    assert exit_status(results) == status
    assert "hunter2" not in repr(results)
    assert facts.server in by_name(results)["queue"].detail


def test_a_queue_that_does_not_answer(base: Settings) -> None:
    def silent(url: str) -> QueueFacts:
        raise QueueError("the queue at redis://queue:6379/0 does not answer", hint="start it")

    results = diagnose(with_queue(base), probe_queue=silent)
    assert by_name(results)["queue"].state is CheckState.FAIL
    assert states(results, CheckState.NOT_RUN) - {"file_system"} == {
        "queue_append_only", "queue_memory", "queue_clock",
    }  # fmt: skip
    assert exit_status(results) == 5


def test_a_queue_address_that_cannot_be_read(base: Settings) -> None:
    results = diagnose(with_queue(base, "http://user:hunter2@x"))
    assert by_name(results)["queue"].state is CheckState.FAIL
    assert "hunter2" not in repr(results)


def test_no_server_to_start(base: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise QueueError("there is no Valkey or Redis for this platform", hint="install valkey-server")

    monkeypatch.setattr("scheduler.queue.embedded.server_program", none)
    assert by_name(diagnose(base))["queue"].state is CheckState.FAIL


@pytest.mark.redis
@pytest.mark.skipif(sys.platform == "win32", reason="there is no bundled Valkey for Windows")
def test_the_probe_asks_a_real_server() -> None:
    server = EmbeddedValkey()
    address = server.start()
    try:
        facts = probe(address)
        assert facts.server.startswith(("valkey ", "redis "))
        assert facts.memory_policy == "noeviction"
        assert not facts.has_append_only_file
        assert abs(facts.clock_ahead_s) < 2
        assert probe(address, clock=lambda: 1000.0).clock_ahead_s > 1_000_000
    finally:
        server.stop()
    with pytest.raises(QueueError):
        probe(address)
    with pytest.raises(QueueError):
        probe(QueueAddress(host="127.0.0.1", port=1))
