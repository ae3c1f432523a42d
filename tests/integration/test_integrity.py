"""`verify` and an independent audit agree on every drift; rebuild and reset mend what they name (P13..P15)."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app import maintenance
from app.wiring import writable_base
from domain.checks import CheckState
from domain.errors import IntegrityError, LockedError
from domain.settings import Settings
from store import rebuilding
from store.lock import WriteLock
from tests.support import drifts
from tests.support.audit import audit
from tests.support.bases import TEXTS, assert_verify_names, build_base, identity_of, index_into, layout_of, settings_of
from tests.support.scratch import scratch_directory

Copy = Callable[[], Settings]


@pytest.fixture
def copy(template: Settings) -> Iterator[Copy]:
    with scratch_directory() as path:

        def make() -> Settings:
            shutil.copytree(template.home, path / "home")
            return settings_of(path / "home")

        yield make


def failed_names(report: maintenance.VerifyReport) -> set[str]:
    return {result.name for result in report.results if result.state is CheckState.FAIL}


def test_a_sound_store_passes_both(copy: Copy) -> None:
    settings = copy()
    report = maintenance.verify(settings, deep=True)
    assert [result.name for result in report.results if result.state is not CheckState.PASS] == []
    assert report.exit_status == 0
    assert audit(layout_of(settings).database) == []


@pytest.mark.parametrize("drift", drifts.EVERY_DRIFT, ids=lambda drift: drift.__name__)
def test_verify_and_the_audit_agree(copy: Copy, drift: drifts.Drift) -> None:
    settings = copy()
    path = layout_of(settings).database
    drifts.apply_drift(path, drift)
    shallow, deep = maintenance.verify(settings, deep=False), maintenance.verify(settings, deep=True)
    assert audit(path) != []
    assert deep.exit_status == IntegrityError.exit_status
    assert (shallow.exit_status == 0) == (audit(path, deep=False) == []) == (drift in drifts.ONLY_DEEP)
    for result in deep.results:
        if result.state is CheckState.FAIL:
            assert result.detail
            assert "knowledge rebuild" in result.hint or "knowledge reset --force" in result.hint


@pytest.mark.parametrize("drift", drifts.OF_FULL_TEXT, ids=lambda drift: drift.__name__)
def test_rebuild_mends_full_text(copy: Copy, drift: drifts.Drift) -> None:
    settings = copy()
    path = layout_of(settings).database
    drifts.apply_drift(path, drift)
    failed = [r for r in maintenance.verify(settings, deep=False).results if r.state is CheckState.FAIL]
    assert all("knowledge rebuild" in result.hint for result in failed)
    report = maintenance.rebuild(settings)
    assert report.chunks > 0
    assert maintenance.verify(settings, deep=True).exit_status == 0
    assert audit(path) == []


def test_rebuild_over_changed_content_does_not_hide_it(copy: Copy) -> None:
    settings = copy()
    drifts.apply_drift(layout_of(settings).database, drifts.changed_body)
    maintenance.rebuild(settings)
    report = maintenance.verify(settings, deep=False)
    assert failed_names(report) == {"text_hashes"}  # full text agrees with the wrong text by now
    assert audit(layout_of(settings).database) != []


def test_titles_of_any_kind_are_sound(tmp_path: Path) -> None:
    """A title with a NUL, one of a file's name, one longer than names may be, and none but in the frontmatter."""
    texts = {
        "nul.md": "# before\x00after\n\ntext\n",
        "no heading.md": "text alone\n",
        "two\nlines.md": "text alone\n",
        ".md": "text alone\n",
        "long.md": f"# {'long ' * 1500}\n\ntext\n",
        "front.md": "---\ntitle: ' In  front '\naliases: [other]\n---\ntext\n",
        "plain.txt": "text alone\n",
    }
    settings = build_base(tmp_path, texts)
    assert maintenance.verify(settings, deep=True).exit_status == 0
    assert audit(layout_of(settings).database) == []


def test_rebuild_counts_as_a_change(copy: Copy) -> None:
    settings = copy()
    before = identity_of(settings)
    maintenance.rebuild(settings)
    after = identity_of(settings)
    assert (after.store_uuid, after.commit_seq) == (before.store_uuid, before.commit_seq + 1)


@pytest.mark.parametrize("drift", drifts.EVERY_DRIFT, ids=lambda drift: drift.__name__)
def test_reset_mends_everything(copy: Copy, drift: drifts.Drift) -> None:
    settings = copy()
    path = layout_of(settings).database
    drifts.apply_drift(path, drift)
    maintenance.reset(settings, force=True)
    assert audit(path) == []
    assert maintenance.verify(settings, deep=True).exit_status == 0


@pytest.mark.parametrize(
    ("drift", "name", "table", "document"),
    [
        (drifts.missing_full_text_row, "full_text:chunks_fts", "chunks_fts", "docs/a.md"),
        (drifts.lost_sizes_of_a_row, "full_text:chunks_fts_exact", "chunks_fts_exact", "docs/a.md"),
        (drifts.sizes_under_another_number, "full_text:chunks_fts", "chunks_fts", "docs/a.md"),
        (drifts.changed_body, "text_hashes", "chunks", "docs/a.md"),
        (drifts.wrong_chunk_count, "chunk_counts", "documents", "docs/a.md"),
        (drifts.changed_tail, "documents_whole", "documents", "docs/a.md"),
        (drifts.mark_lost, "substring_marks", "chunks", "docs/sub/c.md"),
        (drifts.changed_title, "titles", "documents", "docs/a.md"),
        (drifts.changed_names, "titles", "documents", "docs/a.md"),
        (drifts.orphaned_chunks, "foreign_keys", "chunks", ""),
        (drifts.lost_identity, "identity", "meta", ""),
    ],
)
def test_the_table_and_the_document_are_named(
    copy: Copy, drift: drifts.Drift, name: str, table: str, document: str
) -> None:
    assert_verify_names(copy(), drift, name, table, document)


def test_what_needs_the_lock_is_not_run_beside_a_writer(copy: Copy) -> None:
    settings = copy()
    with WriteLock(layout_of(settings).lock, purpose="knowledge index"):
        report = maintenance.verify(settings, deep=True)
    left_out = {result.name for result in report.results if result.state is CheckState.NOT_RUN}
    assert left_out == {
        "file_structure",
        *(f"full_text:{table}" for table in ("chunks_fts", "chunks_fts_exact", "chunks_fts_tri")),
    }
    assert report.exit_status == LockedError.exit_status
    assert all(
        f"process {os.getpid()}" in result.detail for result in report.results if result.state is CheckState.NOT_RUN
    )


def test_a_failure_beside_a_writer_is_a_failure(copy: Copy) -> None:
    settings = copy()
    drifts.apply_drift(layout_of(settings).database, drifts.changed_tail)
    with WriteLock(layout_of(settings).lock, purpose="knowledge index"):
        assert maintenance.verify(settings, deep=True).exit_status == IntegrityError.exit_status


def test_not_built_is_not_run(tmp_path: Path) -> None:
    report = maintenance.verify(settings_of(tmp_path / "nowhere"), deep=False)
    assert [result.state for result in report.results] == [CheckState.NOT_RUN]
    assert report.exit_status == 10
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("setting", ["on", "off", "auto"])
def test_another_substring_index_rebuilds_its_table_alone(copy: Copy, setting: str) -> None:
    settings = copy()
    with writable_base(settings, "test") as base:
        connection, path = base.writer.connection, base.layout.database
        words = connection.execute("SELECT block FROM chunks_fts_data ORDER BY id").fetchall()
        changed = rebuilding.apply_substring_index(connection, path, setting)
        assert changed is (setting != "auto")
        assert rebuilding.apply_substring_index(connection, path, setting) is False
        assert connection.execute("SELECT block FROM chunks_fts_data ORDER BY id").fetchall() == words
        indexed = connection.execute("SELECT count(*) FROM chunks_fts_tri_docsize").fetchone()[0]
        chunks = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
    assert indexed == {"on": chunks, "off": 0, "auto": 2}[setting]
    assert identity_of(settings).substring_index == setting
    assert audit(layout_of(settings).database) == []
    with writable_base(settings, "test") as base:
        rebuilding.apply_substring_index(base.writer.connection, base.layout.database, "auto")
        assert base.writer.connection.execute("SELECT count(*) FROM chunks_fts_tri_docsize").fetchone() == (2,)
    assert audit(layout_of(settings).database) == []


def test_an_index_of_everything_is_marked_by_the_worker_as_by_the_rule(tmp_path: Path) -> None:
    settings = build_base(tmp_path, TEXTS, substring_index="on")
    assert maintenance.verify(settings, deep=True).exit_status == 0
    with writable_base(settings, "test") as base:
        index_into(base, settings, tmp_path / "docs", "docs", ["a.md"])
    assert maintenance.verify(settings, deep=True).exit_status == 0


def child_pointers(page: bytes | bytearray) -> list[int]:
    """Where the pointers to the children of an inner page of a table stand (https://sqlite.org/fileformat2.html)."""
    if page[0] != 5:
        return []
    cells = int.from_bytes(page[3:5], "big")
    return [8, *(int.from_bytes(page[12 + 2 * cell : 14 + 2 * cell], "big") for cell in range(cells))]


def test_a_page_that_two_tables_claim_is_found(place: Path) -> None:
    """Tables are looked at one by one: what goes across them is seen all the same."""
    settings = build_base(place, {f"n{n:04}.md": f"# N{n}\n\n" + f"words of {n} " * 60 + "\n" for n in range(300)})
    path = layout_of(settings).database
    connection = drifts.open_plain(path)
    try:
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0").fetchall())
    finally:
        connection.close()
    content = bytearray(path.read_bytes())
    starts = [(roots[table] - 1) * size for table in ("documents", "chunks")]
    own, other = ([start + pointer for pointer in child_pointers(content[start : start + size])] for start in starts)
    assert own
    assert other
    content[own[-1] : own[-1] + 4] = content[other[-1] : other[-1] + 4]
    path.write_bytes(content)
    report = maintenance.verify(settings, deep=False)
    structure = next(result for result in report.results if result.name == "file_structure")
    assert structure.state is CheckState.FAIL
    assert "documents" in structure.detail
    assert "knowledge reset" in structure.hint


def test_damage_of_the_free_list_is_found(place: Path) -> None:
    settings = build_base(place, {f"n{n}.md": f"# N{n}\n\n" + f"words of {n} " * 2000 + "\n" for n in range(9)})
    maintenance.remove_paths(settings, place, ["docs/n1.md", "docs/n2.md", "docs/n3.md"])
    path = layout_of(settings).database
    content = bytearray(path.read_bytes())
    assert int.from_bytes(content[36:40], "big") > 0  # pages on the list
    content[36:40] = (1).to_bytes(4, "big")
    path.write_bytes(content)
    report = maintenance.verify(settings, deep=False)
    assert failed_names(report) == {"file_structure"}


def test_a_damaged_index_is_found(copy: Copy) -> None:
    """An index that lacks a row: its definition is changed under it, as a crash of other software might."""
    settings = copy()

    def drift(connection: object) -> None:
        execute = connection.execute  # type: ignore[attr-defined]
        sql = execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_by_document'").fetchone()[0]
        execute("PRAGMA writable_schema = ON")
        execute("UPDATE sqlite_schema SET sql = sql || ' WHERE id <> 2' WHERE name = 'chunks_by_document'")
        execute("PRAGMA writable_schema = RESET")
        execute("REINDEX chunks_by_document")
        execute("PRAGMA writable_schema = ON")
        execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'chunks_by_document'", (sql,))
        execute("PRAGMA writable_schema = RESET")

    drifts.apply_drift(layout_of(settings).database, drift)
    report = maintenance.verify(settings, deep=False)
    assert "file_structure" in failed_names(report)


def test_what_breaks_off_one_half_breaks_off_the_other(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two halves run beside each other; neither goes on alone, and nothing stays open."""

    def break_off(*_: object) -> None:
        raise KeyboardInterrupt

    settings = copy()
    with monkeypatch.context() as patched:
        patched.setattr("store.integrity.check_texts", break_off)
        with pytest.raises(KeyboardInterrupt):
            maintenance.verify(settings, deep=True)
    assert maintenance.verify(settings, deep=True).exit_status == 0


@pytest.mark.parametrize("drift", drifts.OF_FULL_TEXT, ids=lambda drift: drift.__name__)
def test_a_large_store_is_checked_without_a_copy(
    copy: Copy, drift: drifts.Drift, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same results, whether a full-text table is checked in its place or in a copy."""
    settings = copy()
    drifts.apply_drift(layout_of(settings).database, drift)
    copied = maintenance.verify(settings, deep=False)
    monkeypatch.setattr("store.integrity.MAX_COPIED_OF_BYTES", 0)
    assert maintenance.verify(settings, deep=False).results == copied.results


def test_a_check_writes_nothing(copy: Copy) -> None:
    settings = copy()
    path = layout_of(settings).database
    before = path.read_bytes()
    maintenance.verify(settings, deep=True)
    assert path.read_bytes() == before
