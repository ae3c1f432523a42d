"""A citation whose chunk the index of the database has lost is told as damage, not shown as nothing (P14, T30)."""

from pathlib import Path
from typing import Any

import pytest

from app.showing import KnownPlaces, ShownChunk, ShowRequest, show
from app.wiring import readable_base
from domain.errors import IntegrityError
from tests.support.bases import build_base, layout_of
from tests.support.drifts import apply_drift

NOWHERE = KnownPlaces((), (), Path("/"), "")


def lose_second_chunk(connection: Any) -> None:
    """The row stays; the index by document and ordinal does not lead to it any more."""
    (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_by_document'").fetchone()
    change = "UPDATE sqlite_schema SET sql = ? WHERE name = 'chunks_by_document'"
    for written in (f"{sql} WHERE id <> 2", sql):
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(change, (written,))
        connection.execute("PRAGMA writable_schema = RESET")
        if written != sql:
            connection.execute("REINDEX chunks_by_document")


def test_a_lost_chunk_is_damage(tmp_path: Path) -> None:
    settings = build_base(tmp_path)
    apply_drift(layout_of(settings).database, lose_second_chunk)
    with readable_base(settings) as base:
        shown = show(base.store.reader(), ShowRequest("docs/a.md#0"), NOWHERE)
        assert isinstance(shown, ShownChunk)
        assert "quick brown fox" in shown.chunks[0].body
        with pytest.raises(IntegrityError, match=r"chunk 1 of docs/a\.md cannot be found") as caught:
            show(base.store.reader(), ShowRequest("docs/a.md#1"), NOWHERE)
    assert caught.value.exit_status == 13
