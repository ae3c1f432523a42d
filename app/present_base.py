"""`status`, `stats` and `sources` in words and as JSON."""

from collections.abc import Iterator, Sequence

from app.discovery import Located
from app.present import Json, age_seconds, ago, count, duration, index_line, size, tier_line, utc
from app.present_reasons import counts_words, reason_words
from app.present_safe import name, one_line
from app.status import BaseStatus, RootStatus
from app.tiers import base_tier
from domain.errors import KnowledgeError
from domain.settings import Settings
from domain.status import Tier
from store.port import StoredDocument
from store.state_port import RunRecord
from store.vector_port import NO_VECTORS

_COMPLETENESS = {
    "complete": "complete",
    "empty": "complete, and empty: no file of its roots can be indexed",
    "incomplete": "not complete: no full run has seen everything yet",
}
_RUN_STATES = {
    "walking": "going on",
    "waiting": "waiting",
    "done": "ended well",
    "partial": "ended with files left out",
    "failed": "failed",
    "interrupted": "was interrupted",
}
_METHODS = {
    "none": "nothing to search",
    "exact": "each compared by a search",
    "bits": "searched by their packed signs first",
}
_ROOT_NOTES = {"left": "no longer in the configuration; still answers until `knowledge rm --root`"}


def status_text(status: BaseStatus, located: Located, settings: Settings, now_ns: int) -> str:
    """One screen."""
    lines = [tier_line(_tier(status, settings)), index_line(located, settings)]
    lines.append(f"state: {_COMPLETENESS[status.completeness]}; last full run {_complete_ago(status, now_ns)}")
    held = f", {count(status.skipped, 'file')} skipped" if status.skipped else ""
    lines.append(f"holds: {count(status.documents, 'document')}, {count(status.chunks, 'chunk')}{held}")
    lines += list(_vector_state_lines(status, settings))
    lines += [f"root: {_root_words(root)}" for root in status.roots]
    lines.append(f"now: {_running_words(status, now_ns)}")
    lines.append(f"last run: {_run_words(status.last_run, now_ns)}")
    lines += list(_failure_lines(status))
    return "\n".join(lines) + "\n"


def _vector_state_lines(status: BaseStatus, settings: Settings) -> Iterator[str]:
    """What of the vectors is still to come."""
    vectors = status.vectors
    if vectors.pending_documents:
        pending = f"{count(vectors.pending_documents, 'document')} ({count(vectors.pending_chunks, 'chunk')})"
        yield f"vectors: pending for {pending}; `knowledge index` makes them"
    if vectors.building is not None:
        yield f"vectors: a set of {name(vectors.building.identity.model)} is {_building_words(status, settings)}"


def _building_words(status: BaseStatus, settings: Settings) -> str:
    """How a set that does not answer yet stands, and what brings it to its end."""
    building = status.vectors.building
    if status.holder:
        return "being made; it answers once it is complete"
    if building is None or settings.embeddings is None:
        return "half made"
    from retrieval.query_vector import WantedVectors

    if WantedVectors.of(settings.embeddings).difference(building):
        return "half made, and not what the configuration asks for; `knowledge index --reindex` drops it"
    return "half made; `knowledge index --reindex` makes the rest"


def status_json(status: BaseStatus, located: Located, settings: Settings, now_ns: int) -> Json:
    return {
        "tier": tier_line(_tier(status, settings)),
        "status": status.completeness,
        "home": str(status.home),
        "base": located.words(),
        "identity": settings.identity,
        "index": {
            "commit_seq": status.identity.commit_seq,
            "complete_at": utc(status.identity.complete_ns),
            "age_seconds": age_seconds(status.identity.complete_ns, now_ns),
            "documents": status.documents,
            "chunks": status.chunks,
            "skipped": status.skipped,
            "pending_vectors": status.vectors.pending_chunks,
            "failed": status.failed,
            "run_in_progress": _run_json(status.running, is_running=True),
        },
        "locked_by": status.holder or None,
        "last_run": _run_json(status.last_run),
        "failures": [
            {
                "reason": group.reason,
                "count": group.count,
                "first": group.first,
                "detail": group.detail,
                "last_at": utc(group.last_ns),
            }
            for group in status.failures
        ],
        "roots": [_root_json(root) for root in status.roots],
    }


def not_built_status_json(error: KnowledgeError, located: Located, settings: Settings) -> Json:
    return {
        "tier": tier_line(base_tier(settings, NO_VECTORS, has_documents=False)),
        "status": error.code,
        "home": str(settings.home),
        "base": located.words(),
        "identity": settings.identity,
        "index": None,
        "error": {"code": error.code, "message": error.message, "hint": error.hint},
    }


def stats_text(status: BaseStatus, located: Located, settings: Settings, now_ns: int) -> str:
    rows = (
        ("documents", f"{status.documents:,}"),
        ("chunks", f"{status.chunks:,}"),
        ("skipped files", f"{status.skipped:,}"),
        ("failed files", f"{status.failed:,}"),
        ("vectors", _vector_words(status)),
        ("knowledge.db", f"{size(status.database_bytes)}, of it {size(status.wal_bytes)} write-ahead log"),
        ("state.db", size(status.state_bytes)),
        ("format", str(status.identity.format_version)),
        ("commits", f"{status.identity.commit_seq:,}"),
        ("substring index", status.identity.substring_index),
        ("last full run", _complete_ago(status, now_ns)),
        ("modified", f"{utc(status.modified_ns)} ({ago(status.modified_ns, now_ns)})"),
    )
    lines = [tier_line(_tier(status, settings)), index_line(located, settings)]
    lines += [f"{label:<16} {value}" for label, value in rows]
    return "\n".join(lines) + "\n"


def _tier(status: BaseStatus, settings: Settings) -> Tier:
    return base_tier(settings, status.vectors, has_documents=status.documents > 0)


def _vector_words(status: BaseStatus) -> str:
    """`18,189 (256 dimensions, 34.1 MB), searched by bits; 12 from parts; 3 unused; 40 chunks pending`."""
    counts, active = status.vector_counts, status.vectors.active
    if counts is None or active is None:
        return "none" if status.vectors.building is None else f"none yet: the first ones are {_made(status)}"
    about = f"{active.identity.dimension} dimensions, {size(counts.bytes)}"
    words = f"{counts.vectors:,} ({about}), {_METHODS[counts.method]}"
    told = (
        (counts.from_parts, "of texts too long for the model, from their parts"),
        (counts.unused, "kept for files that may come back"),
        (status.vectors.pending_chunks, "still to be made"),
    )
    words += "".join(f"; {number:,} {what}" for number, what in told if number)
    return words + (f"; a new set is {_made(status)}" if status.vectors.building is not None else "")


def _made(status: BaseStatus) -> str:
    return "being made" if status.holder else "half made"


def stats_json(status: BaseStatus, settings: Settings) -> Json:
    counts, active = status.vector_counts, status.vectors.active
    return {
        "tier": tier_line(_tier(status, settings)),
        "home": str(status.home),
        "documents": status.documents,
        "chunks": status.chunks,
        "skipped": status.skipped,
        "failed": status.failed,
        "vectors": counts.vectors if counts else 0,
        "vectors_linked": counts.linked_chunks if counts else 0,
        "vectors_from_parts": counts.from_parts if counts else 0,
        "vectors_unused": counts.unused if counts else 0,
        "vector_bytes": counts.bytes if counts else 0,
        "vector_search": counts.method if counts else "none",
        "pending_vectors": status.vectors.pending_chunks,
        "embedding_model": active.identity.model if active else None,
        "embedding_served_model": active.identity.served_model if active else None,
        "embedding_dimension": active.identity.dimension if active else None,
        "embedding_normalised": active.identity.normalised if active else None,
        "vectors_building": status.vectors.building is not None,
        "database_bytes": status.database_bytes,
        "wal_bytes": status.wal_bytes,
        "state_bytes": status.state_bytes,
        "format_version": status.identity.format_version,
        "commit_seq": status.identity.commit_seq,
        "store_uuid": status.identity.store_uuid,
        "substring_index": status.identity.substring_index,
        "complete_at": utc(status.identity.complete_ns),
        "modified_at": utc(status.modified_ns),
    }


def sources_text(status: BaseStatus, located: Located, settings: Settings) -> str:
    """The roots; their documents follow, where all were asked for (`document_lines`)."""
    lines = [tier_line(_tier(status, settings)), index_line(located, settings)]
    lines += [_root_words(root) for root in status.roots] or ["no root yet"]
    return "\n".join(lines) + "\n"


def document_lines(documents: Sequence[StoredDocument]) -> str:
    """A key a line, as `show` takes it."""
    return "".join(f"{name(document.key)}\n" for document in documents)


def sources_json(status: BaseStatus, settings: Settings, documents: Sequence[StoredDocument] | None) -> Json:
    value: Json = {
        "tier": tier_line(_tier(status, settings)),
        "home": str(status.home),
        "documents": status.documents,
        "roots": [_root_json(root) for root in status.roots],
    }
    if documents is not None:
        value["sources"] = [_document_json(document) for document in documents]
    return value


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


def _root_words(root: RootStatus) -> str:
    parts = [count(root.documents, "document"), count(root.chunks, "chunk")]
    parts += [f"{root.skipped:,} skipped"] * bool(root.skipped) + [f"{root.failed:,} failed"] * bool(root.failed)
    parts += [f"only {count(len(root.single_files), 'named file')}"] * bool(root.single_files)
    parts += ["the folder is not there now"] * (not root.is_there)
    if root.kind in _ROOT_NOTES:
        parts.append(_ROOT_NOTES[root.kind])
    return f"{name(root.name)} = {name(root.path)} ({', '.join(parts)})"


def _root_json(root: RootStatus) -> Json:
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


def _complete_ago(status: BaseStatus, now_ns: int) -> str:
    return ago(status.identity.complete_ns, now_ns)


def _running_words(status: BaseStatus, now_ns: int) -> str:
    if not status.holder:
        return "nothing is running"
    run = status.running
    since = f", begun {ago(run.started_ns, now_ns)}" if run is not None else ""
    waits = f"; it waits: {one_line(run.cause, 200)}" if run is not None and run.state == "waiting" else ""
    return f"the index is being written by {name(status.holder)}{since}{waits}"


def _run_words(run: RunRecord | None, now_ns: int) -> str:
    if run is None:
        return "none yet"
    # a run without an end and without its process has been killed; the next one writes that down
    state = _RUN_STATES.get(run.state, run.state) if run.ended_ns is not None else "was cut off"
    took = f", took {duration((run.ended_ns - run.started_ns) / 1e9)}" if run.ended_ns is not None else ""
    is_told = run.cause and run.cause != run.state
    cause = f" ({one_line(run.cause.replace('_', ' '), 200)})" if is_told else ""
    told = f": {counts_words(run.counts)}" if run.counts else ""
    return f"{run.kind} {ago(run.started_ns, now_ns)}, {state}{cause}{took}{told}"


def _run_json(run: RunRecord | None, *, is_running: bool = False) -> Json | None:
    if run is None:
        return None
    state = run.state
    if is_running:
        state = "waiting" if state == "waiting" else "running"
    elif run.ended_ns is None:
        state = "interrupted"  # killed: the next run writes it down
    return {
        "id": run.id,
        "generation": run.generation,
        "kind": run.kind,
        "state": state,
        "cause": run.cause,
        "roots": list(run.roots),
        "full": run.full,
        "started_at": utc(run.started_ns),
        "ended_at": utc(run.ended_ns),
        "counts": run.counts,
    }


def _failure_lines(status: BaseStatus) -> Iterator[str]:
    if not status.failures:
        yield "failed: nothing"
    for group in status.failures:
        detail = f" ({one_line(group.detail, 200)})" if group.detail else ""
        first = name(group.first) if group.count == 1 else f"{group.count:,} files, the first is {name(group.first)}"
        yield f"failed: {reason_words(group.reason)}: {first}{detail}"
