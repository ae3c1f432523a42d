"""A change of what makes the vectors: refused before any text is sent, then built beside the old set (S1-12, S1-15)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.errors import EmbeddingsChangedError, EmbeddingsUnavailableError, UsageError
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.runs import Base
from tests.support.trees import make_tree
from tests.support.vector_runs import (
    DIMENSION,
    assert_whole,
    base_with,
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
def server() -> Iterator[EmbeddingServer]:
    with embedding_server(dimension=DIMENSION) as running:
        yield running


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", tree_of(FILES))


@pytest.fixture
def base(tmp_path: Path, server: EmbeddingServer) -> Iterator[Base]:
    with base_with(tmp_path, server) as made:
        yield made


def test_embeddings_over_an_index_without_vectors_need_a_reindex(
    base: Base, docs: Path, server: EmbeddingServer
) -> None:
    """S1-12: refused before any call; with --reindex every document is covered, and then they answer."""
    with_embeddings(base, None).index(docs)
    with pytest.raises(EmbeddingsChangedError) as refused:
        base.index(docs)
    assert "--reindex" in refused.value.hint
    assert server.requests == []
    report = base.index(docs, reindex=True)
    assert report.vectors is not None and report.vectors.activated
    assert states(base) == {"ready": FILES}
    assert_whole(base)


@pytest.mark.parametrize("change", [{"model": "other"}, {"document_prefix": "passage: "}, {"query_prefix": "query: "}])
def test_another_identity_is_refused_and_built_beside(
    base: Base, docs: Path, server: EmbeddingServer, change: dict[str, str]
) -> None:
    """S1-15, P18: no call at all; `--reindex` makes the new set, and the old one is gone when it answers."""
    base.index(docs)
    calls = len(server.requests)
    changed = with_embeddings(base, server, **change)
    with pytest.raises(EmbeddingsChangedError) as refused:
        changed.index(docs)
    assert next(iter(change)) in refused.value.message and "--reindex" in refused.value.hint
    assert len(server.requests) == calls
    report = changed.index(docs, reindex=True)
    assert report.vectors is not None and report.vectors.activated
    assert base.rows("SELECT state, count(*) FROM vector_identities GROUP BY 1") == [("active", 1)]
    assert base.rows("SELECT count(*) FROM embeddings") == [(CHUNKS,)]
    assert_whole(changed)


def test_a_rebuild_of_the_vectors_that_is_cut_short_goes_on_where_it_was(
    base: Base, docs: Path, server: EmbeddingServer
) -> None:
    """Issue item 4: the old vectors answer until the last new one is there; nothing is sent twice."""
    base.index(docs)
    server.requests.clear()
    server.behaviour.down_after, server.behaviour.down_for_s = 6, 600
    changed = with_embeddings(base, server, model="other", outage_limit_s=0.5)
    with pytest.raises(EmbeddingsUnavailableError):
        changed.index(docs, reindex=True)
    assert uncovered(base) == [] and misplaced(base) == []
    (identity,) = base.rows("SELECT model FROM vector_identities WHERE state = 'active'")
    assert identity == ("m",)
    server.behaviour.down_after = None
    server.bring_up()
    with pytest.raises(EmbeddingsChangedError, match="half made") as refused:
        changed.index(docs)
    assert "--reindex" in refused.value.hint
    made = {bytes(row[0]) for row in base.rows(
        "SELECT sent_hash FROM embeddings WHERE identity = (SELECT id FROM vector_identities WHERE state = 'building')"
    )}  # fmt: skip
    server.requests.clear()
    report = changed.index(docs, reindex=True)
    assert report.vectors is not None and report.vectors.activated
    assert len(made) > 0
    assert len(texts_of(server)) == CHUNKS - len(made)
    assert_whole(changed)


def test_reindex_against_a_server_that_is_away_leaves_everything(
    base: Base, docs: Path, server: EmbeddingServer
) -> None:
    """S0-13: exit 15, rows untouched."""
    base.index(docs)
    before, runs = base.content(), base.last_run()
    server.take_down()
    with pytest.raises(EmbeddingsUnavailableError):
        with_embeddings(base, server, model="other").index(docs, reindex=True)
    assert base.content() == before
    assert base.last_run() == runs
    assert_whole(base)


def test_reindex_of_the_same_identity_sends_nothing_and_re_embed_everything(
    base: Base, docs: Path, server: EmbeddingServer
) -> None:
    """R19."""
    base.index(docs)
    server.requests.clear()
    report = base.index(docs, reindex=True)
    assert texts_of(server) == []
    assert report.vectors is not None and report.vectors.reused == CHUNKS and not report.vectors.activated
    afresh = base.index(docs, reindex=True, re_embed=True)
    assert len(texts_of(server)) == CHUNKS
    assert afresh.vectors is not None and afresh.vectors.activated
    assert_whole(base)
    with pytest.raises(UsageError, match="--reindex"):
        base.index(docs, re_embed=True)


def test_another_model_behind_the_same_name_is_noticed(base: Base, docs: Path, server: EmbeddingServer) -> None:
    """T25, faults 31: by the canary, by the served name, by the dimension; before any text is sent."""
    base.index(docs)
    base.settle()
    (docs / "00" / "000.md").write_text("# New\n\nnew words\n", "utf-8")
    before = base.content()
    for changes in ({"dimension": DIMENSION + 8}, {"model": "swapped"}, {"vector_for": lambda text: [1.0] * DIMENSION}):
        server.requests.clear()
        for name, value in changes.items():
            setattr(server.behaviour, name, value)
        for worker_processes in (0, 1):
            with pytest.raises(EmbeddingsChangedError) as refused:
                base.index(docs, worker_processes=worker_processes)
            assert "--reindex" in refused.value.hint
        assert texts_of(server) == []
        assert base.content() == before
        server.behaviour.dimension, server.behaviour.model, server.behaviour.vector_for = DIMENSION, None, None
    assert base.index(docs).state == "done"
    assert_whole(base)
