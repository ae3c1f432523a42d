"""The OpenAPI document says of every endpoint what it takes and gives (issue 6)."""

import re
from typing import Any

import pytest

from server.http import read_endpoints, table
from server.http.openapi import openapi_json
from server.http.parts import Endpoint

DOCUMENT: dict[str, Any] = openapi_json(read_endpoints.ENDPOINTS, "", "knowledge_1")
OPERATIONS = [
    (path, method, operation) for path, methods in DOCUMENT["paths"].items() for method, operation in methods.items()
]


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for one in value.values() for found in references(one)]
    return [found for one in value for found in references(one)] if isinstance(value, list) else []


def test_every_endpoint_that_is_no_page_is_told() -> None:
    assert len(OPERATIONS) == len(read_endpoints.ENDPOINTS)
    page = read_endpoints.ENDPOINTS[0]._replace(path="/", is_page=True)
    assert "/" not in openapi_json([page], "", "c")["paths"]


def test_the_whole_table_can_be_told() -> None:
    """Whoever adds an endpoint: its operationId is its own."""
    document = openapi_json(table.ENDPOINTS, "", "c")
    told = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in told}) == len(told)
    assert len(told) == sum(not endpoint.is_page for endpoint in table.ENDPOINTS)
    assert all(reference.rpartition("/")[2] in document["components"]["schemas"] for reference in references(document))


def test_nothing_is_named_that_is_not_there() -> None:
    for reference in references(DOCUMENT):
        assert reference.startswith("#/components/schemas/")
        assert reference.rpartition("/")[2] in DOCUMENT["components"]["schemas"], reference


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r"[a-z][A-Za-z]*", name)


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_an_operation_is_whole(path: str, method: str, operation: Any) -> None:
    """Its parameters are described, each part of its path is one, and every answer has a shape."""
    assert operation["summary"].endswith(".")
    in_path = [parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"]
    assert in_path == re.findall(r"\{(\w+)\}", path)
    assert ":" not in path
    for parameter in operation["parameters"]:
        assert parameter["schema"]
        assert parameter["in"] == "path" or parameter["description"]
    responses = operation["responses"]
    assert set(responses) == {"200", "4XX", "5XX"} | ({"304"} if "headers" in responses["200"] else set())
    for answer in ("4XX", "5XX"):
        assert "application/problem+json" in responses[answer]["content"]
    (given,) = responses["200"]["content"].values()
    shape = DOCUMENT["components"]["schemas"][given["schema"]["$ref"].rpartition("/")[2]]
    assert shape["properties"]


def test_bodies_scopes_and_the_place_of_the_service() -> None:
    row = read_endpoints.ENDPOINTS[0]
    post = Endpoint("POST", "/v1/x/{run:int}/y", row.call, "x", "Do it.", scope="operate", body=row.query)
    document = openapi_json([post], "/prefix", "knowledge_1")
    assert document["servers"] == [{"url": "/prefix"}]
    operation = document["paths"]["/v1/x/{run}/y"]["post"]
    assert operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/SearchParameters")
    assert operation["parameters"][0]["schema"] == {"type": "integer", "minimum": 0}
    assert operation["x-scope"] == "operate"
    assert {"token": ["operate"]} in operation["security"]
    assert document["components"]["securitySchemes"]["session"]["name"] == "knowledge_1"
    assert document["openapi"].startswith("3.1")
    assert "2XX" in operation["responses"]


def test_limits_stand_in_it() -> None:
    parameters = {one["name"]: one for one in DOCUMENT["paths"]["/v1/search"]["get"]["parameters"]}
    assert parameters["q"]["required"]
    assert parameters["top_k"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 20}
    assert not parameters["top_k"]["required"]
    assert parameters["full"]["schema"] == {"type": "boolean", "default": False}
