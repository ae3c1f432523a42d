"""ETags hang on the index and on what was answered, not on ages; JSON is one line that is safe to look at."""

import json

from starlette.requests import Request

from server.http.answers import etag_of, json_line, tagged_answer
from store.port import StoreIdentity

IDENTITY = StoreIdentity("b", "u", 7, 2, "auto", 1)
VALUE = {"tier": "tier: hybrid", "status": "ok", "index": {"commit_seq": 7, "age_seconds": 3, "run_in_progress": None}}


def request(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/v1/search", "query_string": b"q=a", "headers": raw})


def test_an_age_makes_no_other_answer() -> None:
    older = VALUE | {"index": {"commit_seq": 7, "age_seconds": 4, "run_in_progress": None}}
    assert etag_of(IDENTITY, VALUE) == etag_of(IDENTITY, older)


def test_whatever_else_differs_does() -> None:
    """Words alone while the model's server is away, a run that has begun, another state of the index."""
    others = [
        (IDENTITY, VALUE | {"tier": "tier: hybrid -> DEGRADED"}),
        (IDENTITY, VALUE | {"index": {"commit_seq": 7, "age_seconds": 3, "run_in_progress": {"id": 1}}}),
        (IDENTITY._replace(commit_seq=8), VALUE),
        (IDENTITY._replace(store_uuid="v"), VALUE),
    ]
    tags = {etag_of(*other) for other in others}
    assert len(tags) == len(others)
    assert etag_of(IDENTITY, VALUE) not in tags


def test_only_the_answer_that_the_client_has_is_not_sent() -> None:
    tag = etag_of(IDENTITY, VALUE)
    for given, status in ((tag, 304), (f'"x", {tag}', 304), ('"x"', 200), ("", 200), (tag.removeprefix("W/"), 200)):
        answer = tagged_answer(request(if_none_match=given), IDENTITY, VALUE)
        assert (answer.status_code, bool(answer.body)) == (status, status == 200), given


def test_json_is_a_line() -> None:
    value = {"a": "x\n\x1b[1m\u202e\ud800 é"}
    text = json_line(value)
    assert text.count("\n") == 1
    assert json.loads(text) == value
    assert not set("\x1b\u202e") & set(text)
    text.encode()
