"""Files that failed: why, how often, when they are tried again; a page of them at a time, by their keys."""

import time
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from app.failures import listed, of_reason
from app.present import ago, count
from app.present_failures import counts_line, next_words
from app.present_pages import no_failures_words, standing_words_of_failure
from app.present_reasons import reason_words
from app.present_safe import name, one_line
from domain.errors import KnowledgeError
from server.http.parts import HttpParts
from server.http.reading import opened
from server.pages.layout import Visit, answered, error_parts, hint_words, page, visit_of
from server.pages.markup import NOTHING, Html, joined, tag
from server.pages.operations_tabs import tabs
from server.pages.run_views import action
from store.failure_port import FailureCount, FailureRecord

ROWS = 50
HERE = "/operations/failures"
STANDINGS = ("open", "quarantined", "ignored")


class Asked(NamedTuple):
    reason: str
    standing: str
    after: str  # the key of the last one on the page before


class Found(NamedTuple):
    counts: Sequence[FailureCount]
    rows: Sequence[FailureRecord]  # one more than a page where others follow


async def failures_page(parts: HttpParts, request: Request) -> Response:
    visit = visit_of(parts, request, "/operations")
    given = request.query_params
    standing = given.get("standing", "")
    asked = Asked(given.get("reason", ""), standing if standing in STANDINGS else "", given.get("after", ""))
    try:
        found = await parts.in_thread(_look, parts, request, asked)
    except KnowledgeError as error:
        return answered(page(visit, "Failures", _top(visit), error_parts(visit, error)), error.http_status)
    return answered(page(visit, "Failures", _top(visit), _body(visit, asked, found)))


def _look(parts: HttpParts, request: Request, asked: Asked) -> Found:
    reason = of_reason(asked.reason or None)
    with opened(parts, request) as base:
        wanted = (
            row
            for row in listed(base, reason)
            if row.key > asked.after and (not asked.standing or row.standing == asked.standing)
        )
        return Found(tuple(base.state.failure_counts()), tuple(islice(wanted, ROWS + 1)))


def _top(visit: Visit) -> Html:
    return joined(tabs(visit, HERE), tag("h1", "Failures"), tag("p", "", id="said", class_="said", role="status"))


def _body(visit: Visit, asked: Asked, found: Found) -> Html:
    if not found.counts:
        return tag("p", hint_words(no_failures_words()), class_="empty")
    line = counts_line(found.counts)
    shown = found.rows[:ROWS]
    rest = found.rows[ROWS:]
    query = {"reason": asked.reason, "standing": asked.standing}
    onward = tag("a", "More", href=visit.link(HERE, **query, after=shown[-1].key)) if rest else NOTHING
    return joined(
        tag("p", line),
        _narrowing(visit, asked, found.counts),
        _all_again(visit, found.counts),
        tag("section", _table(visit, shown), id="rows", class_="card", data_live=True)
        if shown
        else tag("p", "None of these is left.", class_="empty"),
        tag("p", onward, class_="more") if rest else NOTHING,
    )


def _narrowing(visit: Visit, asked: Asked, counts: Sequence[FailureCount]) -> Html:
    """Links to those of one standing, of one reason."""
    links = [tag("a", "all", href=visit.link(HERE), aria_current="true" if asked == Asked("", "", "") else None)]
    for standing in STANDINGS:
        files = sum(one.files for one in counts if one.standing == standing)
        if files:
            label = f"{standing_words_of_failure(standing)} ({files:,})"
            chosen = "true" if asked.standing == standing else None
            links.append(tag("a", label, href=visit.link(HERE, standing=standing), aria_current=chosen))
    for reason in sorted({one.reason for one in counts}):
        files = sum(one.files for one in counts if one.reason == reason)
        chosen = "true" if asked.reason == reason else None
        label = f"{reason_words(reason)} ({files:,})"
        links.append(tag("a", label, href=visit.link(HERE, reason=reason), aria_current=chosen))
    return tag("nav", links, class_="narrow", aria_label="Which failures")


def _all_again(visit: Visit, counts: Sequence[FailureCount]) -> Html:
    files = sum(one.files for one in counts if one.standing != "ignored")
    if not visit.may_operate or not files:
        return NOTHING
    button = action("/v1/failures/retry", f"Try {count(files, 'file')} again", body={"all": True})
    return tag("p", tag("span", button, class_="actions", hidden=True))


def _table(visit: Visit, rows: Sequence[FailureRecord]) -> Html:
    now_ns = time.time_ns()
    head = tag("tr", [tag("th", label, scope="col") for label in ("File", "Why", "Tried", "Next")])
    return tag(
        "div",
        tag(
            "table",
            tag("thead", head),
            tag("tbody", [_row(visit, row, number, now_ns) for number, row in enumerate(rows)]),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label="Failures",
    )


def _row(visit: Visit, row: FailureRecord, number: int, now_ns: int) -> Html:
    detail = one_line(visit.told(row.detail), 300)
    tried = f"{count(row.tries, 'time')}, last {ago(row.last_ns, now_ns)}"
    return tag(
        "tr",
        tag("td", tag("span", name(row.key), class_="path")),
        tag("td", reason_words(row.reason), tag("span", detail, class_="aside-line") if detail else NOTHING),
        tag("td", tried),
        tag("td", next_words(row.standing, row.next_ns, now_ns), _again(visit, row, number)),
    )


def _again(visit: Visit, row: FailureRecord, number: int) -> Html:
    if not visit.may_operate or row.standing == "ignored":
        return NOTHING
    button = action("/v1/failures/retry", "Try again", body={"paths": [row.key]}, suffix=f"-{number}")
    return tag("span", button, class_="actions", hidden=True)
