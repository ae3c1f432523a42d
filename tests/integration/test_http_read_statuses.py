"""Over HTTP an index that is not there, empty or not what it should be is told as by the command line (S0-56, S1-35,
S2-21): the same object where it has one, with the HTTP status of its error; else a problem."""

import contextlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from app.config import load_with_sources, locate
from domain.errors import KnowledgeError
from server.http.answer_shapes import MatchShape, SearchShape, WordsShape
from tests.support.http_service import http_client, loaded_client
from tests.support.status_matrix import STATES, WHOLE_STATES
from tests.support.told import _called

ASKED: tuple[tuple[str, dict[str, str], tuple[str, ...]], ...] = (
    ("/v1/search", {"q": "fox"}, ("search", "fox")),
    ("/v1/match", {"q": "fox"}, ("match", "fox")),
    ("/v1/match", {"q": "fox", "documents": "false"}, ("match", "fox", "--count")),
    ("/v1/match", {"q": "?!"}, ("match", "?!")),
    ("/v1/search", {"q": "?!"}, ("search", "?!")),
    ("/v1/words", {"pattern": "^fo"}, ("words", "^fo")),
    ("/v1/documents/docs/a.md", {}, ("show", "docs/a.md")),
    ("/v1/chunks/docs/a.md%230", {}, ("show", "docs/a.md#0")),
    ("/v1/sources", {}, ("sources",)),
    ("/v1/stats", {}, ("stats",)),
)
SHAPES = {"/v1/search": SearchShape, "/v1/match": MatchShape, "/v1/words": WordsShape}


def told_by_command(folder: Path, arguments: tuple[str, ...]) -> tuple[int, Any]:
    with contextlib.chdir(folder):
        status, out, _ = _called([*arguments, "--json"])
    return status, json.loads(out)


def http_status(code: str) -> int:
    found = [KnowledgeError]
    for kind in found:
        found += kind.__subclasses__()
    return next(kind.http_status for kind in found if kind.code == code)


def without_ages(value: Any) -> Any:
    if isinstance(value.get("index"), dict):
        value["index"].pop("age_seconds", None)
    value.pop("next_cursor", None)
    return value


@pytest.mark.parametrize("name", WHOLE_STATES)
def test_a_state_is_told_as_by_the_command_line(tmp_path: Path, name: str) -> None:
    STATES[name].build(tmp_path)
    located = locate(tmp_path, config=None, environ={})
    with loaded_client(load_with_sources(located, {}, cwd=tmp_path)) as client:
        for path, parameters, arguments in ASKED:
            answer = client.get(path, params=parameters)
            status, value = told_by_command(tmp_path, arguments)
            assert_same(answer.status_code, answer.json(), status, value, path)
            if answer.status_code == 200 or "title" not in answer.json():
                if path in SHAPES:
                    msgspec.convert(answer.json(), SHAPES[path])
            else:
                assert answer.headers["content-type"] == "application/problem+json"


def assert_same(http: int, answered: Any, exit_status: int, told: Any, path: str) -> None:
    error = told.get("error")
    assert http == (http_status(error["code"]) if error else 200), (path, answered, told)
    assert (exit_status == 0) == (error is None)
    if "title" in answered and "detail" in answered:  # a problem: the command prints the error alone
        assert set(told) == {"error"}
        assert error == {"code": answered["code"], "message": answered["detail"], "hint": answered["hint"] or ""}
    else:
        assert without_ages(answered) == without_ages(told), path


def test_a_set_that_would_be_misread_is_not_exported(tmp_path: Path) -> None:
    STATES["empty"].build(tmp_path)
    located = locate(tmp_path, config=None, environ={})
    with http_client(load_with_sources(located, {}, cwd=tmp_path).settings) as client:
        answer = client.get("/v1/match.ndjson", params={"q": "fox"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "corpus_empty")


def test_documents_of_an_empty_index_are_none_and_it_says_why(tmp_path: Path) -> None:
    for name, status in (("empty", "empty"), ("inconsistent", "index_inconsistent"), ("incomplete", "incomplete")):
        folder = tmp_path / name
        folder.mkdir()
        STATES[name].build(folder)
        settings = load_with_sources(locate(folder, config=None, environ={}), {}, cwd=folder).settings
        with http_client(settings) as client:
            value = client.get("/v1/documents").json()
            assert value["status"] == status
            assert value["note"]
            assert bool(value["documents"]) == (name == "incomplete")


def test_an_index_that_comes_while_the_service_runs_is_followed(tmp_path: Path) -> None:
    STATES["not_built"].build(tmp_path)
    settings = load_with_sources(locate(tmp_path, config=None, environ={}), {}, cwd=tmp_path).settings
    with http_client(settings) as client:
        assert client.get("/v1/search", params={"q": "fox"}).json()["status"] == "index_not_built"
        STATES["complete"].build(tmp_path)
        assert found(client) == 2


def found(client: TestClient) -> int:
    return len(client.get("/v1/search", params={"q": "fox"}).json()["results"])
