"""A heading's words as they stand in titles and breadcrumbs."""

import re

MAX_HEADING_CHARS = 300
_RAW_CHARS = 2 * MAX_HEADING_CHARS  # looked at: what is longer is cut before it is cleaned
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_ANCHOR_OPEN = re.compile(r"<a\s++(?:name|id)\s*+=[^<>]*+>", re.IGNORECASE)  # possessive: cannot backtrack
_ANCHOR_CLOSE = "</a>"


def heading_text(raw: str) -> str:
    """The words of a heading line behind its hashes, or of a setext paragraph.

    Closing hashes go, inline markup stays as written, but backslash escapes are resolved and empty anchors
    dropped, runs of blanks become one, and at most 300 characters are kept. "" where nothing is left: no
    heading.
    """
    text = " ".join(raw.split()) if len(raw) <= _RAW_CHARS else " ".join(raw[:_RAW_CHARS].split())
    if text[-1:] == "#":
        text = without_closing_hashes(text)
    if "<" in text:
        text = " ".join(_without_anchors(text).split())
    if "\\" in text:
        text = _ESCAPE.sub(r"\1", text)
    return text if len(text) <= MAX_HEADING_CHARS else text[:MAX_HEADING_CHARS].rstrip()


def without_closing_hashes(text: str) -> str:
    """The words of a heading line, without blanks behind, before its closing run of hashes if it has one."""
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else text


def _without_anchors(text: str) -> str:
    """Drop `<a name=...></a>` and `<a id=...>` with nothing between; an anchor round words keeps the words."""
    stripped = _ANCHOR_OPEN.sub("", text)
    if stripped == text:
        return text
    return stripped.replace(_ANCHOR_CLOSE, "") if "<a " not in stripped else stripped.replace(_ANCHOR_CLOSE, "", 1)
