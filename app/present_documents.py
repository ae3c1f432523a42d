"""`knowledge show`: a chunk with its neighbours, or a document, in words and as JSON."""

from collections.abc import Iterator

from app.present import Json, note_lines, tier_line, utc
from app.present_safe import display, name, one_line
from app.showing import ShownChunk, ShownDocument
from domain.citations import Citation
from domain.keys import is_plain_text
from domain.markdown.frontmatter import metadata_of
from domain.status import Standing, Tier
from store.port import StoredChunk, StoredDocument


def shown_notes(standing: Standing) -> list[str]:
    """What is to be said of the index behind a text that was found: only that it may not be the newest, as a line."""
    return note_lines(standing) if standing is Standing.OUTDATED else []


def shown_status(standing: Standing) -> str:
    return standing.value if standing is Standing.OUTDATED else "ok"


def chunk_text(shown: ShownChunk, tier: Tier, standing: Standing) -> str:
    """The tier line, then each chunk under its citation; a sign stands at the cited one among neighbours."""
    lines = [tier_line(tier), *shown_notes(standing)]
    for chunk in shown.chunks:
        lines += ["", *_chunk_lines(chunk, is_cited=chunk.ordinal == shown.cited and len(shown.chunks) > 1)]
    return "\n".join(lines) + "\n"


def _chunk_lines(chunk: StoredChunk, *, is_cited: bool) -> Iterator[str]:
    sign = "> " if is_cited else ""
    yield f"{sign}{name(Citation(chunk.key, chunk.ordinal).format())}  {one_line(chunk.title)}"
    breadcrumb = one_line(chunk.heading_path)
    where = f"lines {chunk.start_line}-{chunk.end_line}"
    yield f"{breadcrumb} · {where}" if breadcrumb else where
    yield ""
    yield display(chunk.body).rstrip("\n")


def exact_chunks(shown: ShownChunk) -> str:
    """The bodies alone, with what stands between them."""
    parts = [chunk.lead + chunk.body if number else chunk.body for number, chunk in enumerate(shown.chunks)]
    return "".join(parts)


def document_on_terminal(shown: ShownDocument) -> str:
    text = display(shown.text)
    return text if text.endswith("\n") or not text else f"{text}\n"


def chunk_json(shown: ShownChunk, tier: Tier, standing: Standing) -> Json:
    return {
        "tier": tier_line(tier),
        "status": shown_status(standing),
        "citation": Citation(shown.document.key, shown.cited).format(),
        **_document_fields(shown.document, shown.opening),
        "chunks": [
            {
                "citation": Citation(chunk.key, chunk.ordinal).format(),
                "ordinal": chunk.ordinal,
                "heading_path": chunk.heading_path,
                "start_line": chunk.start_line,
                "end_line": chunk.end_line,
                "content": chunk.body,
            }
            for chunk in shown.chunks
        ],
    }


def document_json(shown: ShownDocument, tier: Tier, standing: Standing) -> Json:
    return {
        "tier": tier_line(tier),
        "status": shown_status(standing),
        **_document_fields(shown.document, shown.opening),
        "first_line": shown.first_line,
        "is_part": shown.is_part,
        "content": shown.text,
    }


def _document_fields(document: StoredDocument, opening: str) -> Json:
    import json

    return {
        "path": document.key,
        "root": document.root,
        "title": document.title,
        "size_bytes": document.size_bytes,
        "chunk_count": document.chunk_count,
        "metadata": {} if is_plain_text(document.key) else dict(metadata_of(opening)),
        "warnings": json.loads(document.warnings),
        "document_sha256": document.file_hash.hex(),
        "indexed_at": utc(document.indexed_ns),
        "modified_at": utc(document.mtime_ns),
    }
