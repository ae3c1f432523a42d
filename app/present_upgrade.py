"""`knowledge upgrade` in words and as JSON."""

from collections.abc import Iterator

from app.outcomes import IndexReport
from app.present import Json, count, duration, size, tier_line
from app.present_reasons import OUTCOME_ORDER, counts_words, held_words, reason_words
from app.present_safe import name, one_line
from app.removing import HeldRemovals
from app.upgrade_report import MissingDocuments, UpgradeReport, UpgradeStatus
from domain.status import Tier
from store.format_gate import FORMAT_VERSION
from store.upgrade_vectors import LeftVectors

_MAX_DETAIL = 300
_LEFT = {
    "layout": "their layout is not the one that this program knows",
    "shape": "their tables have another shape",
    "identity": "they were made otherwise than is configured now",
    "unsound": "they are damaged",
    "re_embed": "every text is embedded anew",
}


def upgrade_text(report: UpgradeReport, tier: Tier) -> str:
    return "\n".join([tier_line(tier), *_lines(report), f"index: {name(str(report.home))}", _took(report)]) + "\n"


def _took(report: UpgradeReport) -> str:
    return f"took {duration(report.elapsed_s)}"


def _lines(report: UpgradeReport) -> Iterator[str]:
    match report.status:
        case UpgradeStatus.CURRENT:
            yield f"nothing to do: the index has the format of this program ({FORMAT_VERSION})"
        case UpgradeStatus.POSSIBLE:
            yield from _possible_lines(report)
        case UpgradeStatus.UPGRADED:
            yield f"upgraded: {_formats(report)}, {_documents_before(report)}"
            yield from _run_lines(report)
        case UpgradeStatus.HELD:
            yield f"held: the old index ({_formats(report)}) was not replaced, {_documents_before(report)}"
            for held in report.held:
                yield _held_line(held)
            yield from _run_lines(report)
            yield "  if they are meant to go: knowledge upgrade --allow-mass-delete (what is made already is kept)"


def _formats(report: UpgradeReport) -> str:
    """`format 1 -> 2`; an index of our version that has another shape is `format 2, repaired`."""
    if report.from_version == FORMAT_VERSION:
        return f"format {FORMAT_VERSION} of another shape"
    before = "an unknown format" if report.from_version is None else f"format {report.from_version}"
    return f"{before} -> {FORMAT_VERSION}"


def _documents_before(report: UpgradeReport) -> str:
    if report.documents_before is None:
        return "an unknown number of documents in it"
    return f"{count(report.documents_before, 'document')} in the old index"


def _possible_lines(report: UpgradeReport) -> Iterator[str]:
    yield f"would upgrade: {_formats(report)}, {_documents_before(report)}"
    yield f"  {one_line(report.difference, _MAX_DETAIL)}"
    yield f"  vectors to take over: {report.vectors.number:,}"
    yield from map(_left_line, report.vectors.left)
    if report.needed_bytes is not None and report.free_bytes is not None:
        short = " - not enough" if report.needed_bytes > report.free_bytes else ""
        yield f"  room: about {size(report.needed_bytes)} needed, {size(report.free_bytes)} free{short}"
    if report.is_continued:
        yield "  it would go on with what an earlier upgrade has made"


def _run_lines(report: UpgradeReport) -> Iterator[str]:
    index = report.index
    if index is None:
        return
    yield f"  files: {counts_words(index.counts)}" + (" (gone on with)" if report.is_continued else "")
    yield from _vector_lines(report, index)
    yield from _missing_lines(report.missing)
    for reason, (number, first) in sorted(index.skips.items()):
        yield f"  skipped, {reason_words(reason)}: {_first(number, first)}"
    for failure in index.failures:
        detail = f" ({one_line(failure.detail, 200)})" if failure.detail else ""
        yield f"  failed, {reason_words(failure.reason)}: {_first(failure.count, failure.key)}{detail}"
    for key, said in index.problems[:10]:
        yield f"  not read: {name(key)} ({one_line(said, 200)})"
    yield f"{count(index.documents, 'file')}, {count(index.chunks, 'chunk')} in the new index"


def _vector_lines(report: UpgradeReport, index: IndexReport) -> Iterator[str]:
    if report.vectors.number:
        yield f"  vectors taken from the old index: {report.vectors.number:,}"
    yield from map(_left_line, report.vectors.left)
    if index.vectors is not None:
        yield f"  vectors: {count(index.vectors.embedded, 'text')} embedded, {index.vectors.reused:,} reused"
        if index.vectors.pending_documents:
            yield f"    {count(index.vectors.pending_documents, 'file')} without: the next index run makes them"


def _left_line(left: LeftVectors) -> str:
    number = "an unknown number of" if left.number is None else f"{left.number:,}"
    detail = f": {one_line(left.detail, _MAX_DETAIL)}" if left.detail else ""
    return f"  vectors not taken: {number}, {_LEFT[left.reason]}{detail}"


def _missing_lines(missing: MissingDocuments) -> Iterator[str]:
    if missing.not_compared != 0:
        number = "what the old index held" if missing.not_compared is None else count(missing.not_compared, "document")
        yield f"  not compared: {number}, which cannot be read in it; whether the new index has it all is not known"
    if not missing.number:
        return
    shown = ", ".join(map(name, missing.first))
    more = f" and {missing.number - len(missing.first):,} more" if missing.number > len(missing.first) else ""
    yield f"  not in the new index: {count(missing.number, 'document')} of the old one, {shown}{more}"


def _held_line(held: HeldRemovals) -> str:
    return (
        f"  missing: {held.count:,} of {count(held.documents, 'document')} below {name(held.root)}"
        f" ({held_words(held.cause)})"
    )


def _first(number: int, key: str) -> str:
    return name(key) if number == 1 else f"{number:,}, the first is {name(key)}"


def upgrade_json(report: UpgradeReport, tier: Tier) -> Json:
    return {
        "tier": tier_line(tier),
        "status": report.status.value,
        "exit_status": report.exit_status,
        "home": str(report.home),
        "from_format": report.from_version,
        "to_format": FORMAT_VERSION,
        "difference": report.difference,
        "documents_before": report.documents_before,
        "is_continued": report.is_continued,
        "vectors_taken": report.vectors.number,
        "vectors_left": [
            {"reason": left.reason, "count": left.number, "detail": left.detail} for left in report.vectors.left
        ],
        "needed_bytes": report.needed_bytes,
        "free_bytes": report.free_bytes,
        "run": None if report.index is None else _run_json(report.index),
        "missing": {
            "count": report.missing.number,
            "first": list(report.missing.first),
            "not_compared": report.missing.not_compared,
        },
        "held": [
            {
                "root": held.root,
                "path": held.path,
                "count": held.count,
                "documents": held.documents,
                "cause": held.cause,
            }
            for held in report.held
        ],
        "elapsed_s": round(report.elapsed_s, 3),
    }


def _run_json(index: IndexReport) -> Json:
    vectors = index.vectors
    return {
        "id": index.run.id,
        "generation": index.run.generation,
        "roots": list(index.run.roots),
        "counts": {outcome: index.counts.get(outcome, 0) for outcome in OUTCOME_ORDER},
        "skipped": [
            {"reason": reason, "count": number, "first": first}
            for reason, (number, first) in sorted(index.skips.items())
        ],
        "failures": [
            {"reason": failure.reason, "count": failure.count, "first": failure.key, "detail": failure.detail}
            for failure in index.failures
        ],
        "problems": [{"path": key, "detail": said} for key, said in index.problems],
        "files": index.documents,
        "chunks": index.chunks,
        "embedded": 0 if vectors is None else vectors.embedded,
        "reused": 0 if vectors is None else vectors.reused,
        "pending_documents": 0 if vectors is None else vectors.pending_documents,
    }
