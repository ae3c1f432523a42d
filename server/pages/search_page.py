"""The search page: a box, the hits, and why each of them stands where it stands."""

import time
from collections.abc import Mapping
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from app.consistency import standing_of, told_consistently
from app.present import ago, note_lines, tier_line
from app.present_pages import (
    MODES,
    also_in_words,
    first_steps,
    hits_words,
    holds_words,
    lane_rows,
    next_steps,
    rank_words,
)
from app.present_safe import name, one_line, segment
from app.present_search import IndexState, search_notes
from app.search_context import index_state, refuse_unknown_root, urls_of
from app.searching import answer
from domain.errors import KnowledgeError
from domain.status import SearchStatus, Standing, TierKind
from retrieval.answer import LEAST_SIMILARITY, MAX_TOP_K, SearchAnswer, SearchHit, SearchRequest
from retrieval.modes import parse_mode
from server.http.parts import HttpParts
from server.http.reading import opened
from server.pages.document_link import document_link
from server.pages.layout import Visit, answered, error_parts, hint_words, notices, page, visit_of
from server.pages.markup import NOTHING, Html, joined, tag

HITS = 10
MAX_BREADCRUMB_CHARS = 400
MAX_TITLE_CHARS = 200
MAX_QUERY_CHARS = 8000  # a longer one is cut by the search itself
_OF_VECTORS = ("embeddings_changed", "embeddings_unavailable", "semantic_not_configured")
_SAFE_LINKS = ("http://", "https://")


class Asked(NamedTuple):
    """The form as it was sent."""

    q: str
    mode: str
    root: str
    path: str
    hits: int

    @property
    def is_narrowed(self) -> bool:
        return bool(self.root or self.path)


class Found(NamedTuple):
    answer: SearchAnswer | None  # None: nothing was asked
    roots: tuple[str, ...]
    urls: Mapping[str, str] = {}
    standing: Standing = Standing.COMPLETE
    state: IndexState | None = None  # where nothing was asked


def asked_of(request: Request) -> Asked:
    """What is no part of the form is not looked at: people follow links with all kinds of additions."""
    given = request.query_params
    return Asked(
        given.get("q", "")[:MAX_QUERY_CHARS],
        given.get("mode", "auto") or "auto",
        given.get("root", ""),
        given.get("path", ""),
        MAX_TOP_K if given.get("hits") == str(MAX_TOP_K) else HITS,
    )


async def search_page(parts: HttpParts, request: Request) -> Response:
    visit, asked = visit_of(parts, request, "/"), asked_of(request)
    try:
        found = await parts.in_thread(_look, parts, request, asked)
    except KnowledgeError as error:
        roots = tuple(sorted(filter(None, {asked.root})))
        form = _form(parts, visit, asked, roots)
        html = page(visit, "Search", form, error_parts(visit, error), _by_words(visit, asked, error))
        return answered(html, error.http_status)
    title = f"{one_line(asked.q, 60)} - Search" if asked.q.strip() else "Search"
    return answered(page(visit, title, _form(parts, visit, asked, found.roots), _body(visit, asked, found)))


def _form(parts: HttpParts, visit: Visit, asked: Asked, roots: tuple[str, ...]) -> Html:
    """Works by itself: the answer is another page."""
    has_modes = parts.settings.embeddings is not None or asked.mode != "auto"
    box = query_box(asked.q, label="Search for", placeholder="Search the documents")
    modes = [tag("option", label, value=mode, selected=mode == asked.mode) for mode, label in MODES.items()]
    return tag(
        "form",
        tag("h1", "Search", class_="aside"),
        tag("div", box, tag("button", "Search"), class_="box"),
        tag(
            "div",
            tag("label", "Rank by ", tag("select", modes, name="mode")) if has_modes else NOTHING,
            root_choice(asked.root, roots),
            path_box(asked.path),
            class_="filters",
        ),
        class_="search",
        role="search",
        action=visit.link("/"),
    )


def query_box(query: str, *, label: str, placeholder: str) -> Html:
    return tag(
        "input",
        id="q",
        type="search",
        name="q",
        value=query,
        maxlength=MAX_QUERY_CHARS,
        autocomplete="off",
        autocapitalize="off",
        spellcheck="false",
        aria_label=label,
        placeholder=placeholder,
        autofocus=not query,
    )


def root_choice(chosen: str, roots: tuple[str, ...]) -> Html:
    known = roots if not chosen or chosen in roots else (chosen, *roots)
    options = [tag("option", name(root), value=root, selected=root == chosen) for root in known]
    return tag("label", "Folder ", tag("select", tag("option", "all", value=""), options, name="root"))


def path_box(path: str) -> Html:
    box = tag("input", name="path", value=path, placeholder="guide/*.md", autocomplete="off", spellcheck="false")
    return tag("label", "Path ", box)


def _look(parts: HttpParts, request: Request, asked: Asked) -> Found:
    settings = parts.settings
    wanted = SearchRequest(
        query=asked.q,
        top_k=asked.hits,
        root=asked.root,
        path_glob=asked.path,
        mode=parse_mode(asked.mode),
        min_similarity=settings.embeddings.min_similarity if settings.embeddings is not None else LEAST_SIMILARITY,
    )
    with opened(parts, request) as base:
        roots = tuple(record.name for record in base.state.roots())
        if not asked.q.strip():
            return Found(None, roots, standing=standing_of(base), state=index_state(base))
        refuse_unknown_root(base, wanted.root)
        meaning = parts.embedder.meaning() if parts.embedder is not None else None
        found = told_consistently(answer(base.store, wanted, meaning), base)
        return Found(found, roots, urls=urls_of(settings, base, found))


def _body(visit: Visit, asked: Asked, found: Found) -> Html:
    if found.answer is None:
        return _start(found)
    hits = found.answer.results
    return joined(
        _summary(asked, found.answer),
        notices(list(search_notes(found.answer)), "warn" if _is_doubtful(found.answer) else ""),
        _suggestions(visit, asked, found.answer),
        tag("ol", [_hit(visit, asked, hit, found.urls.get(hit.citation, "")) for hit in hits], class_="hits")
        if hits
        else _nothing(asked, found.answer),
        _more(visit, asked, found.answer),
    )


def _by_words(visit: Visit, asked: Asked, error: KnowledgeError) -> Html:
    """The way on where it is the vectors that are amiss."""
    if error.code not in _OF_VECTORS or not asked.q.strip():
        return NOTHING
    link = tag("a", MODES["lexical"], href=visit.link("/", **_again(asked, mode="lexical")))
    return tag("p", "Search by", link, class_="suggest")


def _start(found: Found) -> Html:
    """Before anything is asked: what there is to be searched, and how."""
    notes = [note.removeprefix("note: ") for note in note_lines(found.standing)]
    documents = found.state.documents if found.state is not None else 0
    return joined(
        notices(notes, "warn"),
        tag("p", tag("span", holds_words(documents, len(found.roots))), class_="facts"),
        tag("div", [tag("p", hint_words(line)) for line in first_steps()], class_="empty"),
    )


def _is_doubtful(found: SearchAnswer) -> bool:
    return found.status is not SearchStatus.OK or found.tier.kind is TierKind.DEGRADED


def _summary(asked: Asked, found: SearchAnswer) -> Html:
    age = f"last full run {ago(found.identity.complete_ns, time.time_ns())}"
    hits = hits_words(len(found.results), asked.hits)
    return tag("p", tag("span", hits), tag("span", tier_line(found.tier)), tag("span", age), class_="facts", id="tier")


def _suggestions(visit: Visit, asked: Asked, found: SearchAnswer) -> Html:
    """The words that a misspelt one may stand for, as links to the search with them."""
    queries = [asked.q.replace(meant.term, word) for meant in found.did_you_mean for word in meant.suggestions]
    links = [tag("a", one_line(query, 80), href=visit.link("/", **_again(asked, q=query))) for query in queries]
    return tag("p", "Search for", links, class_="suggest") if links else NOTHING


def _again(asked: Asked, **changes: str) -> dict[str, str]:
    given = {"q": asked.q, "mode": asked.mode, "root": asked.root, "path": asked.path} | changes
    return {key: value for key, value in given.items() if (key, value) != ("mode", "auto")}


def _hit(visit: Visit, asked: Asked, hit: SearchHit, url: str) -> Html:
    breadcrumb = one_line(hit.heading_path, MAX_BREADCRUMB_CHARS)
    lines = f"lines {hit.start_line:,}-{hit.end_line:,}"
    near = f"similarity {hit.similarity:.2f}" if hit.similarity is not None else ""
    link = tag(
        "a",
        one_line(hit.title, MAX_TITLE_CHARS) or name(hit.path),
        href=document_link(visit, hit.path, hit.ordinal, asked.q),
    )
    facts = [tag("span", name(hit.path), class_="path"), tag("span", lines)]
    facts += [tag("span", near)] * bool(near) + [_published(url)] * url.startswith(_SAFE_LINKS)
    return tag(
        "li",
        tag("h2", link),
        tag("p", breadcrumb, class_="crumb") if breadcrumb else NOTHING,
        tag("p", _marked(hit), class_="snippet") if hit.snippet else NOTHING,
        tag("p", facts, class_="facts"),
        tag("p", also_in_words(hit.also_in), class_="also") if hit.also_in else NOTHING,
        _why(hit),
        class_="hit",
    )


def _published(url: str) -> Html:
    return tag("a", "where it is published", href=url, rel="noopener noreferrer")


def _marked(hit: SearchHit) -> Html:
    """The snippet with its matches marked; each piece is cleaned by itself, so that the offsets hold."""
    pieces: list[str | Html] = []
    at = 0
    for first, end in hit.matches:
        pieces += [segment(hit.snippet[at:first]), tag("mark", segment(hit.snippet[first:end]))]
        at = end
    return joined(pieces, segment(hit.snippet[at:]))


def _why(hit: SearchHit) -> Html:
    rows = [*lane_rows(hit.lanes), ("Fused score", f"{hit.score:.4f}")]
    told = rank_words(hit)
    return tag(
        "details",
        tag("summary", "Why this rank"),
        tag("p", f"Hit {hit.rank}{f', {told}' if told else ''}."),
        tag("dl", [joined(tag("dt", label), tag("dd", value)) for label, value in rows]),
        class_="why",
    )


def _nothing(asked: Asked, found: SearchAnswer) -> Html:
    steps = next_steps(found, is_narrowed=asked.is_narrowed)
    return tag("div", tag("ul", [tag("li", hint_words(step)) for step in steps]), class_="empty")


def _more(visit: Visit, asked: Asked, found: SearchAnswer) -> Html:
    links = []
    if len(found.results) == asked.hits < MAX_TOP_K:
        links.append(tag("a", f"Show {MAX_TOP_K} hits", href=visit.link("/", **_again(asked), hits=MAX_TOP_K)))
    if asked.q.strip():
        query = {"q": asked.q, "root": asked.root, "path": asked.path}
        links.append(tag("a", "List every document with these words", href=visit.link("/match", **query)))
    return tag("p", links, class_="more")
