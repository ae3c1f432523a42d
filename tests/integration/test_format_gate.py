"""The format gate refuses what is not a store of this format and base, and leaves it as it was (P12, T30)."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app import maintenance
from app.wiring import readable_base, writable_base
from domain.errors import (
    BaseMismatchError,
    FormatError,
    IntegrityError,
    KnowledgeError,
    NotBuiltError,
    RefusedError,
    UnsafePlaceError,
)
from domain.layout import sidecars
from domain.settings import Settings
from tests.support.bases import build_base, index_into, layout_of
from tests.support.drifts import open_plain
from tests.support.scratch import scratch_directory

Spoil = Callable[[Path], None]


def by_sql(*statements: str) -> Spoil:
    def spoil(path: Path) -> None:
        connection = open_plain(path)
        for statement in statements:
            connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.close()

    return spoil


def by_schema_edit(old: str, new: str) -> Spoil:
    return by_sql(
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_schema SET sql = replace(sql, '{old}', '{new}')",  # noqa: S608
        "PRAGMA writable_schema = RESET",
    )


def by_another_program_with_our_names(path: Path) -> None:
    path.unlink()
    connection = open_plain(path)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    for table in ("meta", "documents", "chunks"):
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, url TEXT)")
    connection.execute("CREATE VIEW latest AS SELECT * FROM documents")
    connection.close()


def another_programs_database(mode: str) -> Spoil:
    def spoil(path: Path) -> None:
        path.unlink()
        connection = open_plain(path)
        connection.execute(f"PRAGMA journal_mode = {mode}").fetchall()
        connection.execute("CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT)")
        connection.execute("INSERT INTO moz_places (url) VALUES ('https://example.org/')")
        connection.close()

    return spoil


def written_over(content: bytes) -> Spoil:
    def spoil(path: Path) -> None:
        path.write_bytes(content)

    return spoil


def cut_off(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


REFUSED: dict[str, tuple[Spoil, type[KnowledgeError], str]] = {
    "a newer format": (by_sql("UPDATE meta SET value = '3' WHERE key = 'format_version'"), FormatError, "upgrade"),
    "an older format": (by_sql("UPDATE meta SET value = '1' WHERE key = 'format_version'"), FormatError, "reset"),
    "no version": (by_sql("DELETE FROM meta WHERE key = 'format_version'"), FormatError, "reset"),
    "an emptied meta": (by_sql("DELETE FROM meta"), FormatError, "reset"),
    "no meta table": (by_sql("DROP TABLE meta"), FormatError, "reset"),
    "one more column": (by_sql("ALTER TABLE chunks ADD COLUMN extra TEXT"), FormatError, "reset"),
    "a column of another name": (by_sql("ALTER TABLE chunks RENAME COLUMN body TO text"), FormatError, "reset"),
    "a trigger": (
        by_sql("CREATE TRIGGER added AFTER DELETE ON chunks BEGIN SELECT 1; END"),
        FormatError,
        "not ours added",
    ),
    "a trigger on documents": (
        by_sql("CREATE TRIGGER t AFTER INSERT ON documents BEGIN DELETE FROM meta; END"),
        FormatError,
        "not ours t",
    ),
    "a foreign view": (by_sql("CREATE VIEW added AS SELECT 1"), FormatError, "not ours added"),
    "a foreign index": (by_sql("CREATE INDEX added ON chunks (body)"), FormatError, "not ours added"),
    "a missing index": (by_sql("DROP INDEX chunks_by_document"), FormatError, "missing chunks_by_document"),
    "a missing table": (by_sql("DROP TABLE tombstones"), FormatError, "missing tombstones"),
    "another tokenizer": (by_schema_edit("porter unicode61", "porter ascii"), FormatError, "changed chunks_fts"),
    "a view with another body": (by_schema_edit("in_tri = 1", "in_tri = 0"), FormatError, "changed chunks_tri_source"),
    "another program's, no WAL": (another_programs_database("DELETE"), FormatError, "move it away"),
    "another program's, in WAL mode": (another_programs_database("WAL"), FormatError, "moz_places"),
    "another program's, with our names": (by_another_program_with_our_names, FormatError, "another program"),
    "a lost row of meta": (by_sql("DELETE FROM meta WHERE key = 'commit_seq'"), IntegrityError, "commit_seq"),
    "a number that is none": (
        by_sql("UPDATE meta SET value = '4:' WHERE key = 'generation'"),
        IntegrityError,
        "generation",
    ),
    "a text file": (written_over(b"# Notes\n\nnot a database\n" * 300), IntegrityError, "reset"),
    "encrypted bytes": (written_over(hashlib.shake_256(b"x").digest(65536)), IntegrityError, "reset"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_refused_by_reader_and_writer_and_left_as_it_was(base: Settings, case: str) -> None:
    spoil, error, words = REFUSED[case]
    path = layout_of(base).database
    spoil(path)
    before = path.read_bytes()
    for opened in (readable_base(base), writable_base(base, "test")):
        with pytest.raises(error) as caught, opened:
            pass
        said = caught.value.message + caught.value.hint
        assert words in said
        assert caught.value.exit_status in (12, 13)
    assert path.read_bytes() == before
    assert not sidecars(path)[1].exists() or sidecars(path)[1].stat().st_size == 0


@pytest.mark.parametrize("case", [case for case in REFUSED if "another program" not in case])
def test_reset_mends_what_the_gate_refuses(base: Settings, case: str) -> None:
    REFUSED[case][0](layout_of(base).database)
    maintenance.reset(base, force=True)
    assert maintenance.verify(base, deep=True).exit_status == 0
    with readable_base(base) as opened:
        assert [root.name for root in opened.state.roots()] == ["docs"]


@pytest.mark.parametrize("case", [case for case in REFUSED if "another program" in case])
def test_reset_leaves_another_programs_database_alone(base: Settings, case: str) -> None:
    path = layout_of(base).database
    REFUSED[case][0](path)
    before = path.read_bytes()
    with pytest.raises(RefusedError, match="another program"):
        maintenance.reset(base, force=True)
    assert path.read_bytes() == before


def test_a_truncated_file_is_refused_or_answers(base: Settings) -> None:
    cut_off(layout_of(base).database)
    assert maintenance.verify(base, deep=True).exit_status == 13
    maintenance.reset(base, force=True)
    assert maintenance.verify(base, deep=True).exit_status == 0


def test_an_empty_file_is_an_index_that_was_not_made_yet(base: Settings) -> None:
    path = layout_of(base).database
    path.write_bytes(b"")
    with pytest.raises(NotBuiltError, match="empty"), readable_base(base):
        pass
    assert path.stat().st_size == 0
    with writable_base(base, "test") as opened:
        assert opened.writer.counts().documents == 0
    assert maintenance.verify(base, deep=True).exit_status == 0


def make_directory(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    target = path.parent.parent / "target"
    target.write_bytes(b"precious")
    path.symlink_to(target)


@pytest.mark.parametrize("make", [make_directory, make_pipe, make_link])
def test_no_regular_file_at_its_place(base: Settings, make: Spoil) -> None:
    path = layout_of(base).database
    path.unlink()
    make(path)
    for act in (_read, _write, _verify, _reset):
        with pytest.raises(UnsafePlaceError):
            act(base)
    target = path.parent.parent / "target"
    assert not target.exists() or target.read_bytes() == b"precious"


def _read(settings: Settings) -> Any:
    with readable_base(settings):
        pass


def _write(settings: Settings) -> Any:
    with writable_base(settings, "test"):
        pass


def _verify(settings: Settings) -> Any:
    maintenance.verify(settings, deep=False)


def _reset(settings: Settings) -> Any:
    maintenance.reset(settings, force=True)


def test_the_store_of_another_base_is_refused(base: Settings) -> None:
    with scratch_directory() as elsewhere:
        other = build_base(elsewhere)
        shutil.copy(layout_of(other).database, layout_of(base).database)
        for act in (_read, _write, _verify):
            with pytest.raises(BaseMismatchError) as caught:
                act(base)
            assert caught.value.exit_status == 12
        maintenance.reset(base, force=True)
        assert maintenance.verify(base, deep=True).exit_status == 0


def test_a_newer_state_is_refused(base: Settings) -> None:
    by_sql("PRAGMA user_version = 99")(layout_of(base).state)
    with pytest.raises(FormatError, match="newer"):
        _write(base)


def test_an_identity_that_is_lost_is_no_crash(base: Settings) -> None:
    by_sql("DELETE FROM meta WHERE key IN ('store_uuid', 'commit_seq')")(layout_of(base).database)
    report = maintenance.verify(base, deep=False)
    assert [result.name for result in report.results if result.state.value == "fail"] == ["identity"]


def test_the_log_of_another_store_beside_it_is_no_crash(base: Settings) -> None:
    """SQLite cannot tell whose WAL it finds: what it makes of it is refused, or it is right."""
    path = layout_of(base).database
    with scratch_directory() as elsewhere:
        other = build_base(elsewhere)
        with writable_base(other, "test") as held:
            index_into(held, other, elsewhere / "docs", "docs", ["a.md"])
            wal = sidecars(layout_of(other).database)[1].read_bytes()
    assert len(wal) > 0
    sidecars(path)[1].write_bytes(wal)
    try:
        assert maintenance.verify(base, deep=True).exit_status in (0, 13)
    except KnowledgeError as error:
        assert error.exit_status in (12, 13)
    maintenance.reset(base, force=True)
    assert maintenance.verify(base, deep=True).exit_status == 0
