"""HTML from values: whatever is not HTML already is escaped, so that no text of a document becomes a tag."""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = frozenset(("br", "hr", "input", "link", "meta"))


class Html(str):
    """Markup that was made here."""

    __slots__ = ()


Part: TypeAlias = "str | Html | int | Iterable[Part] | None"
"""What may stand in an element: text, HTML, a number, nothing, or several of these."""
Value = str | int | bool | None
"""Of an attribute: True stands alone, False and None leave it out."""

NOTHING = Html("")


def tag(name: str, /, *parts: Part, **attributes: Value) -> Html:
    """An element. `class_` is written class, `data_run` data-run."""
    opened = f"<{name}{_attributes(attributes)}>"
    return Html(opened) if name in _VOID else Html(f"{opened}{joined(*parts)}</{name}>")


def joined(*parts: Part) -> Html:
    """Side by side, nothing between them."""
    return Html("".join(map(_text, parts)))


def _text(part: Part) -> str:
    if part is None:
        return ""
    if isinstance(part, Html):
        return part
    if isinstance(part, str):
        return escape(part)
    if isinstance(part, int):
        return f"{part:,}"
    return joined(*part)


def _attributes(attributes: dict[str, Value]) -> str:
    given = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    written = (name if value is True else f'{name}="{escape(str(value))}"' for name, value in given if _is_given(value))
    return "".join(f" {attribute}" for attribute in written)


def _is_given(value: Value) -> bool:
    return value is not None and value is not False
