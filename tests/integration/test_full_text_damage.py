"""Damaged full text names what mends it, wherever it is met, and that does mend it (P13, R37)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app import maintenance
from app.wiring import readable_base
from domain.errors import IntegrityError
from domain.settings import Settings
from retrieval.answer import SearchRequest
from retrieval.enumeration import enumerate_documents
from retrieval.match_answer import MatchRequest
from retrieval.search import search
from retrieval.vocabulary import WordsRequest, list_words
from tests.support.bases import assert_sound, build_base, layout_of
from tests.support.drifts import apply_drift

# what is done to a table's own files, and which of them
DAMAGES = {
    "garbage": "UPDATE {0}_data SET block = randomblob(length(block)) WHERE id > 10",
    "zeroed": "UPDATE {0}_data SET block = zeroblob(length(block)) WHERE id > 10",
    "no structure": "DELETE FROM {0}_data WHERE id = 10",
    "no pages": "DELETE FROM {0}_data",
    "no settings": "DELETE FROM {0}_config",
    "data table lost": "DROP TABLE {0}_data",
    "index table lost": "DROP TABLE {0}_idx",
    "sizes table lost": "DROP TABLE {0}_docsize",
    "settings table lost": "DROP TABLE {0}_config",
}
TABLES = ("chunks_fts", "chunks_fts_exact", "chunks_fts_tri")
ASKED: tuple[Callable[[Any], object], ...] = (
    lambda snapshot: search(snapshot, SearchRequest("fox rivers")),
    lambda snapshot: search(snapshot, SearchRequest('"quick brown" 東京都 foo_bar.baz')),
    lambda snapshot: search(snapshot, SearchRequest("rivvers")),
    lambda snapshot: enumerate_documents(snapshot, MatchRequest("fox")),
    lambda snapshot: enumerate_documents(snapshot, MatchRequest("京都")),
    lambda snapshot: list_words(snapshot, WordsRequest(pattern="^ri")),
)


def told(settings: Settings) -> list[IntegrityError]:
    """What asking has ended with; whatever else it may raise is a fault of ours."""
    found = []
    for ask in ASKED:
        try:
            with readable_base(settings) as base, base.store.snapshot() as snapshot:
                ask(snapshot)
        except IntegrityError as error:
            found.append(error)
    return found


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("table", TABLES)
def test_damaged_full_text_names_the_rebuild_which_mends_it(tmp_path: Path, table: str, damage: str) -> None:
    base = build_base(tmp_path)
    apply_drift(layout_of(base).database, lambda connection: connection.execute(DAMAGES[damage].format(table)))
    errors = told(base)
    assert errors or table == "chunks_fts_tri" or damage == "sizes table lost"
    for error in errors:
        assert error.exit_status == 13
        assert "knowledge rebuild" in error.hint
        assert "full-text tables of" in error.message
    maintenance.rebuild(base)
    assert told(base) == []
    assert_sound(base)


@pytest.mark.parametrize("damage", ["no settings", "settings table lost"])
def test_a_reset_copes_with_full_text_that_cannot_be_opened(tmp_path: Path, damage: str) -> None:
    base = build_base(tmp_path)
    apply_drift(layout_of(base).database, lambda connection: connection.execute(DAMAGES[damage].format("chunks_fts")))
    assert maintenance.reset(base, force=True).documents == 5
    assert_sound(base)
