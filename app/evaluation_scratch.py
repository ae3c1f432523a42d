"""A base for one measurement: a collection's documents as files, indexed as every folder is, then gone."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from app.evaluation_collection import DOCUMENTS, CollectionDocument
from app.index_request import Announce, IndexRequest
from app.indexing import run_index
from app.outcomes import IndexReport
from app.progress import RunProgress
from domain.errors import InterruptedRunError, UsageError
from domain.settings import EmbeddingsSettings, QueueSettings, RootSettings, Settings

ROOT = "collection"
FILES_A_FOLDER = 1000
_PREFIX = "knowledge-eval-"
_MAX_FILE_BYTES = 64 * 1024 * 1024  # a document is in the measurement, however long


class ScratchBase(Struct, frozen=True):
    settings: Settings
    report: IndexReport
    ids: dict[str, str]  # the collection's id of each document, by its key in the base


@contextmanager
def scratch_base(
    settings: Settings,
    embeddings: EmbeddingsSettings | None,
    documents: Iterable[CollectionDocument],
    progress: RunProgress,
    announce: Announce = lambda notice: None,
) -> Iterator[ScratchBase]:
    """Index the documents in a temporary folder, which is removed at the end, however it comes.

    `announce` is told before the first text goes to an embeddings server. Raises InterruptedRunError for Ctrl-C.
    """
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        place = Path(name)
        try:
            ids = write_documents(place / ROOT, documents)
            scratch = _scratch_settings(settings, embeddings, place)
            yield ScratchBase(scratch, run_index(scratch, IndexRequest(), progress, announce=announce), ids)
        except (KeyboardInterrupt, InterruptedRunError):
            raise InterruptedRunError("interrupted; nothing is left of the measurement") from None


def _scratch_settings(settings: Settings, embeddings: EmbeddingsSettings | None, place: Path) -> Settings:
    return replace(
        settings,
        identity="evaluation",
        home=place / "index",
        configured=True,
        roots=(RootSettings(place / ROOT, name=ROOT),),
        max_file_bytes=_MAX_FILE_BYTES,
        queue=QueueSettings(),
        embeddings=embeddings,
    )


def write_documents(folder: Path, documents: Iterable[CollectionDocument]) -> dict[str, str]:
    """Each document as a file; the keys they will have, with their ids. Raises UsageError for an id that comes twice.

    Files are named by number: no id, whatever is in it, becomes a part of a path. The names are of no language, so no
    query finds a document by its number.
    """
    ids: dict[str, str] = {}
    seen: set[str] = set()
    for number, document in enumerate(documents):
        if (name := str(document.id)) in seen:
            raise UsageError(f"two documents have the id {name!r}", hint=f"an id stands once in {DOCUMENTS}")
        seen.add(name)
        relative = f"c{number // FILES_A_FOLDER:06}/d{number:09}.md"
        path = folder / relative
        if number % FILES_A_FOLDER == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(as_markdown(document).encode())
        ids[f"{ROOT}/{relative}"] = name
    if not ids:
        raise UsageError(f"{DOCUMENTS} holds no document", hint="a document is a JSON object a line: id, title, text")
    return ids


def as_markdown(document: CollectionDocument) -> str:
    """The title as a heading, the text below it. A blank line in front keeps dashes from being frontmatter."""
    title = " ".join(document.title.split())
    return f"# {title}\n\n{document.text}\n" if title else f"\n{document.text}\n"
