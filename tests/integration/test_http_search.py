"""GET /v1/search: the answer of every surface, with an ETag of the index's state."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.support.bases import build_base
from tests.support.http_service import http_client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with http_client(build_base(tmp_path)) as asked:
        yield asked


def test_a_search(client: TestClient) -> None:
    answer = client.get("/v1/search", params={"q": "queen"})
    assert answer.status_code == 200
    assert answer.json()["status"] in ("ok", "no_hits")
    again = client.get("/v1/search", params={"q": "queen"}, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_what_is_no_parameter_is_refused(client: TestClient) -> None:
    answer = client.get("/v1/search", params={"q": "queen", "topk": "3"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert "there is no parameter 'topk'" in answer.json()["detail"]
