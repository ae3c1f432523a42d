"""Documents and their chunks over HTTP, as they were indexed: no file is read for them."""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from app.consistency import standing_of
from app.present import Json
from app.present_documents import chunk_json, document_json
from app.present_sources import documents_json
from app.showing import show_chunk, show_document
from app.tiers import base_tier
from domain.citations import Citation
from server.http.answer_shapes import ChunkShape, DocumentShape, DocumentsShape
from server.http.answers import tagged_answer
from server.http.parameters import path_text, query_of
from server.http.parts import Endpoint, HttpParts
from server.http.reading import opened
from store.port import StoreIdentity, Visibility

MAX_LIMIT = 1_000
DEFAULT_LIMIT = 100
MAX_NEIGHBOURS = 50
_LINES = r"^[0-9]{1,9}(-([0-9]{1,9})?)?$"


class DocumentsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    prefix: Annotated[str, Meta(description="Only documents below this folder, such as docs/guide.")] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="How many documents an answer lists.")] = DEFAULT_LIMIT
    cursor: Annotated[str, Meta(description="next_cursor of an answer: what follows.")] = ""


class DocumentParameters(Struct, frozen=True, forbid_unknown_fields=True):
    lines: Annotated[
        str, Meta(pattern=f"{_LINES}|^$", description="Only these lines, such as 10-20, 10- or 10; they count from 1.")
    ] = ""


class ChunkParameters(Struct, frozen=True, forbid_unknown_fields=True):
    before: Annotated[int, Meta(ge=0, le=MAX_NEIGHBOURS, description="So many chunks before it.")] = 0
    after: Annotated[int, Meta(ge=0, le=MAX_NEIGHBOURS, description="So many chunks after it.")] = 0


async def documents(parts: HttpParts, request: Request) -> Response:
    asked = query_of(request, DocumentsParameters)
    value, identity = await parts.in_thread(_documents, parts, request, asked)
    return tagged_answer(request, identity, value)


def _documents(parts: HttpParts, request: Request, asked: DocumentsParameters) -> tuple[Json, StoreIdentity]:
    prefix = f"{asked.prefix.rstrip('/')}/" if asked.prefix else ""
    everything = Visibility.everything()
    with opened(parts, request) as base:
        with base.store.snapshot() as snapshot:
            identity = snapshot.identity()
            found = snapshot.documents(prefix, after=asked.cursor, limit=asked.limit + 1, visibility=everything)
            has_documents = bool(found) or snapshot.has_documents()
            tier = base_tier(parts.settings, snapshot.vector_status(), has_documents=has_documents)
        listed = found[: asked.limit]
        next_cursor = listed[-1].key if len(found) > asked.limit else None
        return documents_json(listed, tier, standing_of(base), next_cursor), identity


async def document(parts: HttpParts, request: Request) -> Response:
    asked, key = query_of(request, DocumentParameters), path_text(request, "path")
    value, identity = await parts.in_thread(_document, parts, request, key, asked.lines)
    return tagged_answer(request, identity, value)


def _document(parts: HttpParts, request: Request, key: str, lines: str) -> tuple[Json, StoreIdentity]:
    with opened(parts, request) as base:
        with base.store.snapshot() as snapshot:
            identity = snapshot.identity()
            shown = show_document(snapshot, key, lines, partial(standing_of, base))
            tier = base_tier(parts.settings, snapshot.vector_status(), has_documents=True)
        return document_json(shown, tier, standing_of(base)), identity


async def chunk(parts: HttpParts, request: Request) -> Response:
    asked, citation = query_of(request, ChunkParameters), Citation.parse(path_text(request, "citation"))
    value, identity = await parts.in_thread(_chunk, parts, request, citation, asked)
    return tagged_answer(request, identity, value)


def _chunk(
    parts: HttpParts, request: Request, citation: Citation, asked: ChunkParameters
) -> tuple[Json, StoreIdentity]:
    with opened(parts, request) as base:
        with base.store.snapshot() as snapshot:
            identity = snapshot.identity()
            shown = show_chunk(snapshot, citation, asked.before, asked.after, partial(standing_of, base))
            tier = base_tier(parts.settings, snapshot.vector_status(), has_documents=True)
        return chunk_json(shown, tier, standing_of(base)), identity


ENDPOINTS = (
    Endpoint(
        "GET", "/v1/documents", documents, "listDocuments", "List the documents by path, a page at a time.",
        query=DocumentsParameters, returns=DocumentsShape, is_tagged=True,
    ),
    Endpoint(
        "GET", "/v1/documents/{path:path}", document, "document", "A document as it was indexed, or some of its lines.",
        query=DocumentParameters, returns=DocumentShape, is_tagged=True,
    ),
    Endpoint(
        "GET", "/v1/chunks/{citation:path}", chunk, "chunk",
        "The chunk that a citation names, with its neighbours; its # is percent-encoded as %23.",
        query=ChunkParameters, returns=ChunkShape, is_tagged=True,
    ),
)  # fmt: skip
