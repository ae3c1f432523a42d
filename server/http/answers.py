"""Answers of the HTTP service: JSON with an ETag, lines of JSON, and problems (RFC 9457)."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.present import Json
from app.present_http import without_named
from app.present_safe import json_safe, name
from domain.errors import KnowledgeError, NotFoundError, UsageError
from store.port import StoreIdentity

PROBLEM_TYPE = "application/problem+json"
LINES_TYPE = "application/x-ndjson"
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_REVALIDATED = {"cache-control": "private, no-cache", "x-content-type-options": "nosniff"}
_COMES_AGAIN = {"retry-after": "5"}  # what is not there now: the model's server, the queue, a place for a stream
_AGES = frozenset(("age_seconds",))  # what goes on while the index stands still


def json_answer(value: Json, status: int = 200) -> Response:
    return Response(json_line(value), status, media_type="application/json", headers=HEADERS)


def told_answer(value: Json, error: KnowledgeError | None) -> Response:
    """An answer that holds an `error` as well, where an empty one would be misread: with that error's status."""
    return json_answer(value, 200 if error is None else error.http_status)


def tagged_answer(request: Request, identity: StoreIdentity, value: Json) -> Response:
    """The same with an ETag of the index's state and the answer; 304 where the client has this one."""
    tag = etag_of(identity, value)
    headers = _REVALIDATED | {"etag": tag, "vary": "authorization, cookie"}
    if tag in (part.strip() for part in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(json_line(value), media_type="application/json", headers=headers)


def etag_of(identity: StoreIdentity, value: Json) -> str:
    """Weak, for ages go on. Of the answer as well, since not all of it comes from the index: words alone rank while the
    model's server is away, and a run that goes on is named."""
    answered = hashlib.blake2b(msgspec.json.encode(_without_ages(value)), digest_size=12).hexdigest()
    return f'W/"{identity.store_uuid}-{identity.commit_seq}-{answered}"'


def _without_ages(value: Json) -> Json:
    index: Any = value.get("index")
    if not isinstance(index, dict):
        return value
    return value | {"index": {key: one for key, one in index.items() if key not in _AGES}}


def json_line(value: Json) -> str:
    """The JSON of a value on one line; safe to look at."""
    return json_safe(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) + "\n"


def problem(error: KnowledgeError, *, hidden: Sequence[str] = ()) -> Response:
    """`hidden`: places of the machine that whoever asks is not told."""
    return _problem(error, error.http_status, hidden)


def routing_problem(request: Request, error: Exception) -> Response:
    """No such path, or none with this method: what Starlette finds before any endpoint is called."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    shown = name(request.url.path[:200])
    if status == 405:
        told: KnowledgeError = UsageError(f"{shown} does not take {name(request.method[:20])}")
    else:
        told = NotFoundError(f"there is nothing at {shown}", hint="/v1/openapi.json lists what there is")
    answer = _problem(told, status)
    answer.headers.update(headers or {})
    return answer


def _problem(error: KnowledgeError, status: int, hidden: Sequence[str] = ()) -> Response:
    value = {
        "type": "about:blank",
        "title": error.code,
        "status": status,
        "detail": without_named(error.message, hidden),
        "code": error.code,
        "hint": without_named(error.hint, hidden) or None,
    }
    headers = HEADERS | _COMES_AGAIN if status == 503 else HEADERS
    return Response(json_line(value), status, media_type=PROBLEM_TYPE, headers=headers)
