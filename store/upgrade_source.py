"""What an upgrade reads of the index that it replaces: its rows of meta, and whatever else is still to be understood.

Nothing is taken for granted but `meta`: a column or a table that is not there gives an unknown, never an error.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from domain.errors import FormatError
from store import driver, format_gate
from store.connection import open_reader, translated

KEYS_AT_A_TIME = 1000


class OldStore(NamedTuple):
    """An index that is not of this program's format."""

    version: int | None  # of its format; None: it does not say
    difference: str  # why it is not opened, in the words of the format gate
    documents: int | None  # None: they cannot be counted
    generation: int  # the highest that it knows
    live_bytes: int  # of its file, without pages that hold nothing
    meta: dict[str, str]


def read_old_store(path: Path, *, base_id: str) -> OldStore | None:
    """The index at `path`; None where it is of this program's format. Reads only.

    Raises FormatError (newer, of another program, or it does not say whose it is), BaseMismatchError, IntegrityError,
    NotBuiltError, StorageError.
    """
    with closing(open_reader(path)) as connection:
        try:
            format_gate.check(connection, path, base_id=base_id)
        except FormatError as error:
            if not error.is_upgradable:
                raise
            with translated(path):
                return _described(connection, error.message)
    return None


def _described(connection: driver.Connection, difference: str) -> OldStore:
    meta = format_gate.meta_rows(connection)
    version = meta.get("format_version", "")
    generations = (
        _number(meta.get("generation", "")),
        number_or_none(connection, "SELECT max(generation) FROM documents"),
        number_or_none(connection, "SELECT max(generation) FROM tombstones"),
    )
    pages, unused, page_bytes = (
        number_or_none(connection, f"PRAGMA {name}") or 0 for name in ("page_count", "freelist_count", "page_size")
    )
    return OldStore(
        version=_number(version),
        difference=difference,
        documents=number_or_none(connection, "SELECT count(key) FROM documents"),
        generation=max(number or 0 for number in generations),
        live_bytes=(pages - unused) * page_bytes,
        meta=meta,
    )


def number_or_none(connection: driver.Connection, statement: str) -> int | None:
    """The number that a statement gives; None where it cannot be asked, or gives none."""
    try:
        row = connection.execute(statement).fetchone()
    except driver.Error:
        return None
    return _number(str(row[0])) if row is not None else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def document_keys(path: Path) -> Iterator[Sequence[str]]:
    """The keys of an index's documents, some at a time, as far as they can be read."""
    with closing(open_reader(path)) as connection:
        try:
            cursor = connection.execute("SELECT key FROM documents")
            while rows := cursor.fetchmany(KEYS_AT_A_TIME):
                yield [row[0] for row in rows if isinstance(row[0], str)]
        except (driver.Error, UnicodeDecodeError):
            return


def missing_keys(connection: driver.Connection, keys: Sequence[str]) -> Sequence[str]:
    """Those of some keys that a store of this format has no document for."""
    rows = connection.execute(
        "SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM documents WHERE key = value)",
        (json.dumps(list(keys)),),
    ).fetchall()
    return [str(row[0]) for row in rows]
