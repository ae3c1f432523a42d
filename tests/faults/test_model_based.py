"""P1, P7, C-04, C-07: whatever happens to the files, and whenever a run is killed, the index ends as they are.

The oracle is the tree itself; at the end a fresh index of it must hold the same documents and find the same words,
and an audit that shares no code with the product must have nothing to say.
"""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.index_request import IndexRequest
from app.indexing import run_index
from app.progress import RunProgress
from domain.layout import BaseLayout
from tests.support.audit import audit
from tests.support.bases import settings_of
from tests.support.model import ModelTree, searched, stored_documents

STEPS_BETWEEN_RUNS = 6
RUNS = 7

pytestmark = pytest.mark.redis


def index(home: Path, root: Path) -> None:
    run_index(settings_of(home), IndexRequest(paths=(root,), allow_mass_delete=True), RunProgress())


def killed_run(where: Path, root: Path, after_s: float) -> None:
    """The installed command, killed after a while: at any moment of its run, or after it."""
    command = [sys.executable, "-P", "-m", "cli.main", "index", str(root), "--quiet", "--allow-mass-delete"]
    process = subprocess.Popen(command, cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(after_s)
    process.kill()
    process.wait()


@pytest.mark.parametrize("seed", range(4))
def test_index_follows_any_sequence_of_edits(tmp_path: Path, seed: int) -> None:
    """S0-27, S1-07: after every run the store holds what the tree holds, no more and no less."""
    source = random.Random(seed)
    tree = ModelTree(tmp_path / "docs", source)
    tree.root.mkdir()
    for _ in range(25):
        tree.create()
    home = tmp_path / "home"
    database = BaseLayout(home).database
    for _ in range(RUNS):
        index(home, tree.root)
        assert stored_documents(database) == tree.documents(), tree.history
        for _ in range(STEPS_BETWEEN_RUNS):
            tree.step()
    index(home, tree.root)
    assert audit(database) == []
    index(tmp_path / "fresh", tree.root)
    fresh = BaseLayout(tmp_path / "fresh").database
    assert stored_documents(database) == stored_documents(fresh), tree.history
    assert searched(database) == searched(fresh), tree.history


@pytest.mark.parametrize("seed", range(3))
def test_killed_runs_lose_nothing_and_leave_nothing_half(tmp_path: Path, seed: int) -> None:
    """P1, P2, C-07: kill -9 at random moments of `index`; the store stays sound and the next run does the rest."""
    source = random.Random(100 + seed)
    tree = ModelTree(tmp_path / "docs", source)
    tree.root.mkdir()
    for _ in range(120):
        tree.create()
    home = tmp_path / "knowledge" / "default"
    database = BaseLayout(home).database
    versions = set(tree.documents().items())  # every version that ever was; nothing else may be stored
    for _ in range(5):
        killed_run(tmp_path, tree.root, source.uniform(0.1, 1.2))
        if database.exists() and database.stat().st_size:
            assert audit(database) == [], tree.history
            assert stored_documents(database).items() <= versions
        for _ in range(STEPS_BETWEEN_RUNS):
            tree.step()
        versions |= tree.documents().items()
    index(home, tree.root)
    assert audit(database) == []
    assert stored_documents(database) == tree.documents(), tree.history
