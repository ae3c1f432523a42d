"""kill -9 in the middle of embedding: nothing half is stored, and the next run sends only what was not committed."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.runs import Base
from tests.support.trees import make_tree
from tests.support.vector_runs import DIMENSION, assert_whole, base_with, misplaced, texts_of, tree_of, uncovered
from tests.support.waiting import eventually

pytestmark = pytest.mark.redis

FILES = 96
CHUNKS = 3
ANSWERED = 12  # requests, the probe among them, before the server holds; each is the page of four files

STARTER = """
import sys
from pathlib import Path
from domain.settings import EmbeddingsSettings, QueueSettings
from tests.support.runs import base_in
home, docs, url, commit, processes = sys.argv[1:]
embeddings = EmbeddingsSettings(base_url=url, model="m", batch=16, commit=commit)
base = base_in(Path(home), queue=QueueSettings(files_per_job=4), embeddings=embeddings)
base.index(Path(docs), worker_processes=int(processes))
"""


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server(dimension=DIMENSION, held_after=ANSWERED) as running:
        yield running


@pytest.mark.skipif(sys.platform != "linux", reason="that its processes die with a run is Linux's part")
@pytest.mark.parametrize("commit", ["together", "words_first"])
@pytest.mark.parametrize("processes", [0, 1])
def test_a_killed_run_is_gone_on_with(tmp_path: Path, server: EmbeddingServer, commit: str, processes: int) -> None:
    """P1, P2, P4, faults 18: no embedding call for a text whose vector is committed."""
    docs = make_tree(tmp_path / "docs", tree_of(FILES, CHUNKS))
    with base_with(tmp_path, server, commit=commit) as base:
        _run_and_kill(tmp_path, docs, server, commit, processes, base)
        assert misplaced(base) == []
        committed = base.rows("SELECT count(*) FROM embeddings")[0][0]
        if commit == "together":
            assert uncovered(base) == []
            assert 0 < len(base.stored_keys()) < FILES
        assert 0 < committed < FILES * CHUNKS
        server.requests.clear()
        server.behaviour.held_after = None
        assert base.index(docs).state == "done"
        assert len(texts_of(server)) == FILES * CHUNKS - committed
        assert len(base.stored_keys()) == FILES
        assert_whole(base)


def _run_and_kill(where: Path, docs: Path, server: EmbeddingServer, commit: str, processes: int, base: Base) -> None:
    """Start a run of its own, and kill it when some of its vectors are stored and the server answers no more."""

    def some_are_stored() -> bool:
        if not base.layout.database.exists():
            return False
        tables = base.rows("SELECT 1 FROM sqlite_schema WHERE name = 'embeddings'")
        return bool(tables) and base.rows("SELECT count(*) FROM embeddings")[0][0] > 0

    command = [sys.executable, "-c", STARTER, str(where), str(docs), server.url, commit, str(processes)]
    starter = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    try:
        eventually(some_are_stored)
    finally:
        starter.kill()
        starter.wait()
