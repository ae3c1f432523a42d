"""Indexes of an older format, made out of one of today's: what an upgrade has to cope with."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.drifts import open_plain

MakeOld = Callable[[Path], None]


def by(*statements: str, version: str | None = "1") -> MakeOld:
    """An older format by these statements; `version` None: it goes on calling itself one of today's."""

    def change(path: Path) -> None:
        connection = open_plain(path)
        try:
            for statement in statements:
                connection.execute(statement)
            if version is not None:
                connection.execute("UPDATE meta SET value = ? WHERE key = 'format_version'", (version,))
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.close()

    return change


_EDIT_SCHEMA = (
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_schema SET sql = replace(sql, 'porter unicode61', 'porter ascii')",
    "PRAGMA writable_schema = RESET",
)
_NO_FULL_TEXT = (
    "DROP TABLE chunks_vocabulary",
    "DROP TABLE chunks_stems",
    "DROP TABLE chunks_fts_tri",
    "DROP TABLE chunks_fts_exact",
    "DROP TABLE chunks_fts",
    "DROP VIEW chunks_tri_source",
)
# the gate's fingerprint of format 1, as the program that wrote it had it
FORMAT_1_FINGERPRINT = "f13838e9cf987ffc98c9dd434052292e99caa52a6f00753001e0be00e06aa26c"
_FORMAT_1 = (
    "DROP TABLE chunks_vocabulary",
    "DROP TABLE chunks_fts_exact",
    """CREATE VIRTUAL TABLE chunks_fts_exact USING fts5(
    body, heading_path, names,
    content='chunks', content_rowid='id', tokenize='unicode61', detail='column'
)""",
    "INSERT INTO chunks_fts_exact(chunks_fts_exact) VALUES ('rebuild')",
    "CREATE VIRTUAL TABLE chunks_vocabulary USING fts5vocab('chunks_fts_exact', 'row')",
)

OLD: Mapping[str, MakeOld] = {
    "format 1": by(*_FORMAT_1),
    "only its number": by(),
    "a column less": by("ALTER TABLE documents DROP COLUMN title"),
    "a table less": by("DROP TABLE tombstones", "DROP TABLE skipped_files"),
    "another tokenizer": by(*_EDIT_SCHEMA),
    "no full text": by(*_NO_FULL_TEXT),
    "a meta that is not strict": by(
        "CREATE TABLE m (key TEXT, value TEXT, note TEXT)",
        "INSERT INTO m (key, value) SELECT key, value FROM meta",
        "DROP TABLE meta",
        "ALTER TABLE m RENAME TO meta",
    ),
    "documents of another name": by("DROP INDEX IF EXISTS documents_pending", "ALTER TABLE documents RENAME TO files"),
    "today's number, another shape": by("CREATE INDEX added ON chunks (body)", version=None),
    "no number": by("DELETE FROM meta WHERE key = 'format_version'", version=None),
}
FOREIGN_LAYOUT = by("INSERT OR REPLACE INTO meta (key, value) VALUES ('vectors_layout', '7')")
NO_LAYOUT_ROW = by("DELETE FROM meta WHERE key = 'vectors_layout'")
OTHER_VECTOR_SHAPE = by("ALTER TABLE embeddings ADD COLUMN extra TEXT")


def rows_of(path: Path, statement: str) -> list[tuple[Any, ...]]:
    connection = open_plain(path)
    try:
        found: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
        return found
    finally:
        connection.close()
