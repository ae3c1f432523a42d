"""Complete sets of documents over HTTP, page by page."""

import time
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from app.enumerating import enumerate_base
from app.mcp_cursor import about_call, parse_cursor
from app.present import Json
from app.present_http import match_page_json
from app.present_match import match_error, match_json, match_not_built_json
from domain.errors import KnowledgeError, NotBuiltError
from retrieval.match_answer import DEFAULT_LIMIT, MatchRequest, MatchSort
from server.http.answer_shapes import MatchShape
from server.http.answers import tagged_answer, told_answer
from server.http.parameters import query_of
from server.http.parts import Endpoint, HttpParts
from server.http.reading import opened
from store.port import StoreIdentity

MAX_LIMIT = 1_000

Query = Annotated[
    str,
    Meta(description='Words that all must stand in a document; also "a phrase", -unwanted, heading:word, body:word.'),
]
Order = Annotated[MatchSort, Meta(description="matches: those with the most matches first; path: by path.")]
LeastMatches = Annotated[int, Meta(ge=1, le=2**31 - 1, description="Only documents with at least so many matches.")]
Root = Annotated[str, Meta(description="Only documents of this root.")]
Glob = Annotated[str, Meta(description="Only documents whose path matches, such as guide/*.md.")]


class MatchParameters(Struct, frozen=True, forbid_unknown_fields=True):
    q: Query
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="How many documents an answer lists.")] = DEFAULT_LIMIT
    cursor: Annotated[str, Meta(description="next_cursor of an answer to the same parameters: what follows.")] = ""
    sort: Order = "matches"
    min_matches: LeastMatches = 1
    root: Root = ""
    path: Glob = ""
    documents: Annotated[bool, Meta(description="false: only how many there are, and what is known of the terms.")] = (
        True
    )


async def match(parts: HttpParts, request: Request) -> Response:
    asked = query_of(request, MatchParameters)
    try:
        value, identity, error = await parts.in_thread(_match, parts, request, asked)
    except NotBuiltError as not_built:
        return told_answer(match_not_built_json(not_built), not_built)
    return told_answer(value, error) if error is not None else tagged_answer(request, identity, value)


def _match(
    parts: HttpParts, request: Request, asked: MatchParameters
) -> tuple[Json, StoreIdentity, KnowledgeError | None]:
    about = about_call("match", msgspec.structs.asdict(asked))
    cursor = parse_cursor(asked.cursor, about)
    wanted = MatchRequest(
        query=asked.q,
        limit=asked.limit if asked.documents else 0,
        sort=asked.sort,
        min_matches=asked.min_matches,
        root=asked.root,
        path_glob=asked.path,
        offset=cursor.offset if cursor is not None else 0,
    )
    with opened(parts, request) as base:
        answer = enumerate_base(base, wanted)
    if asked.documents:
        value = match_page_json(answer, wanted, time.time_ns(), about, cursor)
    else:
        value = match_json(answer, wanted, time.time_ns(), with_documents=False)
    return value, answer.identity, match_error(answer)


ENDPOINTS = (
    Endpoint(
        "GET", "/v1/match", match, "match", "List every document that holds all of the words, a page at a time.",
        query=MatchParameters, returns=MatchShape, is_tagged=True,
    ),
)  # fmt: skip
