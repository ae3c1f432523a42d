"""A page read as a browser reads it: its elements, and whether anything in it could act."""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from starlette.testclient import TestClient

_ELEMENTS = """
html head meta title link style script body a header nav main form input button select option label div p span h1 h2 ol
ul li dl dt dd details summary mark strong code pre section table thead tbody tr th td time progress
"""
_ATTRIBUTES = """
lang charset name content rel href src defer class id type value maxlength autocomplete autocapitalize spellcheck
placeholder autofocus selected action method role tabindex scope hidden open max datetime required
"""
ELEMENTS, ATTRIBUTES = frozenset(_ELEMENTS.split()), frozenset(_ATTRIBUTES.split())
_VOID = frozenset(("meta", "link", "input"))


@dataclass(slots=True)
class Element:
    name: str
    attributes: dict[str, str]
    parts: "list[Element | str]" = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def all(self, name: str = "", class_: str = "") -> "list[Element]":
        """Below this one, in the order of the page."""
        found: list[Element] = []
        for part in self.parts:
            if isinstance(part, Element):
                classes = part.attributes.get("class", "").split()
                if (not name or part.name == name) and (not class_ or class_ in classes):
                    found.append(part)
                found += part.all(name, class_)
        return found

    def one(self, name: str = "", class_: str = "") -> "Element":
        (found,) = self.all(name, class_)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].parts.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].name == tag, f"</{tag}> closes <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].parts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data[:80]}")


def read(html: str) -> Element:
    """Raises AssertionError for markup that is not well-formed or could act."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert len(reader._open) == 1, "something is not closed"
    assert_inert(reader.root)
    return reader.root


def look(client: TestClient, address: str, status: int = 200, /, **parameters: str | int) -> Element:
    """The page at this address, whole and inert, under the policy that keeps it so."""
    answer = client.get(address, params=parameters or None)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    (style,) = re.findall("<style>(.*?)</style>", answer.text, re.DOTALL)
    named = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{named}';" in policy, "the one style of the page is the one that is allowed"
    return read(answer.text)


def assert_inert(root: Element) -> None:
    """Only elements and attributes of ours, scripts from our files, addresses that lead nowhere else."""
    for element in root.all():
        assert element.name in ELEMENTS, element.name
        for name, value in element.attributes.items():
            assert name in ATTRIBUTES or re.fullmatch(r"(?:data|aria)-[a-z]+(?:-[a-z]+)*", name), name
            if name in ("href", "src", "action"):
                assert re.match(r"(?:/(?!/)|#|https?://)", value), value
        if element.name == "style":
            assert not element.attributes
            assert "<" not in element.text
            element.parts.clear()  # no words that a page shows
        if element.name == "script":
            assert not element.text
            assert "/static/" in element.attributes["src"]
