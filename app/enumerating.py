"""An enumeration over an open base: the use case behind every surface."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.consistency import matched_consistently
from app.search_context import refuse_unknown_root
from app.tracing import enumeration_span, tell_enumerated
from app.wiring import ReadableBase
from domain.errors import UsageError
from retrieval.enumeration import describe_documents, enumerate_documents, find_documents
from retrieval.match_answer import MatchAnswer, MatchedDocument, MatchRequest

CHARS_A_TOKEN = 4
CHARS_A_DOCUMENT = 98  # of a row with a path of usual length
DOCUMENTS_A_PAGE = 500  # of a complete set that is read page by page: 10 ms of work
SHARE_OF_BUDGET = 4  # an enumeration may fill a quarter of what a search may


def enumerate_base(base: ReadableBase, request: MatchRequest) -> MatchAnswer:
    """One state of the store answers all of it.

    Raises UsageError: a query outside the language, a root that is not there, a bad path pattern, a negative limit, a
    least number of matches below 1; and what the store raises.
    """
    _refuse_unfit(base, request)
    with enumeration_span() as span:
        with base.store.snapshot() as snapshot:
            answer = enumerate_documents(snapshot, request)
        answer = matched_consistently(answer, base)
        tell_enumerated(span, answer, len(answer.documents))
    return answer


@contextmanager
def enumerated_pages(
    base: ReadableBase, request: MatchRequest
) -> Iterator[tuple[MatchAnswer, Iterator[tuple[MatchedDocument, ...]]]]:
    """The same for a complete set of any size: the answer without documents, and its documents page by page, to be read
    inside of the `with`, which holds one state of the store: keep it short. Raises the same."""
    _refuse_unfit(base, request)
    with base.store.snapshot() as snapshot:
        with enumeration_span() as span:  # not around the pages, which another thread may read
            found = find_documents(snapshot, request)
            answer = matched_consistently(found.answer, base)
            tell_enumerated(span, answer, len(found.ids))
        pages = (
            describe_documents(snapshot, found, found.ids[first : first + DOCUMENTS_A_PAGE])
            for first in range(0, len(found.ids), DOCUMENTS_A_PAGE)
        )
        yield answer, pages


def document_budget(max_injected_tokens: int) -> int:
    """How many documents an answer to a model may list; never less than one (S0-78)."""
    return max(1, max_injected_tokens // SHARE_OF_BUDGET * CHARS_A_TOKEN // CHARS_A_DOCUMENT)


def _refuse_unfit(base: ReadableBase, request: MatchRequest) -> None:
    _refuse_less_than("limit", 0, request.limit)
    _refuse_less_than("min-matches", 1, request.min_matches)
    refuse_unknown_root(base, request.root)


def _refuse_less_than(name: str, least: int, number: int | None) -> None:
    if number is not None and number < least:
        raise UsageError(f"{name} takes a number from {least} up, not {number}", hint=f"leave {name} out")
