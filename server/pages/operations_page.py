"""The overview of operations: the index, its runs, the queue, schedules, failures, folders, the store."""

from starlette.requests import Request
from starlette.responses import Response

from app.present import ago, count, note_lines
from app.present_failures import counts_line
from app.present_pages import no_runs_words, service_words, standing_title
from app.status import BaseStatus
from domain.errors import KnowledgeError
from domain.status import Standing
from server.http.parts import HttpParts
from server.http.run_endpoints_health import health_now
from server.pages.layout import Visit, answered, error_parts, hint_words, notices, page, visit_of
from server.pages.markup import NOTHING, Html, Part, joined, tag
from server.pages.operations_look import Overview, overview
from server.pages.operations_tabs import tabs
from server.pages.run_views import action, runs_table
from server.pages.service_views import folders_table, numbers, queue_numbers, schedules_list, store_numbers


async def operations_page(parts: HttpParts, request: Request) -> Response:
    visit = visit_of(parts, request, "/operations")
    try:
        seen = await parts.in_thread(overview, parts, request, await health_now(parts))
    except KnowledgeError as error:
        return answered(page(visit, "Operations", _top(visit), error_parts(visit, error)), error.http_status)
    return answered(page(visit, "Operations", _top(visit), _sections(visit, seen)))


def _top(visit: Visit) -> Html:
    return joined(
        tabs(visit, "/operations"),
        tag(
            "div",
            tag("h1", "Operations"),
            tag("span", "as of when the page was loaded", id="live", class_="live"),
            class_="heading",
        ),
        tag("p", "", id="said", class_="said", role="status"),
    )


def _sections(visit: Visit, seen: Overview) -> Html:
    return joined(
        _section("index", "", _index(visit, seen)),
        _section("runs", "Runs", _runs(visit, seen)),
        tag(
            "section",
            tag("h2", "Queue"),
            tag("div", queue_numbers(seen.health), id="queue-now", data_live=True),
            tag("div", id="charts", class_="charts kept" if seen.health["queue"] is not None else "charts"),
            id="queue",
            class_="card",
        ),
        _section("schedules", "Schedules", schedules_list(seen.schedules, seen.now_ns)),
        _section("failures", "Failures", _failures(visit, seen)),
        _section("folders", "Folders", folders_table(visit, seen.status)) if seen.status is not None else NOTHING,
        _section("store", "Store", store_numbers(seen.health)),
    )


def _section(key: str, title: str, *parts: Part) -> Html:
    """What the script exchanges when something has changed."""
    return tag("section", tag("h2", title) if title else NOTHING, *parts, id=key, class_="card", data_live=True)


def _index(visit: Visit, seen: Overview) -> Html:
    if seen.status is None:
        return joined(error_parts(visit, seen.problem) if seen.problem is not None else NOTHING, _start(visit))
    status = seen.status
    rows = [
        ("Index", standing_title(status.standing)),
        ("Documents", f"{status.documents:,}"),
        ("Passages", f"{status.chunks:,}"),
        ("Last full run", ago(status.identity.complete_ns, seen.now_ns)),
        ("Service", service_words(status.is_service_up)),
    ]
    if status.vectors.pending_documents:
        rows.append(("Without vectors yet", count(status.vectors.pending_documents, "document")))
    told = [note.removeprefix("note: ") for note in note_lines(status.standing)]
    is_bad = status.standing in (Standing.INCONSISTENT, Standing.OUTDATED)
    return joined(numbers(rows, big=True), notices(told, "bad" if is_bad else "warn"), _start(visit, status))


def _start(visit: Visit, status: BaseStatus | None = None) -> Html:
    """Where nothing goes on, a run may be begun."""
    if not visit.may_operate or (status is not None and (status.running is not None or not status.is_service_up)):
        return NOTHING
    return tag(
        "span",
        action("/v1/runs", "Look for changes now", body={"kind": "index"}),
        class_="actions",
        hidden=True,
    )


def _runs(visit: Visit, seen: Overview) -> Html:
    if not seen.runs:
        return tag("p", hint_words(no_runs_words()), class_="empty")
    return runs_table(visit, seen.runs, seen.now_ns)


def _failures(visit: Visit, seen: Overview) -> Html:
    line = counts_line(seen.failures)
    link = tag("a", "Which ones, and why", href=visit.link("/operations/failures")) if seen.failures else NOTHING
    return tag("p", line, " " if link else "", link)
