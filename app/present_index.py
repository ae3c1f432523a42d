"""A run of `knowledge index` in words: the lines while it goes on, and its summary."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.discovery import Located
from app.present import Json, count, duration, index_line, size, tier_line, utc
from app.present_failures import not_tried_json, not_tried_lines
from app.present_reasons import OUTCOME_ORDER, counts_words, held_words, reason_words
from app.present_safe import name, one_line
from app.present_unreadable import unreadable_hint, unreadable_message
from app.progress import RunProgress
from app.tiers import base_tier
from domain.settings import Settings
from domain.status import Tier

if TYPE_CHECKING:
    from app.index_request import EmbeddingNotice
    from app.outcomes import IndexReport, VectorReport
    from app.removing import HeldRemovals

_MAX_TOLD = 10
_STAGES = {
    "walking": "looking",
    "indexing": "indexing",
    "embedding": "embedding",
    "removing": "removing what is gone",
    "done": "done",
}


def progress_line(progress: RunProgress) -> str:
    """`indexing: 12,000 found, 9,210/12,000 checked, 8,933 written, 3,100/s, 1 s left`: fits into 80 columns."""
    checked = f"{progress.checked:,}"
    if progress.is_plan_complete:
        checked += f"/{progress.to_check:,}"
    parts = [f"{progress.found:,} found", f"{checked} checked", f"{progress.written:,} written"]
    if progress.embedded or progress.reused:
        parts.append(f"{progress.embedded:,} embedded")
    if progress.checked:
        parts.append(f"{progress.files_per_second:,.0f}/s")
    remaining_s = progress.remaining_s
    if progress.hold_up:
        return f"waiting: {one_line(progress.hold_up, 200)}; {', '.join(parts)}"
    if remaining_s and progress.stage == "indexing":  # none where all files are checked, and vectors are made still
        parts.append(f"{duration(round(max(remaining_s, 1)))} left")
    return f"{_STAGES[progress.stage]}: {', '.join(parts)}"


def embedding_notice_text(notice: "EmbeddingNotice") -> str:
    """What goes where, said before the first text goes."""
    about = f"about {count(notice.texts, 'text')} of {count(notice.files, 'file')} ({size(notice.text_bytes)})"
    return f"embedding: {about} go to {name(notice.host)}, model {name(notice.model)}\n"


def _vector_lines(report: "VectorReport") -> Iterator[str]:
    parts = f", {report.from_parts:,} of them in parts (too long for the model)" if report.from_parts else ""
    yield f"vectors: {count(report.embedded, 'text')} embedded{parts}, {report.reused:,} reused"
    if report.activated:
        yield f"  the vectors of {name(report.identity.model)} are complete and answer from now on"
    if report.building:
        yield "  the new vectors are not complete: what answered before goes on answering"
        yield "    to make the rest: knowledge index --reindex (nothing is embedded twice)"
    if report.pending_documents:
        pending = f"{count(report.pending_documents, 'file')} ({count(report.pending_chunks, 'chunk')})"
        yield f"  pending: {pending} can be found by words only; the next run makes their vectors"


def _vectors_json(report: "VectorReport | None") -> Json | None:
    if report is None:
        return None
    return {
        "model": report.identity.model,
        "dimension": report.identity.dimension,
        "embedded": report.embedded,
        "reused": report.reused,
        "from_parts": report.from_parts,
        "pending_documents": report.pending_documents,
        "pending_chunks": report.pending_chunks,
        "activated": report.activated,
        "building": report.building,
    }


def _tier(report: "IndexReport", settings: Settings) -> Tier:
    return base_tier(settings, report.vector_status, has_documents=report.documents > 0)


def report_text(report: "IndexReport", located: Located, settings: Settings) -> str:
    return "\n".join(_report_lines(report, located, settings)) + "\n"


def _report_lines(report: "IndexReport", located: Located, settings: Settings) -> Iterator[str]:
    for root in report.unreadable:
        yield f"error: {unreadable_message(root)}"
        yield f"  {unreadable_hint(root)}"
    yield tier_line(_tier(report, settings))
    verb = "reindexed" if report.run.kind == "reindex" else "indexed"
    yield f"{verb}: {counts_words(report.counts)}"
    if report.vectors is not None:
        yield from _vector_lines(report.vectors)
    for reason, (number, first) in sorted(report.skips.items()):
        yield f"  skipped, {reason_words(reason)}: {_first(number, first)}"
    for failure in report.failures:
        detail = f" ({one_line(failure.detail, 200)})" if failure.detail else ""
        yield f"  failed, {reason_words(failure.reason)}: {_first(failure.count, failure.key)}{detail}"
    yield from not_tried_lines(report.not_tried, report.run.started_ns)
    told = tuple(f"{root.name}/" for root in report.unreadable)  # by one error each, above
    problems = [(key, said) for key, said in report.problems if not key.startswith(told)]
    for key, said in problems[:_MAX_TOLD]:
        yield f"  not read: {name(key)} ({one_line(said, 200)}); what was indexed below it stays"
    if len(problems) > _MAX_TOLD:
        yield f"  and {count(len(problems) - _MAX_TOLD, 'more directory', 'more directories')} not read"
    for held in report.removals.held:
        yield from _held_lines(held)
    for note in report.notes[:_MAX_TOLD]:
        yield f"  note: {name(note)}"
    yield f"{count(report.documents, 'file')}, {count(report.chunks, 'chunk')} in the index"
    yield f"{index_line(located, settings)}"
    rate = f", {size(report.text_bytes)} of text" if report.text_bytes else ""
    yield f"took {duration(report.elapsed_s)}{rate}"


def _first(number: int, key: str) -> str:
    return name(key) if number == 1 else f"{number:,}, the first is {name(key)}"


def _held_lines(held: "HeldRemovals") -> Iterator[str]:
    yield (
        f"  removals held: {held.count:,} of {count(held.documents, 'document')} below {name(held.root)} are not met"
        f" any more ({held_words(held.cause)}); they stay in the index"
    )
    if held.cause == "removals_held":
        yield f"    if they are meant to go: knowledge index {name(held.path)} --allow-mass-delete"
    else:
        yield f"    check {name(held.path)}, then run the command again"


def report_json(report: "IndexReport", located: Located, settings: Settings) -> Json:
    return {
        "tier": tier_line(_tier(report, settings)),
        "status": report.state,
        "exit_status": report.exit_status,
        "home": str(report.home),
        "base": located.words(),
        "identity": settings.identity,
        "run": {
            "id": report.run.id,
            "generation": report.run.generation,
            "kind": report.run.kind,
            "roots": list(report.run.roots),
            "full": report.run.full,
            "started_at": utc(report.run.started_ns),
        },
        "counts": {outcome: report.counts.get(outcome, 0) for outcome in OUTCOME_ORDER},
        "skipped": [
            {"reason": reason, "count": number, "first": first}
            for reason, (number, first) in sorted(report.skips.items())
        ],
        "failures": [
            {"reason": failure.reason, "count": failure.count, "first": failure.key, "detail": failure.detail}
            for failure in report.failures
        ],
        "not_tried": not_tried_json(report.not_tried),
        "problems": [{"path": key, "detail": said} for key, said in report.problems],
        "unreadable_roots": [
            {
                "root": root.name,
                "path": root.path,
                "refused": root.place,
                "user": f"{root.uid}:{root.gid}",
                "owner": f"{root.owner_uid}:{root.owner_gid}",
                "mode": f"{root.mode:04o}",
                "message": unreadable_message(root),
                "hint": unreadable_hint(root),
            }
            for root in report.unreadable
        ],
        "removals_held": [
            {
                "root": held.root,
                "path": held.path,
                "count": held.count,
                "documents": held.documents,
                "cause": held.cause,
            }
            for held in report.removals.held
        ],
        "vectors": _vectors_json(report.vectors),
        "notes": list(report.notes),
        "files": report.documents,
        "chunks": report.chunks,
        "chunks_written": report.chunks_written,
        "text_bytes": report.text_bytes,
        "elapsed_s": round(report.elapsed_s, 3),
    }
