"""Answers of the HTTP service: JSON with an ETag, and problems (RFC 9457)."""

import hashlib

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from app.present import Json, json_text
from domain.errors import KnowledgeError
from store.port import StoreIdentity

PROBLEM_TYPE = "application/problem+json"
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_REVALIDATED = {"cache-control": "private, no-cache", "x-content-type-options": "nosniff"}


def json_answer(value: Json, status: int = 200) -> Response:
    return Response(json_text(value), status, media_type="application/json", headers=HEADERS)


def tagged_answer(request: Request, identity: StoreIdentity, value: Json) -> Response:
    """The same with an ETag of the index's state and the question; 304 where the client has this answer."""
    tag = etag_of(request, identity)
    headers = _REVALIDATED | {"etag": tag, "vary": "authorization, cookie"}
    if tag in (part.strip() for part in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(json_text(value), media_type="application/json", headers=headers)


def etag_of(request: Request, identity: StoreIdentity) -> str:
    """Weak, for ages in an answer go on while the index stands still."""
    asked = hashlib.blake2b(f"{request.url.path}?{request.url.query}".encode(), digest_size=8).hexdigest()
    return f'W/"{identity.store_uuid}-{identity.commit_seq}-{asked}"'


def problem(error: KnowledgeError) -> Response:
    value = {
        "type": "about:blank",
        "title": error.code,
        "status": error.http_status,
        "detail": error.message,
        "code": error.code,
        "hint": error.hint or None,
    }
    return Response(msgspec.json.encode(value), error.http_status, media_type=PROBLEM_TYPE, headers=HEADERS)
