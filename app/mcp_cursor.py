"""Where an answer that was cut by its budget goes on: a short text, checked when it comes back."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from domain.errors import UsageError

_SHAPE = re.compile(r"([0-9a-f]{12})\.([0-9]{1,9})\.([0-9a-f]{12})")
_HINT = "leave the cursor out to begin anew"


class Cursor(NamedTuple):
    """`offset`: how much has been given; `state`: of what was being given, so that a change is noticed."""

    about: str  # the call, cursor apart: 12 hexadecimal digits
    offset: int
    state: str  # 12 hexadecimal digits

    def format(self) -> str:
        return f"{self.about}.{self.offset}.{self.state}"


def digest(*parts: object) -> str:
    """12 hexadecimal digits of a call's arguments, or of a state."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def about_call(tool: str, arguments: Mapping[str, object]) -> str:
    return digest(tool, {key: value for key, value in arguments.items() if key != "cursor"})


def parse_cursor(text: str, about: str) -> Cursor | None:
    """None where none was given. Raises UsageError: no cursor of ours, or one of a call with other arguments."""
    if not text:
        return None
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise UsageError("the cursor is none that an answer gave", hint=_HINT)
    if found[1] != about:
        raise UsageError(
            "the cursor belongs to a call with other arguments", hint=f"repeat that call's arguments, or {_HINT}"
        )
    return Cursor(found[1], int(found[2]), found[3])
