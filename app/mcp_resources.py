"""Documents and passages as resources of MCP: `knowledge://ROOT/PATH`, and with `#NUMBER` a passage of it.

An address names a key of the store, percent-encoded. It is looked up there and nowhere else.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from domain.citations import MARK, MAX_CITATION_CHARS, Citation
from domain.errors import CitationMalformedError
from domain.keys import SEPARATOR

SCHEME = "knowledge://"
TEMPLATE = f"{SCHEME}{{root}}/{{+path}}{{#number}}"
_LONGEST = 3 * MAX_CITATION_CHARS  # every byte of a path may be written with three characters
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HINT = f"an address is {SCHEME}ROOT/PATH or {SCHEME}ROOT/PATH#NUMBER, percent-encoded"


class ResourceAddress(NamedTuple):
    key: str
    ordinal: int | None = None  # None: the whole document

    def format(self) -> str:
        number = "" if self.ordinal is None else f"{MARK}{self.ordinal}"
        return f"{SCHEME}{quote(self.key, safe=SEPARATOR)}{number}"


def parse_address(uri: str) -> ResourceAddress:
    """A number behind the last `#` is that of a passage; another `#` belongs to the path, as in a citation.

    Raises CitationMalformedError for what is no such address.
    """
    if len(uri) > _LONGEST or not uri.lower().startswith(SCHEME):
        raise _malformed("that is no address of a document")
    written = uri[len(SCHEME) :]
    before, _, behind = written.rpartition(MARK)
    is_passage = bool(before) and behind.isascii() and behind.isdigit()
    key = _decoded(before if is_passage else written)
    root, _, path = key.partition(SEPARATOR)
    if not (root and path):
        raise _malformed("the address names no root and path")
    return ResourceAddress(key, Citation.parse(f"{key}{MARK}{behind}").ordinal if is_passage else None)


def _decoded(written: str) -> str:
    if _BROKEN_ESCAPE.search(written):
        raise _malformed("a % in the address is not followed by two hexadecimal digits")
    try:
        decoded = unquote(written, errors="strict")
        decoded.encode()  # half a character in what was not escaped
    except UnicodeError:
        raise _malformed("the address is no UTF-8 text") from None
    return decoded


def _malformed(message: str) -> CitationMalformedError:
    return CitationMalformedError(message, hint=_HINT)
