"""A verdict in one line, as monitoring shows it, and as JSON."""

from app.present import Json, count
from app.present_safe import name, one_line
from app.verdict import Finding, Verdict
from domain.errors import KnowledgeError

_WORDS = {
    "corpus_empty": "the index holds no document",
    "index_incomplete": "not every folder has been seen by a run yet",
    "index_outdated": "the index is an older copy",
    "index_inconsistent": "runs have filled the index, and it is blank",
    "run_failed": "the last run failed",
    "run_partial": "the last run left something out",
    "run_interrupted": "the last run was interrupted",
    "removals_held": "removals are held",
}


def verdict_line(verdict: Verdict, error: KnowledgeError | None = None) -> str:
    """`WARNING: the last run left something out, 3 files failed`."""
    if error is not None:
        return f"{verdict.level.name}: {one_line(error.message, 300)}"
    told = ", ".join(_finding_words(finding) for finding in verdict.findings)
    return f"{verdict.level.name}: {told or 'nothing to look at'}"


def verdict_json(verdict: Verdict) -> Json:
    return {
        "level": verdict.level.name.lower(),
        "findings": [
            {
                "code": finding.code,
                "level": finding.level.name.lower(),
                "count": finding.count or None,
                "name": finding.name or None,
            }
            for finding in verdict.findings
        ],
    }


def _finding_words(finding: Finding) -> str:
    match finding.code:
        case "files_failed":
            return f"{count(finding.count, 'file')} failed"
        case "vectors_pending":
            return f"{count(finding.count, 'document')} without vectors"
        case "root_missing":
            return f"the folder of {name(finding.name)} is not there"
        case "schedule_overdue":
            return f"schedule {name(finding.name)} is overdue"
    return _WORDS.get(finding.code, finding.code)
