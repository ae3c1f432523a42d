"""The way about between the pages of operations."""

from server.pages.layout import Visit
from server.pages.markup import Html, tag

_TABS = (("/operations", "Overview"), ("/operations/failures", "Failures"))
_OPERATOR_TABS = (("/operations/checks", "Checks"), ("/operations/coverage", "Coverage"))


def tabs(visit: Visit, here: str) -> Html:
    """Those that the caller may open."""
    shown = [*_TABS, *(_OPERATOR_TABS if visit.may_operate else ())]
    links = [
        tag("a", label, href=visit.link(path), aria_current="page" if path == here else None) for path, label in shown
    ]
    return tag("nav", links, class_="tabs", aria_label="Operations")
