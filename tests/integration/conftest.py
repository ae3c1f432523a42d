"""Bases that several modules start from; one that needs another kind has a fixture of its own by the same name."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.settings import Settings
from tests.support.bases import build_base, settings_of
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.runs import Base
from tests.support.scratch import scratch_directory
from tests.support.vector_runs import DIMENSION, base_with


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty directory, in memory where there is some."""
    with scratch_directory() as path:
        yield path


@pytest.fixture
def out(place: Path) -> Path:
    """An empty directory beside the base."""
    (place / "out").mkdir()
    return place / "out"


@pytest.fixture(scope="module")
def template() -> Iterator[Settings]:
    """A small indexed base; not to be written to."""
    with scratch_directory() as path:
        yield build_base(path)


@pytest.fixture
def base(template: Settings) -> Iterator[Settings]:
    """A copy of the template."""
    with scratch_directory() as path:
        shutil.copytree(template.home, path / "home")
        yield settings_of(path / "home")


@pytest.fixture
def embedder() -> Iterator[EmbeddingServer]:
    """A server of embeddings that answers honestly until it is told otherwise."""
    with embedding_server(dimension=DIMENSION) as running:
        yield running


@pytest.fixture
def vector_base(tmp_path: Path, embedder: EmbeddingServer) -> Iterator[Base]:
    """An empty base whose vectors come from that server; its runs may leave nothing behind."""
    with base_with(tmp_path, embedder) as made:
        yield made
