"""What is read over HTTP: searches here, and the table of all that is read."""

import time
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from app.consistency import told_consistently
from app.present import Json
from app.present_search import not_built_json, search_json
from app.search_context import index_state, refuse_unknown_root, urls_of
from app.searching import answer
from app.tiers import base_tier
from domain.errors import NotBuiltError
from retrieval.answer import LEAST_SIMILARITY, MAX_TOP_K, SearchRequest
from retrieval.modes import parse_mode
from retrieval.query_vector import Meaning, Stopped
from server.http import (
    openapi,
    read_endpoints_base,
    read_endpoints_documents,
    read_endpoints_export,
    read_endpoints_match,
    read_endpoints_words,
)
from server.http.answer_shapes import SearchShape
from server.http.answers import tagged_answer, told_answer
from server.http.parameters import query_of
from server.http.parts import Endpoint, HttpParts
from server.http.reading import opened, while_asked
from store.port import StoreIdentity
from store.vector_port import NO_VECTORS


class SearchParameters(Struct, frozen=True, forbid_unknown_fields=True):
    q: Annotated[str, Meta(description="What to search for; text in double quotes is looked for as written.")]
    top_k: (
        Annotated[int, Meta(ge=1, le=MAX_TOP_K, description="How many hits; the configured number when left out.")]
        | UnsetType
    ) = UNSET
    mode: Annotated[
        str,
        Meta(description="auto (words, and meaning where embeddings are configured), lexical, vector or hybrid."),
    ] = "auto"
    root: Annotated[str, Meta(description="Only documents of this root.")] = ""
    path: Annotated[str, Meta(description="Only documents whose path matches, such as guide/*.md.")] = ""
    min_similarity: (
        Annotated[
            float,
            Meta(
                ge=-1, le=1, description="Leave out what is less near in meaning; the configured number when left out."
            ),
        ]
        | UnsetType
    ) = UNSET
    full: Annotated[bool, Meta(description="Give the whole text of each hit as `content`.")] = False
    all_chunks: Annotated[bool, Meta(description="Give copies of a text as hits of their own.")] = False


async def search(parts: HttpParts, request: Request) -> Response:
    wanted = search_request(parts, query_of(request, SearchParameters))
    try:
        if parts.embedder is None or wanted.mode == "lexical":
            value, identity = await parts.in_thread(_search, parts, request, wanted, None)
        else:
            value, identity = await while_asked(parts, request, _search_by_meaning, parts, request, wanted)
    except NotBuiltError as error:
        tier = base_tier(parts.settings, NO_VECTORS, has_documents=False)
        return told_answer(not_built_json(error, tier), error)
    return tagged_answer(request, identity, value)


def search_request(parts: HttpParts, asked: SearchParameters) -> SearchRequest:
    """Raises UsageError for a mode that is none."""
    embeddings = parts.settings.embeddings
    similarity = embeddings.min_similarity if embeddings is not None else LEAST_SIMILARITY
    return SearchRequest(
        query=asked.q,
        top_k=None if asked.top_k is UNSET else asked.top_k,
        configured_top_k=parts.settings.top_k,
        root=asked.root,
        path_glob=asked.path,
        all_chunks=asked.all_chunks,
        full=asked.full,
        mode=parse_mode(asked.mode),
        min_similarity=similarity if asked.min_similarity is UNSET else asked.min_similarity,
    )


def _search_by_meaning(
    stopped: Stopped, parts: HttpParts, request: Request, wanted: SearchRequest
) -> tuple[Json, StoreIdentity]:
    return _search(parts, request, wanted, parts.embedder.meaning(stopped) if parts.embedder is not None else None)


def _search(
    parts: HttpParts, request: Request, wanted: SearchRequest, meaning: Meaning | None
) -> tuple[Json, StoreIdentity]:
    if meaning is None and parts.embedder is not None:
        meaning = parts.embedder.meaning()  # words alone are asked for: nothing is embedded
    with opened(parts, request) as base:
        refuse_unknown_root(base, wanted.root)
        found = told_consistently(answer(base.store, wanted, meaning), base)
        urls = urls_of(parts.settings, base, found)
        return search_json(found, index_state(base), urls, time.time_ns()), found.identity


ENDPOINTS = (
    Endpoint(
        "GET", "/v1/search", search, "search", "Search the index; the best hits come first.",
        query=SearchParameters, returns=SearchShape, is_tagged=True,
    ),
    *read_endpoints_match.ENDPOINTS,
    *read_endpoints_export.ENDPOINTS,
    *read_endpoints_words.ENDPOINTS,
    *read_endpoints_documents.ENDPOINTS,
    *read_endpoints_base.ENDPOINTS,
    *openapi.ENDPOINTS,
)  # fmt: skip
