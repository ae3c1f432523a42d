"""The vocabulary of the index over HTTP."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from app.consistency import listed_consistently
from app.present import Json
from app.present_words import words_error, words_json, words_not_built_json
from app.tiers import base_tier
from domain.errors import KnowledgeError, NotBuiltError, UsageError
from retrieval.vocabulary import DEFAULT_LIMIT, Field, Sort, WordsRequest, count_words, list_words
from retrieval.word_pattern import compile_pattern
from server.http.answer_shapes import WordsShape
from server.http.answers import tagged_answer, told_answer
from server.http.limits import busy
from server.http.parameters import query_of
from server.http.parts import Endpoint, HttpParts
from server.http.reading import opened
from server.http.refusals import RequestRefusedError
from store.port import StoreIdentity
from store.vector_port import NO_VECTORS

MAX_LIMIT = 10_000
MOST_PATTERNS_WAITING = 8  # more would be in the way of others for nothing: each may take a second
_MOST = 2**31 - 1


class WordsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[
        str, Meta(description="A regular expression that is found anywhere in a word, blind to case.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="How many words at most.")] = DEFAULT_LIMIT
    min_docs: Annotated[int, Meta(ge=0, le=_MOST, description="Only words that at least so many chunks hold.")] = 0
    max_docs: (
        Annotated[int, Meta(ge=1, le=_MOST, description="Only words that at most so many chunks hold.")] | UnsetType
    ) = UNSET
    field: (
        Annotated[Field, Meta(description="Only words of one part of the chunks: body, heading or names.")] | UnsetType
    ) = UNSET
    sort: Annotated[Sort, Meta(description="count: the most common first; word: by the word.")] = "count"
    words: Annotated[bool, Meta(description="false: only how many there are.")] = True


async def words(parts: HttpParts, request: Request) -> Response:
    asked = query_of(request, WordsParameters)
    wanted = _request(asked)
    compile_pattern(wanted.pattern)  # one that cannot be read is told even where there is no index
    try:
        async with _turn(parts, wanted):
            value, identity, error = await parts.in_thread(_words, parts, request, wanted, asked.words)
    except NotBuiltError as not_built:
        tier = base_tier(parts.settings, NO_VECTORS, has_documents=False)
        return told_answer(words_not_built_json(not_built, wanted, tier), not_built)
    return told_answer(value, error) if error is not None else tagged_answer(request, identity, value)


def _turn(parts: HttpParts, wanted: WordsRequest) -> AbstractAsyncContextManager[None]:
    """When a pattern is looked for: not in so many threads that others would wait. Raises RequestRefusedError where too
    many wait for their turn already."""
    if not wanted.pattern:
        return nullcontext()
    if parts.patterns.statistics().tasks_waiting >= MOST_PATTERNS_WAITING:
        raise RequestRefusedError(busy("as many patterns are looked for as there may be"))
    return parts.patterns


def _request(asked: WordsParameters) -> WordsRequest:
    most = None if asked.max_docs is UNSET else asked.max_docs
    if most is not None and most < asked.min_docs:
        raise UsageError(
            f"no word can be in at least {asked.min_docs} and at most {most} chunks",
            hint="give max_docs a larger number, or leave it out",
        )
    field = None if asked.field is UNSET else asked.field
    return WordsRequest(asked.pattern, asked.limit, asked.min_docs, most, field, asked.sort)


def _words(
    parts: HttpParts, request: Request, wanted: WordsRequest, with_words: bool
) -> tuple[Json, StoreIdentity, KnowledgeError | None]:
    with opened(parts, request) as base:
        with base.store.snapshot() as snapshot:
            answer = list_words(snapshot, wanted) if with_words else count_words(snapshot, wanted)
            tier = base_tier(parts.settings, snapshot.vector_status(), has_documents=answer.has_documents)
        answer = listed_consistently(answer, base)
    return words_json(answer, wanted, tier, with_words=with_words), answer.identity, words_error(answer)


ENDPOINTS = (
    Endpoint(
        "GET", "/v1/words", words, "words", "List the words of the index with their counts.",
        query=WordsParameters, returns=WordsShape, is_tagged=True,
    ),
)  # fmt: skip
