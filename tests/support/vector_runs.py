"""Index runs with a vector tier, and the proof that every stored vector is the one of its own text (P6)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from domain.settings import EmbeddingsSettings, QueueSettings, Settings
from domain.vectors import CANARY_TEXTS
from tests.support.audit import audit
from tests.support.embedding_server import EmbeddingServer, is_vector_of
from tests.support.runs import Base, base_in, nothing_left

DIMENSION = 24
SMALL_PAGES = QueueSettings(files_per_job=4)

_LINKED = (
    "SELECT documents.key, chunks.heading_path, chunks.body, chunks.lead, vector_identities.document_prefix,"
    " embeddings.vector, embeddings.parts FROM chunks JOIN documents ON documents.id = chunks.document"
    " LEFT JOIN vector_links ON vector_links.chunk = chunks.id AND vector_links.identity ="
    " (SELECT id FROM vector_identities WHERE state = ?)"
    " LEFT JOIN embeddings ON embeddings.id = vector_links.embedding"
    " LEFT JOIN vector_identities ON vector_identities.id = embeddings.identity"
    " ORDER BY documents.key, chunks.ordinal"
)


def settings_for(server: EmbeddingServer, **changes: Any) -> EmbeddingsSettings:
    fields: dict[str, Any] = {"base_url": server.url, "model": "m", "timeout_s": 5.0, "batch": 8}
    return EmbeddingsSettings(**(fields | changes))


@contextmanager
def base_with(where: Path, server: EmbeddingServer, **changes: Any) -> Iterator[Base]:
    """A base whose vectors come from the server; nothing of its runs may be left behind."""
    base = base_in(where, queue=SMALL_PAGES, embeddings=settings_for(server, **changes))
    with nothing_left(base):
        yield base


def with_embeddings(base: Base, server: EmbeddingServer | None, **changes: Any) -> Base:
    """The same base under another configuration of embeddings; None: without."""
    from msgspec.structs import replace

    embeddings = None if server is None else settings_for(server, **changes)
    return Base(replace(base.settings, embeddings=embeddings))


def sent_text_of(prefix: str, heading_path: str, body: str, lead: str) -> str:
    """The rule of the text really sent, in words of its own (S0-25)."""
    start = prefix.replace("{title}", heading_path if heading_path else "none")
    if not heading_path and not body:
        return start + lead.strip()
    return start + heading_path + ("\n\n" if heading_path and body else "") + body


def misplaced(base: Base, *, state: str = "active", dimension: int = DIMENSION) -> list[str]:
    """Documents with a vector that is not the one of its chunk's text; means of parts are left out."""
    rows = base.rows(_LINKED, state)
    return [
        key
        for key, heading_path, body, lead, prefix, vector, parts in rows
        if vector is not None
        and parts == 1
        and not is_vector_of(vector, sent_text_of(prefix, heading_path, body, lead), dimension)
    ]


def misplaced_in(database: Path, dimension: int) -> tuple[int, list[str]]:
    """How many vectors answer in a base, and the documents with one that is not of its chunk's text."""
    base = Base(Settings(identity="", home=database.parent, config_path=None, configured=False))
    ((count,),) = base.rows("SELECT count(*) FROM embeddings")
    return count, misplaced(base, dimension=dimension)


def uncovered(base: Base, *, state: str = "active") -> list[str]:
    """Documents with a chunk that has no vector."""
    return sorted({row[0] for row in base.rows(_LINKED, state) if row[5] is None})


def states(base: Base) -> dict[str, int]:
    return dict(base.rows("SELECT vector_state, count(*) FROM documents GROUP BY 1"))


def texts_of(server: EmbeddingServer) -> list[str]:
    """What was sent of users' texts: the fixed texts of a probe are none."""
    return [text for text in server.texts_seen if text not in CANARY_TEXTS]


def tree_of(count: int, chunks: int = 3) -> dict[str, str | bytes]:
    """Files with some sections each, every text its own."""
    return {
        f"{number // 8:02}/{number:03}.md": "".join(
            f"# Part {part} of {number}\n\ntext {part} of file {number}, about matter {number * 31 + part}\n\n"
            for part in range(chunks)
        )
        for number in range(count)
    }


def assert_whole(base: Base) -> None:
    """Every document is covered, every vector in its place, and the audit finds nothing."""
    assert misplaced(base) == []
    assert uncovered(base) == []
    assert audit(base.layout.database) == []
