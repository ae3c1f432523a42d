"""`verify` and the audit agree on every drift of the vector tables; rebuild mends them without embedding (P14, P15)."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from app import maintenance
from app.wiring import readable_base, writable_base
from domain.checks import CheckState
from domain.errors import FormatError, IntegrityError
from domain.settings import Settings
from store.lock import WriteLock
from store.vector_schema import VECTOR_OBJECTS
from tests.support import drifts
from tests.support.audit import audit
from tests.support.bases import assert_verify_names, build_base, layout_of, settings_of
from tests.support.scratch import scratch_directory
from tests.support.vector_stores import IDENTITY, OTHER, cover_stored, embed_base, pin, vector_of

Copy = Callable[[], Settings]
VECTOR_CHECKS = ("vectors_linked", "vector_states", "vector_texts", "vectors_sound", "vector_blocks")


@pytest.fixture(scope="module")
def template() -> Iterator[Settings]:
    """A base whose vectors answer, with another set half built beside them."""
    with scratch_directory() as path:
        settings = build_base(path)
        with writable_base(settings, "test") as base:
            embed_base(base.writer)
            pin(base.writer, OTHER)
        yield settings


@pytest.fixture
def copy(template: Settings) -> Iterator[Copy]:
    with scratch_directory() as path:

        def make() -> Settings:
            shutil.copytree(template.home, path / "home")
            return settings_of(path / "home")

        yield make


def failed_names(report: maintenance.VerifyReport) -> set[str]:
    return {result.name for result in report.results if result.state is CheckState.FAIL}


def problems(settings: Settings) -> list[str]:
    return audit(layout_of(settings).database, vector_of=vector_of)


def test_a_sound_store_with_vectors_passes_both(copy: Copy) -> None:
    settings = copy()
    report = maintenance.verify(settings, deep=True)
    assert [result.name for result in report.results if result.state is not CheckState.PASS] == []
    assert set(VECTOR_CHECKS) < {result.name for result in report.results}
    assert problems(settings) == []


def test_a_store_of_words_has_no_such_checks(copy: Copy) -> None:
    """S0-04."""
    settings = copy()
    maintenance.reset(settings, force=True)
    report = maintenance.verify(settings, deep=True)
    assert not set(VECTOR_CHECKS) & {result.name for result in report.results}


@pytest.mark.parametrize("drift", drifts.OF_VECTORS, ids=lambda drift: drift.__name__)
def test_verify_and_the_audit_agree(copy: Copy, drift: drifts.Drift) -> None:
    """P14, fault 32: swapped vectors among them."""
    settings = copy()
    drifts.apply_drift(layout_of(settings).database, drift)
    report = maintenance.verify(settings, deep=False)
    assert audit(layout_of(settings).database) != []
    assert report.exit_status == IntegrityError.exit_status
    for result in report.results:
        if result.state is CheckState.FAIL:
            assert result.table in result.detail or result.documents
            assert "knowledge rebuild" in result.hint


@pytest.mark.parametrize(
    ("drift", "name", "table", "document"),
    [
        (drifts.lost_link, "vectors_linked", "vector_links", "docs/a.md"),
        (drifts.claimed_ready, "vectors_linked", "vector_links", "docs/a.md"),
        (drifts.link_to_no_vector, "vectors_linked", "vector_links", "docs/a.md"),
        (drifts.swapped_links, "vector_texts", "vector_links", "docs/a.md"),
        (drifts.not_a_number, "vectors_sound", "embeddings", "docs/a.md"),
        (drifts.cut_vector, "vectors_sound", "embeddings", "docs/a.md"),
        (drifts.swapped_vectors, "vector_blocks", "vector_blocks", "docs/a.md"),
        (drifts.lost_block, "vector_blocks", "vector_blocks", "docs/a.md"),
        (drifts.claimed_pending, "vector_states", "documents", "docs/a.md"),
        (drifts.claimed_nothing, "vector_states", "documents", "docs/a.md"),
    ],
)
def test_the_table_and_the_document_are_named(
    copy: Copy, drift: drifts.Drift, name: str, table: str, document: str
) -> None:
    assert_verify_names(copy(), drift, name, table, document)


@pytest.mark.parametrize("drift", drifts.OF_VECTORS, ids=lambda drift: drift.__name__)
def test_rebuild_and_the_next_run_mend_the_vectors(copy: Copy, drift: drifts.Drift) -> None:
    """P15: nothing is embedded by the rebuild; what it had to drop waits, and is made by the next run."""
    settings = copy()
    drifts.apply_drift(layout_of(settings).database, drift)
    maintenance.rebuild(settings)
    assert maintenance.verify(settings, deep=True).exit_status == 0
    assert problems(settings) == []
    with writable_base(settings, "test") as base:
        pending = base.writer.vector_status().pending_documents
        assert cover_stored(base.writer, pin(base.writer)) == pending
        assert base.writer.vector_status().pending_documents == 0
    assert problems(settings) == []


def test_rebuild_of_a_sound_store_drops_nothing(copy: Copy) -> None:
    settings = copy()
    with writable_base(settings, "test") as base:
        before = base.writer.connection.execute("SELECT * FROM vector_links").fetchall()
    maintenance.rebuild(settings)
    with writable_base(settings, "test") as base:
        assert base.writer.connection.execute("SELECT * FROM vector_links").fetchall() == before
        assert base.writer.vector_status().pending_documents == 0
    assert problems(settings) == []


@pytest.mark.parametrize("drift", drifts.OF_VECTORS, ids=lambda drift: drift.__name__)
def test_reset_leaves_a_store_without_vectors(copy: Copy, drift: drifts.Drift) -> None:
    """P13: every object of the vector tier goes."""
    settings = copy()
    drifts.apply_drift(layout_of(settings).database, drift)
    maintenance.reset(settings, force=True)
    with writable_base(settings, "test") as base:
        names = {row[0] for row in base.writer.connection.execute("SELECT name FROM sqlite_schema")}
        assert not names & VECTOR_OBJECTS
        assert base.writer.vector_status().target is None
    assert problems(settings) == []


def test_blocks_are_not_looked_at_beside_a_writer(copy: Copy) -> None:
    settings = copy()
    with WriteLock(layout_of(settings).lock, purpose="knowledge index"):
        report = maintenance.verify(settings, deep=False)
    left_out = {result.name for result in report.results if result.state is CheckState.NOT_RUN}
    assert left_out & set(VECTOR_CHECKS) == {"vector_blocks"}
    assert not failed_names(report)


@pytest.mark.parametrize("name", sorted(VECTOR_OBJECTS))
def test_a_part_of_the_vector_tables_is_another_shape(copy: Copy, name: str) -> None:
    """P12: all of them with our SQL, or none."""
    settings = copy()
    path = layout_of(settings).database
    connection = drifts.open_plain(path)
    (kind,) = connection.execute("SELECT type FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    connection.execute(f"DROP {kind} {name}")
    connection.close()
    for opened in (readable_base(settings), writable_base(settings, "test")):
        with pytest.raises(FormatError, match=f"missing .*{name}") as caught, opened:
            pass
        assert caught.value.exit_status == 12
    maintenance.reset(settings, force=True)
    assert problems(settings) == []


def test_a_changed_vector_table_is_another_shape(copy: Copy) -> None:
    settings = copy()
    path = layout_of(settings).database
    connection = drifts.open_plain(path)
    connection.execute("ALTER TABLE embeddings ADD COLUMN more TEXT")
    connection.close()
    with pytest.raises(FormatError, match=r"changed embeddings$"), readable_base(settings):
        pass


def test_one_table_of_a_vector_name_in_a_store_of_words_is_another_shape(copy: Copy) -> None:
    settings = copy()
    maintenance.reset(settings, force=True)
    connection = drifts.open_plain(layout_of(settings).database)
    connection.execute("CREATE TABLE embeddings (id INTEGER PRIMARY KEY)")
    connection.close()
    with pytest.raises(FormatError, match="missing documents_pending"), readable_base(settings):
        pass


def test_the_identity_of_a_base_is_read_as_it_was_pinned(copy: Copy) -> None:
    with readable_base(copy()) as base:
        status = base.store.reader().vector_status()
    assert status.active is not None
    assert status.building is not None
    assert (status.active.identity, status.building.identity) == (IDENTITY, OTHER)
    assert status.target == status.building
