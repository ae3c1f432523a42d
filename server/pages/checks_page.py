"""What the doctor finds of the surroundings, and how much of each folder is indexed: both for operators, as they name
places of the machine and take a while."""

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from app.coverage import RootCoverage, coverage
from app.doctor import diagnose
from app.present_checks import check_label, checks_status
from app.present_coverage import rest_words, share_words
from app.present_pages import check_state_words, checks_words, no_folders_words
from app.present_safe import name, one_line
from domain.checks import CheckResult, CheckState
from domain.errors import KnowledgeError
from server.http.parts import HttpParts
from server.pages.layout import answered, error_parts, hint_words, page, visit_of
from server.pages.markup import NOTHING, Html, joined, tag
from server.pages.operations_tabs import tabs

_MAX_CHARS = 400
_CLASSES = {CheckState.PASS: "good", CheckState.NOT_RUN: "busy"}


async def checks_page(parts: HttpParts, request: Request) -> Response:
    visit = visit_of(parts, request, "/operations")
    top = joined(tabs(visit, "/operations/checks"), tag("h1", "Checks"))
    try:
        results = await parts.in_thread(diagnose, parts.settings, parts.loaded.located)
    except KnowledgeError as error:
        return answered(page(visit, "Checks", top, error_parts(visit, error)), error.http_status)
    verdict = checks_words(checks_status(results), results)
    kind = {"fail": "bad", "warning": "warn", "not_run": "warn", "pass": "good"}[checks_status(results)]
    notice = tag("div", tag("p", hint_words(verdict)), class_=f"notice {kind}")
    return answered(page(visit, "Checks", top, notice, _checks(results)))


def _checks(results: Sequence[CheckResult]) -> Html:
    return tag("ul", [_check(result) for result in results], class_="checks card")


def _check(result: CheckResult) -> Html:
    is_warning = result.state is CheckState.FAIL and not result.is_fatal
    colour = "warn" if is_warning else _CLASSES.get(result.state, "bad")
    has_hint = bool(result.hint) and result.state is not CheckState.PASS
    return tag(
        "li",
        tag("span", check_state_words(result), class_=f"state {colour}"),
        tag("strong", check_label(result)),
        tag("span", one_line(result.detail, _MAX_CHARS), class_="detail"),
        tag("span", f"concerns {', '.join(map(name, result.documents))}", class_="aside-line")
        if result.documents
        else NOTHING,
        tag("span", hint_words(result.hint), class_="aside-line") if has_hint else NOTHING,
    )


async def coverage_page(parts: HttpParts, request: Request) -> Response:
    visit = visit_of(parts, request, "/operations")
    top = joined(tabs(visit, "/operations/coverage"), tag("h1", "Coverage"))
    try:
        covered = await parts.in_thread(_look, parts)
    except KnowledgeError as error:
        return answered(page(visit, "Coverage", top, error_parts(visit, error)), error.http_status)
    return answered(page(visit, "Coverage", top, _coverage(covered)))


def _look(parts: HttpParts) -> Mapping[str, RootCoverage]:
    with parts.bases.borrowed() as base:
        return coverage(base, parts.settings)


def _coverage(covered: Mapping[str, RootCoverage]) -> Html:
    if not covered:
        return tag("p", hint_words(no_folders_words()), class_="empty")
    return joined([_root(root, one) for root, one in covered.items()])


def _root(root: str, one: RootCoverage) -> Html:
    lines = [tag("li", hint_words(line)) for line in rest_words(one)]
    return tag(
        "section",
        tag("h2", name(root)),
        tag("p", share_words(one)),
        tag("progress", value=one.indexed, max=max(1, one.seen), aria_label=f"Indexed files of {name(root)}"),
        tag("ul", lines) if lines else NOTHING,
        class_="card",
    )
