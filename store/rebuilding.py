"""Making anew what knowledge.db derives: full text from its chunks (never automatic, S0-69, S0-70), or all of it.

Tables are dropped, not emptied: FTS5 cannot delete rows of an index that has drifted from its content, while DROP
works (S0-66, S0-67). Each function is one transaction: killed at any moment, the old state or the new one stands.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

from msgspec import Struct

from domain.errors import FormatError, IntegrityError, KnowledgeError, NotBuiltError
from store import driver, files, format_gate
from store.connection import immediate, open_reader, open_writer, translated
from store.format_gate import FULL_TEXT_OPTIONS, FULL_TEXT_TABLES
from store.full_text import insert_full_text
from store.integrity_texts import belongs_in_trigrams, pinned_setting
from store.meta import bump_commit_seq
from store.port import StoreCounts
from store.vector_rebuilding import rebuild_vectors

SUBSTRING_TABLE = "chunks_fts_tri"
VOCABULARIES = ("chunks_vocabulary", "chunks_stems")
Condition = Literal["absent", "ours", "foreign", "broken"]


class Rebuilt(Struct, frozen=True):
    """What a rebuild has put into full text, and how many vectors it has packed again."""

    chunks: int
    substring_chunks: int
    commit_seq: int
    vectors: int = 0


def rebuild(connection: driver.Connection, path: Path) -> Rebuilt:
    """Drop the full-text tables and fill them from the chunks that are stored, and bring the vector tables, where there
    are any, into line; nothing else is asked, and nothing is embedded.

    Raises IntegrityError where the file is damaged beyond full text, StorageError, DiskFullError.
    """
    with translated(path), immediate(connection):
        _drop((*VOCABULARIES, *FULL_TEXT_TABLES), connection)
        _mark_substring_chunks(connection, pinned_setting(connection))
        _create((*FULL_TEXT_TABLES, *VOCABULARIES), connection)
        first, last = _id_range(connection)
        insert_full_text(connection, first, last)
        return _rebuilt(connection, rebuild_vectors(connection))


def apply_substring_index(connection: driver.Connection, path: Path, setting: str) -> bool:
    """Pin another `substring_index` and rebuild the trigram table alone; False where it is pinned already (R1)."""
    with translated(path), immediate(connection):
        if pinned_setting(connection) == setting:
            return False
        _drop((SUBSTRING_TABLE,), connection)
        _mark_substring_chunks(connection, setting)
        _create((SUBSTRING_TABLE,), connection)
        connection.execute(
            f"INSERT INTO {SUBSTRING_TABLE} (rowid, body, heading_path, names)"  # noqa: S608
            " SELECT id, body, heading_path, names FROM chunks_tri_source ORDER BY id"
        )
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('substring_index', ?)", (setting,))
        bump_commit_seq(connection)
        return True


def recreate(connection: driver.Connection, path: Path, *, base_id: str, substring_index: str, generation: int) -> None:
    """Drop every table and make it again, empty, with a new store_uuid; the generation goes on (R25)."""
    with translated(path):
        with immediate(connection):
            format_gate.drop_schema(connection)
            format_gate.create_schema(
                connection, base_id=base_id, substring_index=substring_index, generation=generation
            )
        connection.execute("PRAGMA incremental_vacuum").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def replace_file(path: Path, *, base_id: str, substring_index: str, generation: int) -> None:
    """Remove a file that cannot be opened or emptied, with its sidecars, and make an empty store in its place.

    Killed in between there is no store, which the next index makes. The caller holds the lock, and no connection to
    the file is open in this process.
    """
    files.remove_database(path)
    connection = open_writer(path, synchronous="NORMAL")
    try:
        with translated(path), immediate(connection):
            format_gate.create_schema(
                connection, base_id=base_id, substring_index=substring_index, generation=generation
            )
        files.reassert_private(path)
    finally:
        connection.close()


def reset_store(path: Path, condition: Condition, *, base_id: str, substring_index: str, generation: int) -> bool:
    """Leave an empty store at `path`, whatever lies there; says whether the file had to be replaced.

    Raises StorageError, DiskFullError, UnsafePlaceError. The caller holds the lock.
    """
    if condition in ("ours", "absent"):
        try:
            connection = open_writer(path, synchronous="NORMAL")
            try:
                recreate(connection, path, base_id=base_id, substring_index=substring_index, generation=generation)
                files.reassert_private(path)
            finally:
                connection.close()
        except IntegrityError:  # damaged where even DROP cannot go
            pass
        else:
            return False
    replace_file(path, base_id=base_id, substring_index=substring_index, generation=generation)
    return True


def condition_of(path: Path) -> Condition:
    """What lies at a store's place, without changing it: a store of this format, another program's database, or
    something that only replacing mends. An empty file is ours.

    Raises UnsafePlaceError for a link or a directory, StorageError where it may not be read.
    """
    status = files.refuse_unsafe(path)
    if status is None:
        return "absent"
    if status.st_size == 0:
        return "ours"
    try:
        with closing(open_reader(path)) as connection:
            with translated(path):
                if format_gate.is_blank(connection):
                    return "ours"
                if format_gate.is_foreign(connection):
                    return "foreign"
            format_gate.check(connection, path, base_id=None)
    except NotBuiltError:  # its making was cut short
        return "ours"
    except (FormatError, IntegrityError):
        return "broken"
    return "ours"


def counts_or_none(path: Path) -> StoreCounts | None:
    """How much a store of any format holds, as far as it can still be read; None where it cannot."""
    try:
        connection = open_reader(path)
    except KnowledgeError:
        return None
    try:
        documents, chunks = connection.execute(
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks)"
        ).fetchone()
        return StoreCounts(documents, chunks, 0)
    except driver.Error:
        return None
    finally:
        connection.close()


def highest_generation_or_zero(path: Path) -> int:
    """The highest generation that a store knows, as far as it can still be read."""
    if files.lstat_or_none(path) is None:
        return 0
    try:
        connection = open_reader(path)
    except KnowledgeError:
        return 0
    try:
        row = connection.execute(
            "SELECT max(coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'generation'), 0),"
            " coalesce((SELECT max(generation) FROM tombstones), 0),"
            " coalesce((SELECT max(generation) FROM documents), 0))"
        ).fetchone()
        return int(row[0])
    except (driver.Error, TypeError, ValueError):
        return 0
    finally:
        connection.close()


def forget_skipped(connection: driver.Connection, path: Path, prefix: str) -> int:
    """Drop what is known of skipped files below a key prefix; says how many they were."""
    with translated(path), immediate(connection):
        return connection.execute("DELETE FROM skipped_files WHERE substr(key, 1, length(?1)) = ?1", (prefix,)).rowcount


def _mark_substring_chunks(connection: driver.Connection, setting: str) -> None:
    """Bring in_tri into line with the setting; only rows that change are written."""

    def belongs(heading_path: bytes, body: bytes) -> int:
        return belongs_in_trigrams(setting, heading_path, body)

    connection.create_function("belongs_in_trigrams", 2, belongs, deterministic=True)
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS remarked (id INTEGER PRIMARY KEY, in_tri INTEGER)")
    connection.execute("DELETE FROM temp.remarked")
    connection.execute(
        "INSERT INTO temp.remarked SELECT id, belongs FROM (SELECT id, in_tri,"
        " belongs_in_trigrams(CAST(heading_path AS BLOB), CAST(body AS BLOB)) AS belongs FROM chunks)"
        " WHERE belongs <> in_tri"
    )
    connection.execute("UPDATE chunks SET in_tri = remarked.in_tri FROM temp.remarked WHERE remarked.id = chunks.id")
    connection.execute("DELETE FROM temp.remarked")
    connection.create_function("belongs_in_trigrams", 2, None)


def _drop(names: Sequence[str], connection: driver.Connection) -> None:
    format_gate.make_droppable(connection, names)
    for name in names:
        connection.execute(f"DROP TABLE IF EXISTS {name}")


def _create(names: Iterable[str], connection: driver.Connection) -> None:
    """Make these virtual tables again, by the very statements of schema.sql."""
    for name in names:
        statement = next(text for text in format_gate.schema_statements() if f"CREATE VIRTUAL TABLE {name} " in text)
        connection.execute(statement)
        if name in FULL_TEXT_TABLES:
            for option, value in FULL_TEXT_OPTIONS:
                connection.execute(f"INSERT INTO {name}({name}, rank) VALUES (?, ?)", (option, value))  # noqa: S608


def _id_range(connection: driver.Connection) -> tuple[int, int]:
    row = connection.execute("SELECT coalesce(min(id), 0), coalesce(max(id), -1) FROM chunks").fetchone()
    return int(row[0]), int(row[1])


def _rebuilt(connection: driver.Connection, vectors: int) -> Rebuilt:
    chunks, marked = connection.execute("SELECT count(*), coalesce(sum(in_tri), 0) FROM chunks").fetchone()
    return Rebuilt(int(chunks), int(marked), bump_commit_seq(connection), vectors)
