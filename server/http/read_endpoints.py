"""What is read over HTTP: searches, complete answers, words, documents, passages, sources, numbers."""

import time
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from app.consistency import told_consistently
from app.present import Json
from app.present_search import search_json
from app.search_context import index_state, refuse_unknown_root, urls_of
from app.searching import answer
from retrieval.answer import SearchRequest
from retrieval.modes import parse_mode
from server.http.answers import tagged_answer
from server.http.parameters import query_of
from server.http.parts import Endpoint, HttpParts
from store.port import StoreIdentity


class SearchParameters(Struct, frozen=True, forbid_unknown_fields=True):
    q: Annotated[str, Meta(description="What to search for.")]
    top_k: Annotated[int | None, Meta(description="How many hits, 1 to 20.")] = None
    mode: Annotated[str, Meta(description="auto, lexical, vector or hybrid.")] = "auto"
    root: Annotated[str, Meta(description="Only documents of this root.")] = ""
    path: Annotated[str, Meta(description="Only documents whose path matches, such as guide/*.md.")] = ""


async def search(parts: HttpParts, request: Request) -> Response:
    value, identity = await parts.in_thread(_search, parts, query_of(request, SearchParameters))
    return tagged_answer(request, identity, value)


def _search(parts: HttpParts, asked: SearchParameters) -> tuple[Json, StoreIdentity]:
    settings = parts.settings
    wanted = SearchRequest(
        query=asked.q,
        top_k=asked.top_k,
        configured_top_k=settings.top_k,
        root=asked.root,
        path_glob=asked.path,
        mode=parse_mode(asked.mode),
    )
    meaning = parts.embedder.meaning() if parts.embedder is not None else None
    with parts.bases.borrowed() as base:
        refuse_unknown_root(base, wanted.root)
        found = told_consistently(answer(base.store, wanted, meaning), base)
        urls = urls_of(settings, base, found)
        return search_json(found, index_state(base), urls, time.time_ns()), found.identity


ENDPOINTS = (
    Endpoint(
        "GET", "/v1/search", search, "search", "Search the index; the best hits come first.", query=SearchParameters
    ),
)
