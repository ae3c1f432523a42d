"""`status` and `stats` in words and as JSON."""

from collections.abc import Iterator

from app.discovery import Located
from app.present import (
    Json,
    age_seconds,
    ago,
    count,
    duration,
    index_line,
    note_lines,
    size,
    standing_notes,
    tier_line,
    utc,
)
from app.present_reasons import counts_words, ending_words, reason_words
from app.present_safe import name, one_line
from app.present_sources import base_status_tier, root_json, root_words
from app.status import BaseStatus
from app.tiers import base_tier
from domain.errors import KnowledgeError
from domain.settings import Settings
from domain.status import Standing
from store.run_port import RunRecord
from store.vector_port import NO_VECTORS

_STANDINGS = {
    Standing.COMPLETE: "complete",
    Standing.EMPTY: "complete, and empty",
    Standing.INCOMPLETE: "not complete",
    Standing.INCONSISTENT: "inconsistent",
    Standing.OUTDATED: "outdated",
}
_METHODS = {
    "none": "nothing to search",
    "exact": "each compared by a search",
    "bits": "searched by their packed signs first",
}


def status_text(status: BaseStatus, located: Located, settings: Settings, now_ns: int) -> str:
    """One screen."""
    lines = [tier_line(base_status_tier(status, settings)), index_line(located, settings)]
    why = "".join(f": {note}" for note in standing_notes(status.standing))
    lines.append(f"state: {_STANDINGS[status.standing]}{why}; last full run {_complete_ago(status, now_ns)}")
    held = f", {count(status.skipped, 'file')} skipped" if status.skipped else ""
    lines.append(f"holds: {count(status.documents, 'document')}, {count(status.chunks, 'chunk')}{held}")
    lines += list(_vector_state_lines(status, settings))
    lines += [f"root: {root_words(root)}" for root in status.roots]
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
    if status.is_being_written:
        return "being made; it answers once it is complete"
    if building is None or settings.embeddings is None:
        return "half made"
    from retrieval.query_vector import WantedVectors

    if WantedVectors.of(settings.embeddings).difference(building):
        return "half made, and not what the configuration asks for; `knowledge index --reindex` drops it"
    return "half made; `knowledge index --reindex` makes the rest"


def status_json(status: BaseStatus, located: Located, settings: Settings, now_ns: int) -> Json:
    return {
        "tier": tier_line(base_status_tier(status, settings)),
        "status": status.standing.value,
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
        "service": status.is_service_up,
        "queued_runs": status.queued,
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
        "roots": [root_json(root) for root in status.roots],
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
    lines = [tier_line(base_status_tier(status, settings)), index_line(located, settings), *note_lines(status.standing)]
    lines += [f"{label:<16} {value}" for label, value in rows]
    return "\n".join(lines) + "\n"


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
    return "being made" if status.is_being_written else "half made"


def stats_json(status: BaseStatus, settings: Settings) -> Json:
    counts, active = status.vector_counts, status.vectors.active
    return {
        "tier": tier_line(base_status_tier(status, settings)),
        "status": status.standing.value,
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


def _complete_ago(status: BaseStatus, now_ns: int) -> str:
    return ago(status.identity.complete_ns, now_ns)


def _running_words(status: BaseStatus, now_ns: int) -> str:
    run, waiting = status.running, f"; {count(status.queued, 'run')} queued" if status.queued else ""
    if not status.is_being_written:
        return ("nothing is running; the service is up" if status.is_service_up else "nothing is running") + waiting
    since = f", begun {ago(run.started_ns, now_ns)}" if run is not None else ""
    stays = run is not None and run.state in ("waiting", "paused")
    if run is not None and stays:
        since += f"; it {'waits' if run.state == 'waiting' else 'is paused'}: {one_line(run.cause, 200)}"
    if status.is_service_up and run is not None:
        more = f"`knowledge runs show {run.id}` says more"
        return f"the service carries out run {run.id} ({run.kind}){since}; {more}{waiting}"
    return f"the index is being written by {name(status.holder)}{since}{waiting}"


def _run_words(run: RunRecord | None, now_ns: int) -> str:
    if run is None:
        return "none yet"
    # a run without an end and without its process has been killed; the next one writes that down
    state = ending_words(run.state) if run.ended_ns is not None else "was cut off"
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
        state = state if state in ("waiting", "paused") else "running"
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
