"""Requests that nobody would send, to the installed command: no fault, no silence, nothing told that is not to be
(T15, T16, T18, T19, T27, T28); of each kind ten thousand in the deep form."""

import time
from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.depth import scaled
from tests.support.figures import Figure, NoteFigure
from tests.support.fuzz_asking import Report, ask_all, openapi_of
from tests.support.fuzz_bytes import KINDS, requests_of
from tests.support.fuzz_service import FuzzService, fuzz_service
from tests.support.fuzz_trying import ASKED

SEED = 1
A_BATCH = {"api": 120, "page": 60, "mcp": 60, "raw": 60}  # drawn from one seed
AT_LEAST = scaled(1, ASKED)  # of each kind; the batch that reaches it is sent whole
WHAT = {"api": "operations of the API", "page": "pages", "mcp": "messages to /mcp", "raw": "raw bytes"}
HANG_S = 20.0  # here only to tell silence from a busy machine


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzService]:
    """It is told to end at the end, and does."""
    with fuzz_service(tmp_path_factory.mktemp("fuzz"), most_documents=40) as it:
        yield it


def figure_of(kind: str, report: Report, sent: int, seconds: float) -> Figure:
    fit = f" {report.checked:,} answers fit their schema;" * bool(report.checked)
    return Figure(
        name=f"fuzz-http-{kind}",
        promises=("P28", "T15", "T16", "T18", "T19", "T27", "T28"),
        what=f"fuzz of HTTP, {WHAT[kind]}",
        tried=sent,
        bad=len(report.faults),
        asked=ASKED,
        seconds=seconds,
        detail=f"slowest {report.slowest_s:.2f} s;{fit} 4 at a time",
    )


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_sent_is_answered_in_words(running: FuzzService, kind: str, note_figure: NoteFigure) -> None:
    """Also: every answer is as the OpenAPI document describes it, and nothing is written into the log."""
    document, report, sent, began_s = openapi_of(running), Report(), 0, time.monotonic()
    for batch in count():
        requests = requests_of(kind, document, SEED + batch, A_BATCH[kind])
        assert len(requests) >= A_BATCH[kind] // 2
        ask_all(running, requests, document, report, hang_s=HANG_S, at_once=4)
        sent += len(requests)
        if sent >= AT_LEAST:
            break
    note_figure(figure_of(kind, report, sent, time.monotonic() - began_s))
    assert [(fault, request, answer) for fault, request, answer in report.faults] == []
    assert report.statuses[f"{kind} 200"] > 0, "some reach what is behind the checks"
    assert [line for line in running.log if '"error"' in line or "Traceback" in line] == []
    if kind == "api":
        assert report.checked >= sent - report.statuses["api none"]


def test_the_same_seed_makes_the_same_requests(running: FuzzService) -> None:
    document = openapi_of(running)
    for kind in KINDS:
        assert requests_of(kind, document, 3, 40) == requests_of(kind, document, 3, 40)
