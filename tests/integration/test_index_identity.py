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
