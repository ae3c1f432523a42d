"""Complete sets of documents of an index that has drifted."""

import pytest

from domain.errors import IntegrityError
from retrieval import chunk_documents
from retrieval.enumeration import enumerate_documents
from retrieval.match_answer import MatchRequest
from tests.support.drifts import apply_drift
from tests.support.scratch import scratch_directory
from tests.support.stores import build_store, open_snapshot


@pytest.mark.parametrize(("look_ups_a_document", "table_entries"), [(1000, 0), (0, 1000), (0, 0)])
def test_full_text_of_a_chunk_that_is_not_there_is_damage(
    monkeypatch: pytest.MonkeyPatch, look_ups_a_document: int, table_entries: int
) -> None:
    """R37: 13 and what mends it, not an error that nobody has foreseen."""
    monkeypatch.setattr(chunk_documents, "LOOK_UPS_A_DOCUMENT", look_ups_a_document)
    monkeypatch.setattr(chunk_documents, "MAX_TABLE_ENTRIES", table_entries)
    with scratch_directory() as place:
        database = build_store(place / "home", {"d/kernel.md": "kernel\n"})
        ghost = "INSERT INTO chunks_fts(rowid, body, heading_path, names) VALUES (9001, 'kernel', '', '')"
        apply_drift(database, lambda connection: connection.execute(ghost))
        with open_snapshot(database) as snapshot, pytest.raises(IntegrityError, match="'kernel' for a chunk") as caught:
            enumerate_documents(snapshot, MatchRequest("kernel"))
        assert "knowledge rebuild" in caught.value.hint
