"""Real documents, where a checkout has them beside itself; tests that need them are skipped elsewhere."""

import tarfile
from pathlib import Path

import pytest

_SHARED = Path(__file__).parents[3] / "shared"
_ARCHIVE = _SHARED / "corpora" / "docs-2k.tar.xz"
_CRANFIELD = _SHARED / "collections" / "cranfield"


def unpack_docs_2k(into: Path) -> list[Path]:
    """The 2,000 Markdown files of the corpus, unpacked below `into`, in order of their paths."""
    if not _ARCHIVE.is_file():
        pytest.skip("the corpus docs-2k.tar.xz does not lie beside this checkout")
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(into, filter="data")
    return sorted(into.rglob("*.md"))


def cranfield() -> Path:
    """The test collection: documents.jsonl, queries.tsv and qrels.tsv are in it."""
    if not _CRANFIELD.is_dir():
        pytest.skip("the collection cranfield does not lie beside this checkout")
    return _CRANFIELD


def read_text(path: Path) -> str:
    """A file's text, its line ends as they are."""
    return path.read_bytes().decode("utf-8")
