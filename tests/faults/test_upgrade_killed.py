"""kill -9 of an upgrade at each of its steps: the old index or the new one stands, and the next command goes on."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import maintenance
from app.doctor import diagnose
from app.progress import RunProgress
from app.upgrade_report import UpgradeReport, UpgradeRequest, UpgradeStatus
from app.upgrading import upgrade
from app.wiring import readable_base
from domain.checks import CheckState
from domain.errors import FormatError, InterruptedRunError
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.old_stores import OLD
from tests.support.runs import Base, Watched
from tests.support.trees import make_tree
from tests.support.vector_runs import DIMENSION, assert_whole, base_with, texts_of, tree_of

pytestmark = pytest.mark.redis

FILES, CHUNKS = 12, 3
TEXTS = FILES * CHUNKS

STARTER = """
import os, signal, sys
from pathlib import Path
from importlib import import_module
from app.progress import RunProgress
from app.upgrade_report import UpgradeRequest
from app.upgrading import upgrade
from domain.settings import EmbeddingsSettings, QueueSettings
from store import upgrade_vectors
from tests.support.runs import Watched, base_in
home, url, step, times = sys.argv[1:]
upgrade_vectors.PAGE_BYTES = 400
calls = 0
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def deadly(real):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == int(times):
            die()
        return real(*arguments, **named)
    return call
progress = RunProgress()
if step.startswith("progress."):
    progress = Watched(die, step.removeprefix("progress."))
else:
    module, _, name = step.rpartition(".")
    setattr(import_module(module), name, deadly(getattr(import_module(module), name)))
embeddings = EmbeddingsSettings(base_url=url, model="m", batch=8, timeout_s=5.0)
base = base_in(Path(home), queue=QueueSettings(files_per_job=4), embeddings=embeddings)
upgrade(base.settings, UpgradeRequest(worker_processes=0), progress)
"""

# the module and the name that are called at a step, and at which call of it the process is killed
BEFORE = {
    "before the folder is made": ("app.upgrading.prepare", 1),
    "the new database is made": ("app.upgrading.open_store_writer", 1),
    "the first vectors are taken": ("store.upgrade_vectors.insert_embeddings", 1),
    "some vectors are taken": ("store.upgrade_vectors.insert_embeddings", 3),
    "some files are written": ("progress.written", 1),
    "the run is over": ("app.upgrading.check", 1),
    "the log is folded in": ("app.upgrade_staging.fold_log_in", 1),
    "before the rename": ("app.upgrade_staging.make_ready", 1),
}
AFTER = {
    "after the rename": ("app.upgrade_staging.finish_restore", 1),
    "the old files are removed": ("store.pending_restore.sync_directory", 3),
    "before the run is recorded": ("app.upgrading.record_end", 1),
}


@pytest.fixture
def embedder() -> Iterator[EmbeddingServer]:
    with embedding_server(dimension=DIMENSION) as running:
        yield running


@pytest.fixture
def old(tmp_path: Path, embedder: EmbeddingServer) -> Iterator[Base]:
    """A base of an older format, with vectors; its runs may leave nothing behind."""
    with base_with(tmp_path, embedder) as base:
        base.index(make_tree(tmp_path / "docs", tree_of(FILES, CHUNKS)))
        OLD["a column less"](base.layout.database)
        embedder.requests.clear()
        yield base


def killed(base: Base, server: EmbeddingServer, step: tuple[str, int]) -> None:
    where, times = step
    command = [sys.executable, "-c", STARTER, str(base.layout.home.parent), server.url, where, str(times)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=False, timeout=60)
    assert done.returncode == -9, done.stderr.decode()


def upgraded(base: Base) -> UpgradeReport:
    return upgrade(base.settings, UpgradeRequest(worker_processes=0), RunProgress())


@pytest.mark.parametrize("step", list(BEFORE))
def test_before_the_rename_the_old_index_stands(old: Base, embedder: EmbeddingServer, step: str) -> None:
    before = old.layout.database.read_bytes()
    killed(old, embedder, BEFORE[step])
    assert old.layout.database.read_bytes() == before
    with pytest.raises(FormatError, match="older format"), readable_base(old.settings):
        pass
    with old.state() as state:
        assert [root.last_full_generation for root in state.roots()] == [1]
    states = {result.name: result.state for result in diagnose(old.settings)}
    is_left = old.layout.upgrade_staging.exists()
    assert states["upgrade"] is (CheckState.FAIL if is_left else CheckState.PASS)
    report = upgraded(old)
    assert report.status is UpgradeStatus.UPGRADED
    assert report.is_continued == old_was_made(step)
    assert texts_of(embedder) == []
    assert_whole(old)
    assert maintenance.verify(old.settings, deep=True).exit_status == 0
    assert not old.layout.upgrade_staging.exists()


def old_was_made(step: str) -> bool:
    """Whether there is a database to go on with by this step."""
    return step not in ("before the folder is made", "the new database is made")


@pytest.mark.parametrize("step", list(AFTER))
def test_after_the_rename_the_next_command_finishes(old: Base, embedder: EmbeddingServer, step: str) -> None:
    """Whichever command it is: a reader here. The same verb has nothing left to do."""
    killed(old, embedder, AFTER[step])
    with readable_base(old.settings) as opened:
        assert opened.store.reader().chunk_total() == TEXTS
    assert list(old.layout.home.glob("restore*")) == []
    assert not old.layout.upgrade_staging.exists()
    assert upgraded(old).status is UpgradeStatus.CURRENT
    assert texts_of(embedder) == []
    assert_whole(old)
    assert maintenance.verify(old.settings, deep=True).exit_status == 0
    assert old.index().counts == {"unchanged": FILES}


def test_an_interrupt(old: Base, embedder: EmbeddingServer) -> None:
    """Ctrl-C: 130, the old index as it was, and what was made is gone on with."""
    before = old.layout.database.read_bytes()
    progress = Watched(lambda: os.kill(os.getpid(), signal.SIGINT), "written")
    with pytest.raises(InterruptedRunError, match="the old index is as it was"):
        upgrade(old.settings, UpgradeRequest(worker_processes=0), progress)
    assert old.layout.database.read_bytes() == before
    assert old.last_run()[0] == "interrupted"
    assert upgraded(old).is_continued
    assert_whole(old)
