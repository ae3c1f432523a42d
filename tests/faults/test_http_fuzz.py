"""Requests that nobody would send, to the installed command: no fault, no silence, nothing told that is not to be
(T15, T16, T18, T19, T27, T28). `python -m bench.http_fuzz` sends ten thousand."""

from collections.abc import Iterator

import pytest

from tests.support.fuzz_asking import Report, ask_all, openapi_of
from tests.support.fuzz_bytes import KINDS, requests_of
from tests.support.fuzz_service import FuzzService, fuzz_service

SEED = 1
REQUESTS = {"api": 120, "page": 60, "mcp": 60, "raw": 60}
HANG_S = 20.0  # here only to tell silence from a busy machine


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzService]:
    """It is told to end at the end, and does."""
    with fuzz_service(tmp_path_factory.mktemp("fuzz"), most_documents=40) as it:
        yield it


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_sent_is_answered_in_words(running: FuzzService, kind: str) -> None:
    """Also: every answer is as the OpenAPI document describes it, and nothing is written into the log."""
    document, report = openapi_of(running), Report()
    requests = requests_of(kind, document, SEED, REQUESTS[kind])
    assert len(requests) >= REQUESTS[kind] // 2
    ask_all(running, requests, document, report, hang_s=HANG_S, at_once=4)
    assert [(fault, request, answer) for fault, request, answer in report.faults] == []
    assert report.statuses[f"{kind} 200"] > 0, "some reach what is behind the checks"
    assert [line for line in running.log if '"error"' in line or "Traceback" in line] == []
    if kind == "api":
        assert report.checked >= len(requests) - report.statuses["api none"]


def test_the_same_seed_makes_the_same_requests(running: FuzzService) -> None:
    document = openapi_of(running)
    for kind in KINDS:
        assert requests_of(kind, document, 3, 40) == requests_of(kind, document, 3, 40)
