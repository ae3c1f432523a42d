"""`rm`, `reset`, `rebuild` and `compact` in words and as JSON."""

from collections.abc import Iterator

from app.maintenance import (
    CompactReport,
    PurgeReport,
    RebuildReport,
    RemovedRoot,
    RemovedTarget,
    RemoveReport,
    ResetReport,
)
from app.present import Json, count, duration, size, tier_line
from app.present_safe import name
from domain.status import Tier


def remove_text(report: RemoveReport, tier: Tier) -> str:
    lines = [tier_line(tier)]
    if report.is_repeated:
        lines.append("this removal had been done before; nothing was done now")
    lines += [_target_words(target) for target in report.targets]
    if report.targets:
        done = len(report.targets) - len(report.not_indexed)
        lines.append(f"{done} of {len(report.targets)} removed, {count(report.documents, 'document')}")
    if report.root is not None:
        lines += _root_lines(report.root)
    if report.purge is not None:
        lines += _purge_lines(report.purge)
    return "\n".join(lines) + "\n"


def _purge_lines(purge: PurgeReport) -> Iterator[str]:
    vectors = f", {count(purge.vectors_dropped, 'vector')} dropped" if purge.vectors_dropped else ""
    yield f"purged: the files were written anew, {_bytes_change(purge.bytes_before, purge.bytes_after)}{vectors}"
    if not purge.documents:
        yield "nothing was removed now, so there was no text to look for"
    elif purge.pieces:
        searched = f"{count(purge.pieces, 'piece')} of {count(purge.documents_searched, 'document')}"
        yield f"looked for in the index's files: {searched}, found at {count(purge.places, 'place')}"
    if unsearched := purge.documents - purge.documents_searched:
        yield f"not looked for: {count(unsearched, 'document')}, too many, or without text that stands nowhere else"
    for trace in purge.traces:
        yield f"  still in {name(str(trace.path))}: {count(trace.places, 'place')}"
    if not purge.is_log_truncated:
        yield "a process that reads the index holds an older state of it: end it, then run the same command again"
    yield "not covered: backups of the index, the documents themselves, and blocks that the disk has not written over"


def _bytes_change(before: int, after: int) -> str:
    return f"{size(before)} before, {size(after)} now"


def _target_words(target: RemovedTarget) -> str:
    if not target.documents:
        return f"not indexed: {name(target.argument)}"
    what = f" ({count(target.documents, 'document')})" if target.prefix.endswith("/") else ""
    again = "; the next run adds it again, since it is still there" if target.is_still_there else ""
    return f"removed: {name(target.prefix)}{what}{again}"


def _root_lines(root: RemovedRoot) -> Iterator[str]:
    where = f" = {name(root.path)}" if root.path else ""
    yield f"removed root: {name(root.name)}{where} ({count(root.documents, 'document')})"
    if root.is_configured:
        yield "note: it is still in the configuration: the next run adds it again"


def remove_json(report: RemoveReport, tier: Tier) -> Json:
    return {
        "tier": tier_line(tier),
        "status": _removal_status(report),
        "home": str(report.home),
        "exit_status": report.exit_status,
        "documents_removed": report.documents,
        "targets": [
            {
                "argument": target.argument,
                "path": target.prefix or None,
                "documents": target.documents,
                "is_still_there": target.is_still_there,
            }
            for target in report.targets
        ],
        "not_indexed": list(report.not_indexed),
        "root": _removed_root_json(report.root) if report.root is not None else None,
        "purge": _purge_json(report.purge) if report.purge is not None else None,
    }


def _removal_status(report: RemoveReport) -> str:
    """`leftover`: text is left in the files (a purge); `not_found`: of some names nothing is indexed."""
    if report.purge is not None and not report.purge.is_clean:
        return "leftover"
    return "not_found" if report.exit_status else "done"


def _purge_json(purge: PurgeReport) -> Json:
    return {
        "is_clean": purge.is_clean if purge.pieces or not purge.is_log_truncated else None,
        "places_found": purge.places,
        "files": [{"path": str(trace.path), "places": trace.places} for trace in purge.traces],
        "pieces": purge.pieces,
        "documents_searched": purge.documents_searched,
        "documents_not_searched": purge.documents - purge.documents_searched,
        "is_log_truncated": purge.is_log_truncated,
        "vectors_dropped": purge.vectors_dropped,
        "bytes_before": purge.bytes_before,
        "bytes_after": purge.bytes_after,
        "backups_covered": False,
    }


def _removed_root_json(root: RemovedRoot) -> Json:
    return {
        "name": root.name,
        "path": root.path,
        "documents": root.documents,
        "skipped": root.skipped_files,
        "failed": root.failures,
        "is_configured": root.is_configured,
    }


def reset_text(report: ResetReport, tier: Tier) -> str:
    if report.documents is None:
        content = "an unknown number of documents"
    else:
        content = f"{count(report.documents, 'document')} and {count(report.chunks or 0, 'chunk')}"
    made_anew = "; the file could not be emptied and was made anew" if report.is_replaced else ""
    return (
        f"{tier_line(tier)}\n"
        f"reset: {content} dropped{made_anew}\n"
        f"index: {name(str(report.home))}\n"
        "next: `knowledge index` reads the files again\n"
    )


def reset_json(report: ResetReport, tier: Tier) -> Json:
    return {
        "tier": tier_line(tier),
        "status": "done",
        "home": str(report.home),
        "documents_dropped": report.documents,
        "chunks_dropped": report.chunks,
        "is_replaced": report.is_replaced,
    }


def rebuild_text(report: RebuildReport, tier: Tier) -> str:
    substring = f", {report.substring_chunks:,} of them for substrings" if report.substring_chunks else ""
    return (
        f"{tier_line(tier)}\n"
        f"rebuilt: full text of {count(report.chunks, 'chunk')}{substring}\n"
        f"{_rebuilt_vectors(report)}"
        f"index: {name(str(report.home))}\n"
        f"took {duration(report.elapsed_s)}\n"
    )


def _rebuilt_vectors(report: RebuildReport) -> str:
    if not report.vectors and not report.pending_documents:
        return ""
    pending = f"; {count(report.pending_documents, 'file')} without: the next index run makes them"
    return f"  and the packed signs of {count(report.vectors, 'vector')}{pending if report.pending_documents else ''}\n"


def rebuild_json(report: RebuildReport, tier: Tier) -> Json:
    return {
        "tier": tier_line(tier),
        "status": "done",
        "home": str(report.home),
        "chunks": report.chunks,
        "substring_chunks": report.substring_chunks,
        "vectors": report.vectors,
        "pending_documents": report.pending_documents,
        "elapsed_s": round(report.elapsed_s, 3),
    }


def compact_text(report: CompactReport, tier: Tier) -> str:
    before, after = report.before, report.after
    lines = [tier_line(tier)]
    if report.is_repeated:
        lines.append("this command had been carried out before; nothing was done now")
    lines += [
        f"compacted: {_bytes_change(before.bytes, after.bytes)}",
        f"  full-text segments: {before.segments:,} before, {after.segments:,} now",
    ]
    if report.vectors_dropped:
        lines.append(f"  {count(report.vectors_dropped, 'vector')} of no chunk dropped")
    if not report.is_log_truncated:
        lines.append("note: a process that reads the index holds an older state of it: the log is cut when it is done")
    lines += [f"index: {name(str(report.home))}", f"took {duration(report.elapsed_s)}"]
    return "\n".join(lines) + "\n"


def compact_json(report: CompactReport, tier: Tier) -> Json:
    return {
        "tier": tier_line(tier),
        "status": "done",
        "home": str(report.home),
        "bytes_before": report.before.bytes,
        "bytes_after": report.after.bytes,
        "free_bytes_before": report.before.free_bytes,
        "free_bytes_after": report.after.free_bytes,
        "segments_before": report.before.segments,
        "segments_after": report.after.segments,
        "vectors_dropped": report.vectors_dropped,
        "is_log_truncated": report.is_log_truncated,
        "elapsed_s": round(report.elapsed_s, 3),
    }
