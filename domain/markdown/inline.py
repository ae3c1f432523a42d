"""Code spans and links inside a paragraph, on demand: the block scanner pays nothing for them.

Both take the text of one block (not the whole document) and answer offsets in it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAX_TARGET_CHARS = 2_000  # a longer link target is none: keeps the search linear
_BACKTICKS = re.compile(r"`++")  # possessive: cannot backtrack
_LINK_MARKS = re.compile(r"[\[\]\\]")


class Link(NamedTuple):
    """An inline link or image: `text[start:stop]` is all of it, `text[target_start:target_stop]` its target."""

    start: int
    stop: int
    target_start: int
    target_stop: int
    is_image: bool


def code_spans(text: str) -> list[tuple[int, int]]:
    """Start and stop of the code spans, their backticks included: a run of backticks up to the next one of the
    same length. A run behind a backslash is one backtick shorter."""
    runs = [(match.start(), match.end()) for match in _BACKTICKS.finditer(text)]
    by_length: dict[int, list[int]] = {}
    for number, (start, stop) in reversed(list(enumerate(runs))):
        by_length.setdefault(stop - start, []).append(number)  # the next one of a length is its list's last
    found: list[tuple[int, int]] = []
    number = 0
    while number < len(runs):
        start, stop = runs[number]
        if _is_escaped(text, start):
            start += 1
        same = by_length.get(stop - start, [])
        while same and same[-1] <= number:
            same.pop()
        if start < stop and same:
            number = same[-1]
            found.append((start, runs[number][1]))
        number += 1
    return found


def links(text: str) -> list[Link]:
    """The inline links and images, in the order in which they end; those in code spans are none."""
    found: list[Link] = []
    brackets: list[int] = []  # offsets of the open ones
    skip_to = 0
    for at, mark in _marks(text, code_spans(text)):
        if at < skip_to:
            continue
        if mark == "[":
            brackets.append(at)
        elif brackets:
            opened = brackets.pop()
            target = _target(text, at + 1)
            if target is None:
                continue
            is_image = opened > 0 and text[opened - 1] == "!"
            found.append(Link(opened - is_image, target[2], target[0], target[1], is_image))
            skip_to = target[2]
            if not is_image:
                brackets.clear()  # no link holds another
    return found


def _marks(text: str, code: Sequence[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Brackets outside of code and not behind a backslash."""
    number, skip_to = 0, 0
    for match in _LINK_MARKS.finditer(text):
        at = match.start()
        while number < len(code) and code[number][1] <= at:
            number += 1
        if at < skip_to or (number < len(code) and code[number][0] <= at):
            continue
        if match[0] == "\\":
            skip_to = at + 2
        else:
            yield at, match[0]


def _target(text: str, at: int) -> tuple[int, int, int] | None:
    """Start and stop of the target in `(target "title")` at `at`, and the offset behind it."""
    if text[at : at + 1] != "(":
        return None
    window = text[at : at + MAX_TARGET_CHARS]
    start = 1 + len(window[1:]) - len(window[1:].lstrip())
    if window[start : start + 1] == "<":
        start += 1
        stop = window.find(">", start)
        behind = stop + 1
        if stop < 0 or "\n" in window[start:stop]:
            return None
    else:
        stop = behind = _bare_target_stop(window, start)
    end = _title_stop(window, behind)
    return None if end < 0 else (at + start, at + stop, at + end)


def _bare_target_stop(window: str, at: int) -> int:
    """The end of a target without angle brackets: a blank, or a parenthesis that none opened."""
    depth = 0
    while at < len(window):
        char = window[at]
        if char <= " ":
            break
        if char == "(":
            depth += 1
        elif char == ")":
            if not depth:
                break
            depth -= 1
        at += 2 if char == "\\" else 1
    return min(at, len(window))


def _title_stop(window: str, at: int) -> int:
    """The offset behind the closing parenthesis, with or without a title before it; -1 where there is none."""
    rest = window[at:].lstrip()
    behind = len(window) - len(rest)
    if rest[:1] == ")":
        return behind + 1
    close = {'"': '"', "'": "'", "(": ")"}.get(rest[:1])
    end = rest.find(close, 1) if close and behind > at else -1
    while end > 0 and _is_escaped(rest, end):
        end = rest.find(str(close), end + 1)
    if end < 0:
        return -1
    tail = rest[end + 1 :].lstrip()
    return len(window) - len(tail) + 1 if tail[:1] == ")" else -1


def _is_escaped(text: str, at: int) -> bool:
    """Whether an odd number of backslashes stands before `at`."""
    before = at
    while before and text[before - 1] == "\\":
        before -= 1
    return (at - before) % 2 == 1
