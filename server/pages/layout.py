"""What every page has: its head, the way about, its answer with the headers that keep it inert."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse

from app.present_http import machine_places, without_named
from app.present_safe import name, one_line
from domain.errors import KnowledgeError
from server.http.parts import Caller, HttpParts, caller_of
from server.pages.assets import address, style
from server.pages.markup import NOTHING, Html, Part, joined, tag

POLICY = (
    f"default-src 'none'; style-src {style().source}; script-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",  # without one, a browser says of our own forms that they come from nowhere
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}
PLACES = (("/", "Search"), ("/match", "Match"), ("/operations", "Operations"))
SCRIPTS = {"/operations": ("pages.js", "operations.js")}


class Visit(NamedTuple):
    """Who looks at a page, and where it stands."""

    base_path: str
    caller: Caller | None  # None: nobody has signed in
    here: str = "/"  # the place whose entry is marked
    places: tuple[str, ...] = ()  # of the machine, which those who only read are not told

    @property
    def may_operate(self) -> bool:
        return self.caller is not None and "operate" in self.caller.scopes

    def told(self, sentence: str) -> str:
        """Words that may name a place, as this caller is told them."""
        return str(without_named(sentence, self.places))

    def link(self, path: str, /, **query: str | int) -> str:
        """An address of ours; what is empty is left out."""
        given = urlencode({key: value for key, value in query.items() if value != ""})
        return f"{self.base_path}{path}{f'?{given}' if given else ''}"


def visit_of(parts: HttpParts, request: Request, here: str) -> Visit:
    visit = Visit(parts.base_path, caller_of(request), here)
    return visit if visit.may_operate else visit._replace(places=tuple(machine_places(parts.settings)))


def page(visit: Visit, title: str, *parts: Part, body_class: str = "") -> Html:
    """The whole document."""
    return joined(
        Html("<!doctype html>\n"),
        tag(
            "html",
            _head(visit, title),
            tag(
                "body",
                tag("a", "Skip to the content", class_="skip", href="#content"),
                _header(visit),
                tag("main", *parts, id="content", tabindex="-1"),
                class_=body_class or None,
            ),
            lang="en",
        ),
        Html("\n"),
    )


def answered(html: Html, status: int = 200) -> HTMLResponse:
    return HTMLResponse(html, status, headers=HEADERS)


def error_parts(visit: Visit, error: KnowledgeError) -> Html:
    """An error in its own words: what is so, and what to do."""
    return tag(
        "div",
        tag("p", tag("strong", name(visit.told(error.message)))),
        tag("p", hint_words(visit.told(error.hint))) if error.hint else NOTHING,
        class_="notice bad",
        role="alert",
    )


def hint_words(text: str) -> Html:
    """A hint; what stands in back quotes is a command."""
    pieces = one_line(text).split("`")
    return joined([tag("code", piece) if number % 2 else piece for number, piece in enumerate(pieces)])


def notices(lines: Sequence[str], kind: str = "") -> Html:
    """What is to be said of an answer, a paragraph each."""
    if not lines:
        return NOTHING
    return tag("div", [tag("p", hint_words(line)) for line in lines], class_=f"notice {kind}".strip())


def _head(visit: Visit, title: str) -> Html:
    token = visit.caller.form_token if visit.caller is not None else ""
    scripts = SCRIPTS.get(visit.here, ("pages.js",))
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="base-path", content=visit.base_path),
        tag("meta", name="form-token", content=token) if token else NOTHING,
        tag("title", f"{title} - knowledge"),
        tag("style", Html(style().text)),
        tag("link", rel="icon", href=address(visit.base_path, "icon.svg")),
        [tag("script", src=address(visit.base_path, name), defer=True) for name in scripts],
    )


def _header(visit: Visit) -> Html:
    if visit.caller is None:
        return tag("header", tag("span", "knowledge", class_="brand"), class_="top")
    links = [
        tag("a", label, href=visit.link(path), aria_current="page" if path == visit.here else None)
        for path, label in PLACES
    ]
    return tag(
        "header",
        tag("a", "knowledge", class_="brand", href=visit.link("/")),
        tag("nav", links, aria_label="Pages"),
        _signed_in(visit, visit.caller),
        class_="top",
    )


def _signed_in(visit: Visit, caller: Caller) -> Html:
    who = tag("span", caller.name, class_="who") if caller.name else NOTHING
    if caller.kind != "session":
        return who
    form = tag(
        "form",
        tag("input", type="hidden", name="form_token", value=caller.form_token),
        tag("button", "Sign out", class_="quiet"),
        method="post",
        action=visit.link("/sign-out"),
    )
    return joined(who, form)
