"""`backup` and `restore` in words and as JSON."""

from app.backing_up import BackupReport, RestoreReport
from app.present import Json, ago, count, duration, size, tier_line, utc
from app.present_safe import name
from domain.status import Tier


def backup_text(report: BackupReport, tier: Tier) -> str:
    parts = f"knowledge.db {size(report.database_bytes)}, state.db {size(report.state_bytes)}"
    return (
        f"{tier_line(tier)}\n"
        f"backed up: {_content(report)}, generation {report.generation:,}\n"
        f"file: {name(str(report.path))} ({size(report.file_bytes)}: {parts})\n"
        f"index: {name(str(report.home))}\n"
        f"took {duration(report.elapsed_s)}\n"
        "note: it holds the texts unencrypted; `knowledge restore FILE` puts it back\n"
    )


def backup_json(report: BackupReport, tier: Tier) -> Json:
    return {
        "tier": tier_line(tier),
        "status": "done",
        "home": str(report.home),
        "path": str(report.path),
        "file_bytes": report.file_bytes,
        "database_bytes": report.database_bytes,
        "state_bytes": report.state_bytes,
        "documents": report.documents,
        "chunks": report.chunks,
        "generation": report.generation,
        "commit_seq": report.commit_seq,
        "created_at": utc(report.created_ns),
        "elapsed_s": round(report.elapsed_s, 3),
    }


def restore_text(report: RestoreReport, tier: Tier, now_ns: int) -> str:
    replaced = ", in the place of the index that was there" if report.was_replaced else ""
    return (
        f"{tier_line(tier)}\n"
        f"restored: {_content(report)}, generation {report.generation:,}{replaced}\n"
        f"from: {name(str(report.path))}, written {utc(report.created_ns)} ({ago(report.created_ns, now_ns)})\n"
        f"index: {name(str(report.home))}\n"
        f"took {duration(report.elapsed_s)}\n"
        f"{_next_step(report)}\n"
    )


def _next_step(report: RestoreReport) -> str:
    if report.is_outdated:
        older = f"the index has the older format {report.format_version} and cannot be read yet"
        return f"next: `knowledge upgrade`: {older}"
    return "next: `knowledge index` reads what has changed since"


def restore_json(report: RestoreReport, tier: Tier) -> Json:
    return {
        "tier": tier_line(tier),
        "status": "done",
        "home": str(report.home),
        "path": str(report.path),
        "documents": report.documents,
        "chunks": report.chunks,
        "generation": report.generation,
        "created_at": utc(report.created_ns),
        "format_version": report.format_version,
        "is_outdated": report.is_outdated,
        "was_replaced": report.was_replaced,
        "elapsed_s": round(report.elapsed_s, 3),
    }


def _content(report: BackupReport | RestoreReport) -> str:
    return f"{count(report.documents, 'document')} and {count(report.chunks, 'chunk')}"
