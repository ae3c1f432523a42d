"""A change of what makes the vectors: refused before any text is sent, then built beside the old set (S1-12, S1-15)."""

from pathlib import Path

import pytest

from domain.errors import EmbeddingsChangedError, EmbeddingsUnavailableError, UsageError
from tests.support.embedding_server import EmbeddingServer
from tests.support.runs import Base
from tests.support.trees import make_tree
from tests.support.vector_runs import (
    DIMENSION,
    assert_whole,
    misplaced,
    states,
    texts_of,
    tree_of,
    uncovered,
    with_embeddings,
)

pytestmark = pytest.mark.redis

FILES = 20
CHUNKS = FILES * 3
ONE_WAY = [1.0] + [0.0] * (DIMENSION - 1)  # of unit length, as all are


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", tree_of(FILES))


def test_embeddings_over_an_index_without_vectors_need_a_reindex(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """S1-12: refused before any call; with --reindex every document is covered, and then they answer."""
    with_embeddings(vector_base, None).index(docs)
    with pytest.raises(EmbeddingsChangedError) as refused:
        vector_base.index(docs)
    assert "--reindex" in refused.value.hint
    assert embedder.requests == []
    report = vector_base.index(docs, reindex=True)
    assert report.vectors is not None and report.vectors.activated
    assert states(vector_base) == {"ready": FILES}
    assert_whole(vector_base)


@pytest.mark.parametrize("change", [{"model": "other"}, {"document_prefix": "passage: "}, {"query_prefix": "query: "}])
def test_another_identity_is_refused_and_built_beside(
    vector_base: Base, docs: Path, embedder: EmbeddingServer, change: dict[str, str]
) -> None:
    """S1-15, P18: no call at all; `--reindex` makes the new set, and the old one is gone when it answers."""
    vector_base.index(docs)
    calls = len(embedder.requests)
    changed = with_embeddings(vector_base, embedder, **change)
    with pytest.raises(EmbeddingsChangedError) as refused:
        changed.index(docs)
    assert next(iter(change)) in refused.value.message and "--reindex" in refused.value.hint
    assert len(embedder.requests) == calls
    report = changed.index(docs, reindex=True)
    assert report.vectors is not None and report.vectors.activated
    assert vector_base.rows("SELECT state, count(*) FROM vector_identities GROUP BY 1") == [("active", 1)]
    assert vector_base.rows("SELECT count(*) FROM embeddings") == [(CHUNKS,)]
    assert_whole(changed)


def test_a_rebuild_of_the_vectors_that_is_cut_short_goes_on_where_it_was(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """Issue item 4: the old vectors answer until the last new one is there; nothing is sent twice."""
    vector_base.index(docs)
    embedder.requests.clear()
    embedder.behaviour.down_after, embedder.behaviour.down_for_s = 6, 600
    changed = with_embeddings(vector_base, embedder, model="other", outage_limit_s=0.5)
    with pytest.raises(EmbeddingsUnavailableError):
        changed.index(docs, reindex=True)
    assert uncovered(vector_base) == [] and misplaced(vector_base) == []
    (identity,) = vector_base.rows("SELECT model FROM vector_identities WHERE state = 'active'")
    assert identity == ("m",)
    embedder.behaviour.down_after = None
    embedder.bring_up()
    with pytest.raises(EmbeddingsChangedError, match="half made") as refused:
        changed.index(docs)
    assert "--reindex" in refused.value.hint
    made = {bytes(row[0]) for row in vector_base.rows(
        "SELECT sent_hash FROM embeddings WHERE identity = (SELECT id FROM vector_identities WHERE state = 'building')"
    )}  # fmt: skip
    embedder.requests.clear()
    report = changed.index(docs, reindex=True)
    assert report.vectors is not None and report.vectors.activated
    assert len(made) > 0
    assert len(texts_of(embedder)) == CHUNKS - len(made)
    assert_whole(changed)


def test_reindex_against_a_server_that_is_away_leaves_everything(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """S0-13: exit 15, rows untouched."""
    vector_base.index(docs)
    before, runs = vector_base.content(), vector_base.last_run()
    embedder.take_down()
    with pytest.raises(EmbeddingsUnavailableError):
        with_embeddings(vector_base, embedder, model="other").index(docs, reindex=True)
    assert vector_base.content() == before
    assert vector_base.last_run() == runs
    assert_whole(vector_base)


def test_reindex_of_the_same_identity_sends_nothing_and_re_embed_everything(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """R19."""
    vector_base.index(docs)
    embedder.requests.clear()
    report = vector_base.index(docs, reindex=True)
    assert texts_of(embedder) == []
    assert report.vectors is not None and report.vectors.reused == CHUNKS and not report.vectors.activated
    afresh = vector_base.index(docs, reindex=True, re_embed=True)
    assert len(texts_of(embedder)) == CHUNKS
    assert afresh.vectors is not None and afresh.vectors.activated
    assert_whole(vector_base)
    with pytest.raises(UsageError, match="--reindex"):
        vector_base.index(docs, re_embed=True)


def test_another_model_behind_the_same_name_is_noticed(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """T25, faults 31: by the canary, by the served name, by the dimension; before any text is sent."""
    vector_base.index(docs)
    vector_base.settle()
    (docs / "00" / "000.md").write_text("# New\n\nnew words\n", "utf-8")
    before = vector_base.content()
    for changes in ({"dimension": DIMENSION + 8}, {"model": "swapped"}, {"vector_for": lambda text: [1.0] * DIMENSION}):
        embedder.requests.clear()
        for name, value in changes.items():
            setattr(embedder.behaviour, name, value)
        for worker_processes in (0, 1):
            with pytest.raises(EmbeddingsChangedError) as refused:
                vector_base.index(docs, worker_processes=worker_processes)
            assert "--reindex" in refused.value.hint
        assert texts_of(embedder) == []
        assert vector_base.content() == before
        embedder.behaviour.dimension, embedder.behaviour.model, embedder.behaviour.vector_for = DIMENSION, None, None
    assert vector_base.index(docs).state == "done"
    assert_whole(vector_base)


def test_reindex_makes_every_vector_of_a_model_that_took_another_ones_name(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """T25, P18: nothing of the old model is kept, though name and dimension are the same."""
    vector_base.index(docs)
    embedder.behaviour.vector_for = lambda text: ONE_WAY
    embedder.requests.clear()
    report = vector_base.index(docs, reindex=True)
    assert report.vectors is not None and report.vectors.activated
    assert (len(texts_of(embedder)), report.vectors.reused) == (CHUNKS, 0)
    assert len(vector_base.rows("SELECT DISTINCT vector FROM embeddings")) == 1


def test_a_half_made_set_is_not_mixed_with_a_model_that_took_its_name(
    vector_base: Base, docs: Path, embedder: EmbeddingServer
) -> None:
    """T25, P18: the canary is that of the first half."""
    vector_base.index(docs)
    other = half_made(vector_base, docs, embedder, model="other")
    embedder.behaviour.vector_for = lambda text: ONE_WAY
    report = other.index(docs, reindex=True)
    assert report.vectors is not None and report.vectors.activated and report.vectors.reused == 0
    assert len(vector_base.rows("SELECT DISTINCT vector FROM embeddings")) == 1


@pytest.mark.parametrize("change", [{}, {"model": "other"}])
def test_no_set_stays_half_made_after_a_reindex(
    vector_base: Base, docs: Path, embedder: EmbeddingServer, change: dict[str, str]
) -> None:
    """R19: one of the same model is gone on with, one of a model that was given up is dropped."""
    vector_base.index(docs)
    half_made(vector_base, docs, embedder, re_embed=True, **change)
    embedder.requests.clear()
    report = vector_base.index(docs, reindex=True)
    assert report.vectors is not None and report.vectors.activated == (not change)
    assert len(texts_of(embedder)) < CHUNKS
    assert vector_base.rows("SELECT count(*) FROM vector_identities WHERE state = 'building'") == [(0,)]
    assert_whole(vector_base)


def half_made(base: Base, docs: Path, server: EmbeddingServer, *, re_embed: bool = False, **changes: str) -> Base:
    """A reindex whose server went away in the middle, and is back."""
    server.requests.clear()
    server.behaviour.down_after, server.behaviour.down_for_s = 6, 600
    changed = with_embeddings(base, server, outage_limit_s=0.5, **changes)
    with pytest.raises(EmbeddingsUnavailableError):
        changed.index(docs, reindex=True, re_embed=re_embed)
    server.behaviour.down_after = None
    server.bring_up()
    assert base.rows("SELECT count(*) FROM vector_identities WHERE state = 'building'") == [(1,)]
    return changed
