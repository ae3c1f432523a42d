"""One run: what it is at, its counters, and the removals that it holds, to be looked at before they are let go."""

import time

from starlette.requests import Request
from starlette.responses import Response

from app.approving import HeldList
from app.present import count
from app.present_runs import now_words
from app.present_safe import name
from app.runs import ShownRun, shown_run
from domain.errors import KnowledgeError
from server.http.parts import HttpParts
from server.http.recorded import hiding_places, run_of
from server.pages.layout import Visit, answered, error_parts, page, visit_of
from server.pages.markup import NOTHING, Html, joined, tag
from server.pages.operations_tabs import tabs
from server.pages.run_views import action, progress_bar, run_buttons, run_facts, state_class, title_of


async def run_page(parts: HttpParts, request: Request) -> Response:
    visit = visit_of(parts, request, "/operations")
    title = f"Run {str(request.path_params['run'])[:20]}"
    try:
        with hiding_places(request):
            shown = await parts.in_thread(shown_run, parts.settings, run_of(request))
    except KnowledgeError as error:
        html = page(visit, title, tabs(visit, ""), tag("h1", title), error_parts(visit, error))
        return answered(html, error.http_status)
    return answered(page(visit, title, tabs(visit, ""), _body(visit, shown)))


def _body(visit: Visit, shown: ShownRun) -> Html:
    run, now_ns = shown.run, time.time_ns()
    return joined(
        tag("h1", title_of(run)),
        tag("p", "", id="said", class_="said", role="status"),
        tag(
            "section",
            tag("p", visit.told(now_words(shown, now_ns)), class_=f"state {state_class(run)}"),
            progress_bar(run),
            run_buttons(visit, shown),
            run_facts(shown, now_ns),
            _held(visit, shown),
            id="run",
            class_="card",
            data_live=True,
            data_run=run.id,
            data_state=run.state,
        ),
    )


def _held(visit: Visit, shown: ShownRun) -> Html:
    held = shown.held
    if held is None or not held.count:
        return NOTHING
    more = held.count - len(held.first)
    keys = [tag("li", name(key), class_="path") for key in held.first]
    return tag(
        "div",
        tag("h2", f"Held: the removal of {count(held.count, 'document')}"),
        tag("p", "They are still in the index. Nothing of them goes before somebody lets it go."),
        tag("ul", keys, tag("li", f"and {more:,} more") if more else NOTHING),
        tag("p", "Digest of the list: ", tag("code", held.digest)),
        _approval(visit, shown, held),
        class_="held",
    )


def _approval(visit: Visit, shown: ShownRun, held: HeldList) -> Html:
    if shown.run.state != "needs_approval" or not visit.may_operate:
        return NOTHING
    documents = count(held.count, "document")
    button = action(
        f"/v1/runs/{shown.run.id}/approve",
        f"Let these {documents} go" if held.count > 1 else "Let this document go",
        asks=f"Remove {documents} from the index? The files themselves are not touched.",
        body={"digest": held.digest},
    )
    return tag("span", button, class_="actions", hidden=True)
