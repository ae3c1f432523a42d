"""The formats of both databases are pinned: a changed object without a new version fails here (S2-61, S2-62)."""

import hashlib
import threading
from pathlib import Path

import aiosqlite
import pytest

from domain.errors import FormatError
from store import driver, format_gate, vector_schema
from store.connection import run_on_connection
from store.format_gate import CORE_OBJECTS, DROP_ORDER, FORMAT_VERSION, SCHEMA_FINGERPRINT
from store.state_schema import STEPS
from store.vector_schema import VECTOR_FINGERPRINT, VECTOR_OBJECTS

# of every step that was ever released, in order; a new step adds a line, an old line never changes
STEP_DIGESTS = (
    "e1f397c453a78d1c277c4b5207508f0d45174669105a048c0fb772de68d70781",
    "a7cb78cd87df91a1f3c42fd3859406ec8ef275d15f9ac58aa9b7ccbb43a31aa3",
    "19050e48d2db34fd54fb72383be9fb43e189022142e714708879df8f91438ee4",
)


@pytest.fixture
def connection() -> driver.Connection:
    connection = driver.connect(":memory:", uri=False, timeout_s=0.0)
    format_gate.create_schema(connection, base_id="b", substring_index="auto")
    return connection


def names_of(connection: driver.Connection) -> set[str]:
    """Objects of the schema without what SQLite and FTS5 make beside them."""
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    full_text = ("chunks_fts", "chunks_fts_exact", "chunks_fts_tri")
    shadows = {f"{table}_{part}" for table in full_text for part in ("data", "idx", "docsize", "config")}
    return {row[0] for row in rows} - shadows


def test_the_schema_is_the_one_of_the_format_version(connection: driver.Connection) -> None:
    assert FORMAT_VERSION == 2
    assert format_gate.fingerprint(connection) == SCHEMA_FINGERPRINT, (
        "schema.sql has changed: give FORMAT_VERSION a new number, then SCHEMA_FINGERPRINT this value"
    )
    connection.close()


def test_every_object_is_under_the_gate(connection: driver.Connection) -> None:
    assert names_of(connection) == set(CORE_OBJECTS)
    connection.close()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("meta", "value TEXT NOT NULL", "value TEXT"),
        ("documents", "root TEXT NOT NULL", "root TEXT"),
        ("documents", "CHECK (chunk_count >= 1)", ""),
        ("chunks", "REFERENCES documents (id)", ""),
        ("chunks_by_document", "(document, ordinal)", "(ordinal, document)"),
        ("chunks_tri_source", "in_tri = 1", "in_tri = 2"),
        ("chunks_fts", "porter unicode61", "unicode61"),
        ("chunks_fts_exact", "tokenize='unicode61'", "tokenize='unicode61', detail='column'"),
        ("chunks_fts_tri", "'trigram'", "'trigram case_sensitive 1'"),
        ("chunks_vocabulary", "'row'", "'col'"),
        ("chunks_stems", "'row'", "'col'"),
        ("tombstones", "observed_ns INTEGER NOT NULL", "observed_ns INTEGER"),
        ("skipped_files", "reason TEXT NOT NULL", "reason TEXT"),
    ],
)
def test_a_changed_object_without_a_new_version_is_refused_by_name(name: str, old: str, new: str) -> None:
    connection = driver.connect(":memory:", uri=False, timeout_s=0.0)
    for statement in format_gate.schema_statements():
        head = next(line for line in statement.splitlines() if line.startswith("CREATE"))
        is_meant = name in head.split(" USING ")[0].split(" ON ")[0].split()
        connection.execute(statement.replace(old, new, 1) if is_meant else statement)
    format_gate.pin(connection, base_id="b", substring_index="auto", generation=0)
    with pytest.raises(FormatError, match=f"changed {name}$"):
        format_gate.check(connection, Path("x"), base_id="b")
    connection.close()


@pytest.mark.parametrize("name", [name for name in CORE_OBJECTS if name != "meta"])
def test_a_missing_object_is_refused_by_name(connection: driver.Connection, name: str) -> None:
    kind = connection.execute("SELECT type FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
    connection.execute(f"DROP {kind} {name}")
    with pytest.raises(FormatError, match=name):
        format_gate.check(connection, Path("x"), base_id="b")
    connection.close()


def test_the_vector_tables_are_those_of_the_format_version(connection: driver.Connection) -> None:
    """S0-04: they come whole, and the core objects stay as they are."""
    vector_schema.create_vector_schema(connection)
    assert names_of(connection) == {*CORE_OBJECTS, *VECTOR_OBJECTS}
    objects = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall())
    found = vector_schema.vector_fingerprint(vector_schema.vector_objects(objects))
    assert found == VECTOR_FINGERPRINT, (
        "vectors.sql has changed: give FORMAT_VERSION a new number, then VECTOR_FINGERPRINT this value"
    )
    assert format_gate.fingerprint(connection) == SCHEMA_FINGERPRINT
    format_gate.check(connection, Path("x"), base_id="b")
    connection.close()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("vector_identities", "'retired'))", "'retired', 'other'))"),
        ("vector_identities_by_state", " WHERE state <> 'retired'", ""),
        ("embeddings", "CHECK (parts >= 1)", ""),
        ("embeddings_by_text", "(identity, sent_hash)", "(sent_hash, identity)"),
        ("embeddings_from_parts", "parts > 1", "parts > 2"),
        ("vector_links", "REFERENCES chunks (id)", ""),
        ("vector_links_by_embedding", "(embedding)", "(embedding, chunk)"),
        ("vector_blocks", "CHECK (count >= 1)", ""),
        ("documents_pending", "(chunk_count)", "(id)"),
    ],
)
def test_a_changed_vector_object_without_a_new_version_is_refused_by_name(
    connection: driver.Connection, name: str, old: str, new: str
) -> None:
    for statement in vector_schema.vector_statements():
        head = next(line for line in statement.splitlines() if line.startswith("CREATE"))
        is_meant = name in head.split(" ON ")[0].split()
        assert not is_meant or old in statement
        connection.execute(statement.replace(old, new, 1) if is_meant else statement)
    with pytest.raises(FormatError, match=f"changed {name}$"):
        format_gate.check(connection, Path("x"), base_id="b")
    connection.close()


def test_dropping_leaves_nothing_in_the_order_given(connection: driver.Connection) -> None:
    assert {name for _, name in DROP_ORDER} == set(CORE_OBJECTS) - {"chunks_by_document"}
    vector_schema.create_vector_schema(connection)
    format_gate.drop_schema(connection)
    assert format_gate.is_blank(connection)
    connection.close()


def test_the_steps_of_state_are_only_appended() -> None:
    digests = tuple(hashlib.sha256("\n;\n".join(step).encode()).hexdigest() for step in STEPS)
    assert digests[: len(STEP_DIGESTS)] == STEP_DIGESTS, "a step that was released has changed"
    assert len(digests) == len(STEP_DIGESTS), "a new step: add its digest"


async def test_aiosqlite_runs_a_whole_function_on_its_own_thread() -> None:
    """`_execute` is not documented; store.connection rests on just this of it."""
    made = driver.connect(":memory:", uri=False, timeout_s=0.0)
    connection = aiosqlite.Connection(lambda: made, 64)
    async with connection:
        threads: list[int] = []

        def work(number: int) -> int:
            threads.append(threading.get_ident())
            return number + 1

        def fail() -> None:
            raise FormatError("as it is")

        assert await run_on_connection(connection, work, 1) == 2
        assert await run_on_connection(connection, work, 2) == 3
        assert len(set(threads)) == 1
        assert threads[0] != threading.get_ident()
        with pytest.raises(FormatError, match="as it is"):
            await run_on_connection(connection, fail)
