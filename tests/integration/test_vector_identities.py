"""A set of vectors is pinned, built beside the one that answers, switched to when it is whole, and collected after."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import IntegrityError
from domain.layout import BaseLayout
from domain.vectors import sent_hash, sent_text
from store import vector_blocks
from store.documents import SqliteStoreWriter
from store.vector_port import ChunkText, VectorCounts
from store.vector_queries import HASHES_PER_STATEMENT
from store.write_port import RemoveWrite, WriteGroup
from tests.support.audit import audit
from tests.support.scratch import scratch_directory
from tests.support.stores import document_write, open_snapshot
from tests.support.vector_stores import (
    DIMENSION,
    IDENTITY,
    OTHER,
    cover,
    embedded,
    pin,
    put,
    put_words,
    states,
    vector_of,
    writing,
)

TEXTS = {f"docs/{number}.md": f"# N{number}\n\nbody\n\n## Deeper\n\nmore of {number}\n" for number in range(6)}


@pytest.fixture
def home() -> Iterator[Path]:
    with scratch_directory() as path:
        yield path / "home"


@pytest.fixture
def writer(home: Path) -> Iterator[SqliteStoreWriter]:
    with writing(home) as opened:
        yield opened


def count(writer: SqliteStoreWriter, table: str, where: str = "1") -> int:
    return int(writer.connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0])  # noqa: S608


def remove(writer: SqliteStoreWriter, *keys: str) -> None:
    writer.apply(WriteGroup(removes=[RemoveWrite(key, time.time_ns(), 9) for key in keys]))


def problems(home: Path) -> list[str]:
    return audit(BaseLayout(home).database, vector_of=vector_of)


def test_an_identity_over_stored_words_is_built_before_it_answers(home: Path, writer: SqliteStoreWriter) -> None:
    """S1-12, R19: nothing answers by meaning until every document has its vectors."""
    put_words(writer, TEXTS)
    pinned = pin(writer)
    status = writer.vector_status()
    assert (status.active, status.building, status.target) == (None, pinned, pinned)
    assert set(states(writer).values()) == {"none"}
    assert cover(writer, dict(list(TEXTS.items())[:4]), pinned) == ["applied"] * 4
    with pytest.raises(IntegrityError, match="2 documents"):
        writer.activate_identity(pinned.id)
    assert writer.vector_status().active is None
    assert problems(home) == []
    cover(writer, TEXTS, pinned)
    before = writer.identity().commit_seq
    assert writer.activate_identity(pinned.id) == before + 1
    assert writer.activate_identity(pinned.id) == before + 1  # again: it answers already
    status = writer.vector_status()
    assert (status.active, status.building) == (pinned._replace(state="active"), None)
    assert set(states(writer).values()) == {"ready"}
    assert problems(home) == []


def test_another_model_is_built_beside_the_one_that_answers(home: Path, writer: SqliteStoreWriter) -> None:
    """R19, fault 31: the old vectors answer until the new set is complete; then they go."""
    old = pin(writer)
    put(writer, TEXTS, old)
    new = pin(writer, OTHER)
    assert (new.state, writer.vector_status().active, writer.vector_status().target) == ("building", old, new)
    # a document replaced meanwhile brings its vectors for the new set, and is linked in the old where all is known
    texts = TEXTS | {"docs/0.md": TEXTS["docs/1.md"], "docs/2.md": "# Unknown\n\nto the old set\n"}
    writer.apply(
        WriteGroup(documents=[embedded(key, texts[key], new, old, generation=2) for key in ("docs/0.md", "docs/2.md")])
    )
    assert states(writer, ["docs/0.md", "docs/2.md"]) == {"docs/0.md": "ready", "docs/2.md": "pending"}
    assert writer.vector_status().pending_chunks == 1
    assert problems(home) == []
    assert (
        cover(writer, {key: texts[key] for key in TEXTS if key not in ("docs/0.md", "docs/2.md")}, new)
        == ["applied"] * 4
    )
    assert states(writer, ["docs/2.md"]) == {"docs/2.md": "pending"}  # the old set answers still
    writer.activate_identity(new.id)
    assert writer.vector_status().pending_documents == 0
    assert set(states(writer).values()) == {"ready"}
    assert problems(home) == []
    gone = writer.collect_vectors(keep_unused=100)
    assert gone == 12
    assert count(writer, "vector_identities") == 1
    for table in ("embeddings", "vector_links", "vector_blocks"):
        assert count(writer, table, f"identity <> {new.id}") == 0
    assert count(writer, "vector_links") == count(writer, "chunks")
    assert problems(home) == []


def test_an_unfinished_set_is_gone_on_with_or_given_up(home: Path, writer: SqliteStoreWriter) -> None:
    put_words(writer, TEXTS)
    first = pin(writer)
    cover(writer, dict(list(TEXTS.items())[:2]), first)
    assert pin(writer) == first
    assert list(states(writer).values()) == ["ready"] * 2 + ["none"] * 4
    second = pin(writer, OTHER)
    assert second.id > first.id
    assert writer.vector_status().building == second
    assert cover(writer, TEXTS, first) == ["stale"] * 6
    assert set(states(writer).values()) == {"none"}
    assert problems(home) == []
    third = pin(writer)  # the same values again are another set: of the first nobody knows what it lacks
    assert third.id > second.id
    writer.collect_vectors(keep_unused=0)
    assert count(writer, "vector_identities") == 1
    assert count(writer, "embeddings") == 0
    assert pin(writer) == third
    assert problems(home) == []


def test_back_to_what_answers_gives_up_what_is_built(home: Path, writer: SqliteStoreWriter) -> None:
    active = pin(writer)
    put(writer, TEXTS, active)
    pin(writer, OTHER)
    before = writer.identity().commit_seq
    assert pin(writer) == active
    assert writer.vector_status().building is None
    assert writer.identity().commit_seq == before + 1
    assert problems(home) == []


def test_everything_is_embedded_anew_under_the_same_identity(home: Path, writer: SqliteStoreWriter) -> None:
    """R19 (--reindex --re-embed): a new set that knows no vector, while the old one answers."""
    old = pin(writer)
    put(writer, TEXTS, old)
    fresh = pin(writer, afresh=True)
    assert (fresh.identity, fresh.state) == (old.identity, "building")
    assert fresh.id > old.id
    assert pin(writer) == fresh  # an ordinary run goes on with it
    with open_snapshot(BaseLayout(home).database) as snapshot:
        hashes = [row[0] for row in writer.connection.execute("SELECT sent_hash FROM embeddings").fetchall()]
        assert snapshot.known_vectors(old.id, hashes) == set(hashes)
        assert snapshot.known_vectors(fresh.id, hashes) == frozenset()
    again = pin(writer, afresh=True)
    assert again.id > fresh.id
    put(writer, TEXTS, again, generation=2)
    writer.activate_identity(again.id)
    writer.collect_vectors(keep_unused=0)
    assert count(writer, "embeddings") == 12
    assert writer.vector_status().active == again._replace(state="active")
    assert problems(home) == []


def test_an_emptied_store_answers_with_the_new_identity_at_once(home: Path, writer: SqliteStoreWriter) -> None:
    old = pin(writer)
    put(writer, TEXTS, old)
    pin(writer, OTHER)
    remove(writer, *TEXTS)
    third = pin(writer, IDENTITY._replace(query_prefix="other: "))
    assert writer.vector_status().active == third
    assert writer.vector_status().building is None
    assert problems(home) == []


def test_a_document_that_was_refused_does_not_keep_a_set_from_answering(home: Path, writer: SqliteStoreWriter) -> None:
    """Whatever lacks vectors of the new set is pending then, also what was ready by the old one."""
    put(writer, TEXTS, pin(writer))
    new = pin(writer, OTHER)
    cover(writer, dict(list(TEXTS.items())[:4]), new)
    with pytest.raises(IntegrityError, match="2 documents"):
        writer.activate_identity(new.id, uncovered=1)
    writer.activate_identity(new.id, uncovered=2)
    assert list(states(writer).values()) == ["ready"] * 4 + ["pending"] * 2
    assert writer.vector_status().pending_chunks == 4
    writer.collect_vectors(keep_unused=0)
    assert problems(home) == []


def test_only_what_is_being_built_can_be_switched_to(writer: SqliteStoreWriter) -> None:
    active = pin(writer)
    for identity in (active.id + 1, 0, -3):
        with pytest.raises(IntegrityError):
            writer.activate_identity(identity)


def test_vectors_that_no_chunk_has_are_kept_up_to_a_number(home: Path, writer: SqliteStoreWriter) -> None:
    """S2-36: the oldest go first."""
    pinned = pin(writer)
    put(writer, TEXTS, pinned)
    remove(writer, "docs/0.md", "docs/1.md")
    assert writer.collect_vectors(keep_unused=4) == 0
    oldest = writer.connection.execute(
        "SELECT id FROM embeddings WHERE id NOT IN (SELECT embedding FROM vector_links) ORDER BY id LIMIT 1"
    ).fetchone()[0]
    assert writer.collect_vectors(keep_unused=3) == 1
    assert count(writer, "embeddings", f"id = {oldest}") == 0
    assert problems(home) == []
    assert writer.collect_vectors(keep_unused=0) == 3
    assert count(writer, "embeddings") == count(writer, "chunks") == 8
    assert problems(home) == []


@pytest.mark.parametrize("kept", [0, 1, 7, 40])
def test_blocks_close_their_gaps(
    home: Path, writer: SqliteStoreWriter, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """Over many small blocks and small transactions: whatever goes, each vector stays in one block, in order."""
    monkeypatch.setattr(vector_blocks, "BLOCK_ROWS", 4)
    monkeypatch.setattr(vector_blocks, "BLOCKS_PER_TRANSACTION", 2)
    pinned = pin(writer)
    texts = {f"docs/{n:02}.md": f"# N{n}\n\nbody of {n}\n" for n in range(41)}
    for key, text in texts.items():
        put(writer, {key: text}, pinned)
    assert count(writer, "vector_blocks") == 11
    gone = [key for place, key in enumerate(texts) if place < 9 or place % 3]
    remove(writer, *gone)
    assert writer.collect_vectors(keep_unused=kept) == max(0, len(gone) - kept)
    vectors = count(writer, "embeddings")
    assert vectors == 41 - max(0, len(gone) - kept)
    assert count(writer, "vector_blocks") == -(-vectors // 4)
    assert problems(home) == []
    put(writer, {"docs/new.md": "# New\n\nquite new\n"}, pinned, generation=10)
    assert count(writer, "vector_blocks") == -(-(vectors + 1) // 4)
    assert problems(home) == []


def test_a_collection_that_was_cut_short_is_gone_on_with(home: Path, writer: SqliteStoreWriter) -> None:
    """Gone vectors may stand in a block until the next collection."""
    pinned = pin(writer)
    put(writer, TEXTS, pinned)
    remove(writer, "docs/0.md")
    writer.connection.execute("DELETE FROM embeddings WHERE id NOT IN (SELECT embedding FROM vector_links)")
    assert problems(home) == []
    assert writer.collect_vectors(keep_unused=0) == 0
    (ids,) = writer.connection.execute("SELECT embedding_ids FROM vector_blocks").fetchone()
    assert len(ids) == 8 * 10
    assert problems(home) == []


def test_what_is_asked_before_and_after_embedding(home: Path, writer: SqliteStoreWriter) -> None:
    """Reads: what lacks vectors, its texts, what is known, and the counts."""
    put_words(writer, TEXTS | {"docs/plain.txt": "only text\n"})
    with open_snapshot(BaseLayout(home).database) as snapshot:
        assert snapshot.vector_counts() == VectorCounts(0, 0, 0, 0, 0, "none")
        assert snapshot.keys_without_vectors(1, after="", limit=9) == []
        assert snapshot.known_vectors(1, [b"x" * 16]) == frozenset()
    pinned = pin(writer)
    cover(writer, {"docs/1.md": TEXTS["docs/1.md"]}, pinned)
    with open_snapshot(BaseLayout(home).database) as snapshot:
        first = snapshot.keys_without_vectors(pinned.id, after="", limit=2)
        rest = snapshot.keys_without_vectors(pinned.id, after=first[-1].key, limit=99, prefix="docs/")
        assert [document.key for document in (*first, *rest)] == sorted({*TEXTS, "docs/plain.txt"} - {"docs/1.md"})
        assert snapshot.keys_without_vectors(pinned.id, after="", limit=9, prefix="other/") == []
        assert first[0].file_hash == document_write("docs/0.md", TEXTS["docs/0.md"]).file_hash
        texts = snapshot.texts_of(["docs/plain.txt", "docs/gone.md", "docs/1.md"])
        assert [text.key for text in texts] == ["docs/plain.txt", "docs/1.md"]
        assert texts[1].texts == (ChunkText("N1", "body", ""), ChunkText("N1 > Deeper", "more of 1", ""))
        asked = [sent_hash(sent_text(IDENTITY.document_prefix, *text)) for text in texts[1].texts]
        asked += [number.to_bytes(16, "big") for number in range(HASHES_PER_STATEMENT)]
        assert snapshot.known_vectors(pinned.id, asked) == set(asked[:2])
        assert snapshot.vector_counts() == VectorCounts(0, 0, 0, 0, 0, "none")  # nothing answers yet
    cover(writer, TEXTS | {"docs/plain.txt": "only text\n"}, pinned)
    writer.activate_identity(pinned.id)
    remove(writer, "docs/0.md")
    with open_snapshot(BaseLayout(home).database) as snapshot:
        assert snapshot.vector_counts() == VectorCounts(13, 11, 0, 2, 13 * (4 * DIMENSION + 8), "exact")
        assert snapshot.keys_without_vectors(pinned.id, after="", limit=9) == []


def test_means_of_parts_are_counted(home: Path, writer: SqliteStoreWriter) -> None:
    pinned = pin(writer)
    put(writer, TEXTS, pinned)
    writer.connection.execute("UPDATE embeddings SET parts = 3 WHERE id = 2")
    with open_snapshot(BaseLayout(home).database) as snapshot:
        assert snapshot.vector_counts().from_parts == 1
