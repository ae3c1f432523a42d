"""The OpenAPI document of the service, made from the table of its endpoints: /v1/openapi.json."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from app.present import Json
from server.http.access import access_of
from server.http.answer_shapes import OpenApiShape
from server.http.answers import LINES_TYPE, PROBLEM_TYPE, json_answer
from server.http.parameters import refuse_query
from server.http.parts import Endpoint, HttpParts

_PATH_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")
_MEDIA = {"object": "application/json", "lines": LINES_TYPE, "events": "text/event-stream"}
_REF = "#/components/schemas/{name}"
_ABOUT = (
    "Searches, complete sets, documents and runs of one index. Errors are problems (RFC 9457) with a stable `code`;"
    " parameters that are unknown, or come twice, are refused."
)


class Problem(Struct):
    """Why there is no answer (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str | None = None


async def openapi(parts: HttpParts, request: Request) -> Response:
    refuse_query(request)
    return json_answer(_of_all(parts.base_path, access_of(parts.settings).cookie))


@cache
def _of_all(base_path: str, cookie: str) -> Json:
    """Made once: it takes 15 ms."""
    from server.http.table import ENDPOINTS as TABLE  # the table names this module

    return openapi_json(TABLE, base_path, cookie)


def openapi_json(endpoints: Sequence[Endpoint], base_path: str, cookie: str) -> Json:
    """Of all endpoints but pages, in OpenAPI 3.1. `cookie`: the name of a session's."""
    told = [endpoint for endpoint in endpoints if not endpoint.is_page]
    paths: dict[str, Json] = {}
    for endpoint in told:
        path = _PATH_PARAMETER.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "knowledge", "version": _version(), "description": _ABOUT},
        "servers": [{"url": base_path or "/"}],
        "paths": paths,
        "components": {
            "schemas": _schemas(told),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token of the service."},
                "session": {"type": "apiKey", "in": "cookie", "name": cookie},
            },
        },
    }


def _operation(endpoint: Endpoint) -> Json:
    operation: Json = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint.path), *_query_parameters(endpoint.query)],
        "responses": _responses(endpoint),
        # a service without a token answers everybody who reaches it
        "security": [{}, {"token": [endpoint.scope]}, {"session": []}],
        "x-scope": endpoint.scope,
    }
    if endpoint.body is not None:
        schema = {"$ref": _REF.format(name=endpoint.body.__name__)}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


def _path_parameters(path: str) -> Iterable[Json]:
    for name, kind in _PATH_PARAMETER.findall(path):
        parameter: Json = {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        if kind == "int":
            parameter["schema"] = {"type": "integer", "minimum": 0}
        elif kind == "path":
            parameter["description"] = "Percent-encoded; a slash may stand as it is."
        yield parameter


def _query_parameters(query: type[Struct] | None) -> Iterable[Json]:
    if query is None:
        return
    schema = _definitions([query])[query.__name__]
    for name, told in schema["properties"].items():
        parameter: Json = {"name": name, "in": "query", "required": name in schema.get("required", ())}
        if description := told.get("description"):
            parameter["description"] = description
        yield parameter | {"schema": {key: value for key, value in told.items() if key != "description"}}


def _responses(endpoint: Endpoint) -> Json:
    schema = (
        {"$ref": _REF.format(name=endpoint.returns.__name__)} if endpoint.returns is not None else {"type": "object"}
    )
    media = _MEDIA[endpoint.answer]
    answered: Json = {"description": _described(endpoint), "content": {media: {"schema": schema}}}
    refused: Json = {PROBLEM_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}}
    responses: Json = {"200" if endpoint.method == "GET" else "2XX": answered}
    if endpoint.is_tagged:
        answered["headers"] = {"ETag": {"schema": {"type": "string"}}}
        responses["304"] = {"description": "The answer that `If-None-Match` names still holds."}
    if _has_error(endpoint.returns):
        refused["application/json"] = {"schema": schema}
    responses["4XX"] = {"description": "It was refused, or there is no index to ask.", "content": refused}
    responses["5XX"] = {
        "description": "It could not be answered.",
        "content": {PROBLEM_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}},
    }
    return responses


def _described(endpoint: Endpoint) -> str:
    kinds = {"object": "The answer.", "lines": "Objects of JSON, one a line.", "events": "Events as they happen."}
    return kinds[endpoint.answer]


def _has_error(returns: type[Struct] | None) -> bool:
    """Whether an answer may hold its error itself, where an empty one would be misread."""
    return returns is not None and "error" in returns.__struct_fields__


def _schemas(endpoints: Iterable[Endpoint]) -> Json:
    structs: list[type[Struct]] = [Problem]
    for endpoint in endpoints:
        structs += [struct for struct in (endpoint.body, endpoint.returns) if struct is not None]
    return _definitions(list(dict.fromkeys(structs)))


def _definitions(structs: list[type[Struct]]) -> dict[str, Any]:
    _, definitions = msgspec.json.schema_components(structs, ref_template=_REF)
    return dict(definitions)


def _version() -> str:
    try:
        return version("knowledge-service")
    except PackageNotFoundError:
        return ""


ENDPOINTS = (
    Endpoint("GET", "/v1/openapi.json", openapi, "openapi", "This description of the service.", returns=OpenApiShape),
)
