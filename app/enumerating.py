"""An enumeration over an open base: the use case behind every surface."""

from app.consistency import matched_consistently
from app.search_context import refuse_unknown_root
from app.wiring import ReadableBase
from domain.errors import UsageError
from retrieval.enumeration import enumerate_documents
from retrieval.match_answer import MatchAnswer, MatchRequest

CHARS_A_TOKEN = 4
CHARS_A_DOCUMENT = 98  # of a row with a path of usual length
SHARE_OF_BUDGET = 4  # an enumeration may fill a quarter of what a search may


def enumerate_base(base: ReadableBase, request: MatchRequest) -> MatchAnswer:
    """One state of the store answers all of it.

    Raises UsageError: a query outside the language, a root that is not there, a bad path pattern, a negative limit, a
    least number of matches below 1; and what the store raises.
    """
    _refuse_less_than("limit", 0, request.limit)
    _refuse_less_than("min-matches", 1, request.min_matches)
    refuse_unknown_root(base, request.root)
    with base.store.snapshot() as snapshot:
        answer = enumerate_documents(snapshot, request)
    return matched_consistently(answer, base)


def document_budget(max_injected_tokens: int) -> int:
    """How many documents an answer to a model may list; never less than one (S0-78)."""
    return max(1, max_injected_tokens // SHARE_OF_BUDGET * CHARS_A_TOKEN // CHARS_A_DOCUMENT)


def _refuse_less_than(name: str, least: int, number: int | None) -> None:
    if number is not None and number < least:
        raise UsageError(f"{name} takes a number from {least} up, not {number}", hint=f"leave {name} out")
