"""The complete set: every document that holds all of the words, a page of it at a time."""

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from app.enumerating import enumerate_base
from app.present_match import match_notes, match_tier_line, term_line
from app.present_pages import matched_words
from app.present_safe import name, one_line
from domain.errors import KnowledgeError
from domain.status import MatchStatus
from retrieval.match_answer import MatchAnswer, MatchedDocument, MatchRequest, MatchSort
from server.http.parts import HttpParts
from server.http.reading import opened
from server.pages.document_link import document_link
from server.pages.layout import Visit, answered, error_parts, hint_words, notices, page, visit_of
from server.pages.markup import NOTHING, Html, joined, tag
from server.pages.search_page import MAX_QUERY_CHARS, path_box, query_box, root_choice

ASKED_FOR = "Words that every document holds"
ROWS = 50
MAX_PAGE = 2000
SORTS: dict[MatchSort, str] = {"matches": "Most matches first", "path": "By path"}
_LANGUAGE = (
    'words must all be in a document, in any form; "a phrase" side by side; -word must not be in it',
    "`heading:word` and `body:word` look there only",
)


class Asked(NamedTuple):
    q: str
    root: str
    path: str
    sort: MatchSort
    page: int  # from 1

    @property
    def first(self) -> int:
        return (self.page - 1) * ROWS


class Found(NamedTuple):
    answer: MatchAnswer | None  # None: nothing was asked
    request: MatchRequest
    roots: tuple[str, ...]


def _asked_of(request: Request) -> Asked:
    given = request.query_params
    number = given.get("page", "1")
    page_number = int(number) if number.isascii() and number.isdigit() and len(number) < 6 else 1
    sort: MatchSort = "path" if given.get("sort") == "path" else "matches"
    q = given.get("q", "")[:MAX_QUERY_CHARS]
    return Asked(q, given.get("root", ""), given.get("path", ""), sort, min(max(1, page_number), MAX_PAGE))


async def match_page(parts: HttpParts, request: Request) -> Response:
    visit, asked = visit_of(parts, request, "/match"), _asked_of(request)
    try:
        found = await parts.in_thread(_look, parts, request, asked)
    except KnowledgeError as error:
        form = _form(visit, asked, tuple(filter(None, (asked.root,))))
        return answered(page(visit, "Match", form, error_parts(visit, error)), error.http_status)
    title = f"{one_line(asked.q, 60)} - Match" if asked.q.strip() else "Match"
    return answered(page(visit, title, _form(visit, asked, found.roots), _body(visit, asked, found)))


def _look(parts: HttpParts, request: Request, asked: Asked) -> Found:
    wanted = MatchRequest(
        asked.q, limit=ROWS, offset=asked.first, sort=asked.sort, root=asked.root, path_glob=asked.path
    )
    with opened(parts, request) as base:
        roots = tuple(record.name for record in base.state.roots())
        return Found(enumerate_base(base, wanted) if asked.q.strip() else None, wanted, roots)


def _form(visit: Visit, asked: Asked, roots: tuple[str, ...]) -> Html:
    box = query_box(asked.q, label=ASKED_FOR, placeholder=ASKED_FOR)
    sorts = [tag("option", label, value=sort, selected=sort == asked.sort) for sort, label in SORTS.items()]
    filters = (
        tag("label", "Order ", tag("select", sorts, name="sort")),
        root_choice(asked.root, roots),
        path_box(asked.path),
    )
    return tag(
        "form",
        tag("h1", "Documents with certain words", class_="aside"),
        tag("div", box, tag("button", "List"), class_="box"),
        tag("div", filters, class_="filters"),
        class_="search",
        role="search",
        action=visit.link("/match"),
    )


def _body(visit: Visit, asked: Asked, found: Found) -> Html:
    answer = found.answer
    if answer is None:
        return tag("div", [tag("p", hint_words(line)) for line in _LANGUAGE], class_="empty")
    is_plain = answer.status is MatchStatus.OK and answer.no_match_cause is None
    shown = answer.documents
    return joined(
        _summary(answer),
        notices(list(match_notes(answer, found.request)), "" if is_plain else "warn"),
        _table(visit, shown) if shown else NOTHING,
        _terms(answer),
        _paging(visit, asked, answer),
    )


def _summary(answer: MatchAnswer) -> Html:
    facts = [tag("span", match_tier_line())]
    if answer.compiled:
        facts = [tag("strong", matched_words(answer.matched, answer.indexed_documents)), *facts]
        facts.append(tag("span", "asked: ", tag("code", name(answer.compiled))))
    return tag("p", facts, class_="facts", id="tier")


def _table(visit: Visit, documents: tuple[MatchedDocument, ...]) -> Html:
    head = tag("tr", [tag("th", label, scope="col") for label in ("Document", "In text", "In headings", "Passages")])
    return tag(
        "div",
        tag("table", tag("thead", head), tag("tbody", [_row(visit, document) for document in documents])),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label="Documents",
    )


def _row(visit: Visit, document: MatchedDocument) -> Html:
    link = tag(
        "a",
        one_line(document.title, 200) or name(document.path),
        href=document_link(visit, document.path, document.ordinal),
    )
    numbers = (document.body_matches, document.heading_matches, document.total_chunks)
    return tag(
        "tr",
        tag("td", link, tag("span", name(document.path), class_="path")),
        [tag("td", number, class_="number") for number in numbers],
        class_="hit",
    )


def _terms(answer: MatchAnswer) -> Html:
    if not answer.terms:
        return NOTHING
    lines = [tag("li", term_line(term)) for term in answer.terms]
    is_open = answer.no_match_cause is not None
    return tag("details", tag("summary", "What became of each term"), tag("ul", lines), class_="why", open=is_open)


def _paging(visit: Visit, asked: Asked, answer: MatchAnswer) -> Html:
    last = max(1, min(-(-answer.matched // ROWS), MAX_PAGE))
    if last == 1 or not answer.matched:
        return NOTHING
    given = {"q": asked.q, "root": asked.root, "path": asked.path, "sort": asked.sort if asked.sort == "path" else ""}
    links: list[Html] = []
    if asked.page > 1:
        links.append(tag("a", "Previous", href=visit.link("/match", **given, page=asked.page - 1), rel="prev"))
    links.append(tag("span", f"Page {min(asked.page, last):,} of {last:,}"))
    if asked.page < last:
        links.append(tag("a", "Next", href=visit.link("/match", **given, page=asked.page + 1), rel="next"))
    return tag("nav", links, class_="more", aria_label="Pages of the list")
