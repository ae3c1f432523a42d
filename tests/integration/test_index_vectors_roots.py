"""Vectors over several roots: a new set is one of all documents, whatever the run looks at; and where the key goes."""

import shutil
from pathlib import Path

import pytest

from app.index_request import EmbeddingNotice, IndexRequest
from app.indexing import run_index
from app.progress import RunProgress
from tests.support.embedding_server import EmbeddingServer
from tests.support.runs import Base, Watched, children
from tests.support.trees import make_tree
from tests.support.vector_runs import assert_whole, states, texts_of, tree_of, with_embeddings

pytestmark = pytest.mark.redis

FILES = 20
CHUNKS = FILES * 3
KEY = "canary-77c1d"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "docs", tree_of(FILES))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "notes", {f"{number}.md": f"# Note {number}\n\nnote {number}\n" for number in range(6)})


def announced_by_reindex(base: Base, *paths: Path) -> EmbeddingNotice:
    told: list[EmbeddingNotice] = []
    wanted = IndexRequest(paths=paths, worker_processes=0, reindex=True)
    run_index(base.settings, wanted, RunProgress(), announce=told.append)
    (notice,) = told
    return notice


def test_a_new_set_covers_roots_that_the_run_does_not_look_at(
    vector_base: Base, docs: Path, notes: Path, embedder: EmbeddingServer
) -> None:
    """S1-12, R19: from what is stored, though the folder be gone; and all that is sent is told before."""
    with_embeddings(vector_base, None).index(docs, notes)
    shutil.rmtree(notes)
    notice = announced_by_reindex(vector_base, docs)
    assert notice.files == FILES + 6
    assert len(texts_of(embedder)) == CHUNKS + 6
    assert states(vector_base) == {"ready": FILES + 6}
    assert_whole(vector_base)


def test_a_folder_of_a_root_brings_the_rest_of_it_along(
    vector_base: Base, docs: Path, notes: Path, embedder: EmbeddingServer
) -> None:
    """S1-15, R19."""
    vector_base.index(docs, notes)
    changed = with_embeddings(vector_base, embedder, model="other")
    notice = announced_by_reindex(changed, docs / "01")
    assert notice.files == FILES + 6
    assert_whole(changed)
    assert announced_by_reindex(changed, docs / "01").files == 8  # the same set: nothing of the others is sent


def test_what_is_pending_in_one_root_is_made_by_a_run_over_another(
    vector_base: Base, docs: Path, notes: Path, embedder: EmbeddingServer
) -> None:
    """R18: an ordinary run makes up for what lacks vectors, wherever it is."""
    vector_base.index(docs)
    with_embeddings(vector_base, None).index(notes)
    assert states(vector_base) == {"pending": 6, "ready": FILES}
    vector_base.settle()
    assert vector_base.index(docs).counts == {"unchanged": FILES, "embedded": 6}
    assert_whole(vector_base)


def test_the_key_is_in_no_command_line_and_in_no_file(
    vector_base: Base, docs: Path, embedder: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P19: not of a worker process, and not in the spool, the stores or what the queue was started with."""
    monkeypatch.setenv("KNOWLEDGE_TEST_KEY", KEY)
    embedder.behaviour.key = KEY
    keyed = with_embeddings(vector_base, embedder, api_key_env="KNOWLEDGE_TEST_KEY")
    seen: list[bytes] = []

    def look() -> None:
        seen.extend((Path("/proc") / str(pid) / "cmdline").read_bytes() for pid in children())
        seen.extend(path.read_bytes() for path in vector_base.layout.home.rglob("*") if path.is_file())

    assert keyed.index(docs, worker_processes=1, progress=Watched(look)).state == "done"
    assert len(seen) > 2
    assert not any(KEY.encode() in content for content in seen)
    assert len(texts_of(embedder)) == CHUNKS
