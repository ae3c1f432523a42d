"""`sources` in words and as JSON: the roots, and their documents."""

from collections.abc import Sequence

from app.discovery import Located
from app.present import Json, count, index_line, note_lines, standing_notes, tier_line, utc
from app.present_safe import name
from app.status import BaseStatus, RootStatus
from app.tiers import base_tier
from domain.settings import Settings
from domain.status import Standing, Tier
from store.port import StoredDocument

_ROOT_NOTES = {"left": "no longer in the configuration; still answers until `knowledge rm --root`"}


def sources_text(status: BaseStatus, located: Located, settings: Settings) -> str:
    """The roots; their documents follow, where all were asked for (`document_lines`)."""
    lines = [tier_line(base_status_tier(status, settings)), index_line(located, settings), *note_lines(status.standing)]
    lines += [root_words(root) for root in status.roots] or ["no root yet"]
    return "\n".join(lines) + "\n"


def document_lines(documents: Sequence[StoredDocument]) -> str:
    """A key a line, as `show` takes it."""
    return "".join(f"{name(document.key)}\n" for document in documents)


def sources_json(status: BaseStatus, settings: Settings, documents: Sequence[StoredDocument] | None) -> Json:
    value: Json = {
        "tier": tier_line(base_status_tier(status, settings)),
        "status": status.standing.value,
        "home": str(status.home),
        "documents": status.documents,
        "roots": [root_json(root) for root in status.roots],
    }
    if documents is not None:
        value["sources"] = [_document_json(document) for document in documents]
    return value


def documents_json(
    documents: Sequence[StoredDocument], tier: Tier, standing: Standing, next_cursor: str | None
) -> Json:
    """A page of the documents, by path."""
    return {
        "tier": tier_line(tier),
        "status": standing.value,
        "note": "; ".join(standing_notes(standing)) or None,
        "documents": [_document_json(document) for document in documents],
        "next_cursor": next_cursor,
    }


def _document_json(document: StoredDocument) -> Json:
    return {
        "path": document.key,
        "root": document.root,
        "title": document.title,
        "size_bytes": document.size_bytes,
        "chunks": document.chunk_count,
        "document_sha256": document.file_hash.hex(),
        "indexed_at": utc(document.indexed_ns),
        "modified_at": utc(document.mtime_ns),
    }


def root_words(root: RootStatus) -> str:
    parts = [count(root.documents, "document"), count(root.chunks, "chunk")]
    parts += [f"{root.skipped:,} skipped"] * bool(root.skipped) + [f"{root.failed:,} failed"] * bool(root.failed)
    parts += [f"only {count(len(root.single_files), 'named file')}"] * bool(root.single_files)
    parts += ["the folder is not there now"] * (not root.is_there)
    if root.kind in _ROOT_NOTES:
        parts.append(_ROOT_NOTES[root.kind])
    return f"{name(root.name)} = {name(root.path)} ({', '.join(parts)})"


def root_json(root: RootStatus) -> Json:
    return {
        "name": root.name,
        "path": root.path,
        "kind": root.kind,
        "is_there": root.is_there,
        "single_files": list(root.single_files),
        "documents": root.documents,
        "chunks": root.chunks,
        "skipped": root.skipped,
        "failed": root.failed,
    }


def base_status_tier(status: BaseStatus, settings: Settings) -> Tier:
    return base_tier(settings, status.vectors, has_documents=status.documents > 0)
