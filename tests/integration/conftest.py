"""Bases that several modules start from; one that needs another kind has a fixture of its own by the same name."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.settings import Settings
from tests.support.bases import build_base, settings_of
from tests.support.scratch import scratch_directory


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty directory, in memory where there is some."""
    with scratch_directory() as path:
        yield path


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
