"""Outcomes and reasons of files in words: what became of them, and why."""

from domain.files import Outcome, Reason

_REASONS = {
    Reason.TOO_LARGE: "larger than max_file_bytes",
    Reason.NOT_UTF8: "not UTF-8 text",
    Reason.EMPTY: "empty",
    Reason.EXCLUDED: "left out by include, exclude or .knowledgeignore",
    Reason.SYMLINK: "a symbolic link, which is not followed",
    Reason.NOT_A_FILE: "not a regular file",
    Reason.NAME_NOT_UTF8: "a name that is not UTF-8",
    Reason.UNREADABLE: "cannot be read",
    Reason.VANISHED: "vanished while it was read",
    Reason.TOO_SLOW: "took too long to read as Markdown",
    Reason.WORKER_DIED: "ended the process that worked on it",
    Reason.OVER_LIMIT: "takes more time or memory than one file may",
    Reason.STORE_REFUSED: "refused by the index",
    Reason.EMBEDDING_REFUSED: "the embeddings server refused a part of it, however small",
    Reason.UNEXPECTED: "an unexpected error",
    Reason.DIRECTORY_UNREADABLE: "a directory that cannot be read",
    Reason.GONE: "gone",
    Reason.IGNORED: "failed before and ignored",
}
_HELD = {
    "removals_held": "unusually many at once",
    "source_empty": "the folder shows no file at all; is it mounted?",
    "source_unreadable": "a part of the folder could not be read",
    "root_unreadable": "no file of the folder could be read",
}
_ENDINGS = {
    "done": "ended well",
    "partial": "ended with files left out",
    "failed": "failed",
    "interrupted": "was interrupted",
    "cancelled": "was cancelled",
    "needs_approval": "ended, and waits for an approval",
}
OUTCOME_ORDER = tuple(outcome.value for outcome in Outcome)


def reason_words(code: str) -> str:
    """A stable code in words; one of a later version stays as it is."""
    try:
        return _REASONS[Reason(code)]
    except (ValueError, KeyError):
        return code.replace("_", " ")


def held_words(cause: str) -> str:
    return _HELD.get(cause, cause.replace("_", " "))


def ending_words(state: str) -> str:
    """How a run has ended."""
    return _ENDINGS.get(state, state.replace("_", " "))


def counts_words(counts: dict[str, int]) -> str:
    """`12 added, 3 updated`, in the order of the outcomes; every one that there was."""
    told = [f"{counts[name]:,} {name}" for name in OUTCOME_ORDER if counts.get(name)]
    return ", ".join(told) or "no file met"
