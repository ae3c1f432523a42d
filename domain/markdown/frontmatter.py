"""The leading YAML block of a document: where it ends, and its values as JSON values."""

import datetime
import math
from collections.abc import Mapping
from typing import Any

from domain.markdown.borders import utf8_size
from domain.markdown.frontmatter_plain import plain_mapping
from domain.markdown.source import BOM, LINE_TAIL, next_line, with_line_feeds

MAX_FRONTMATTER_BYTES = 64 * 1024
MAX_FRONTMATTER_DEPTH = 16  # mappings and lists in each other
_MAX_INTEGER = 2**63 - 1  # larger ones become strings: JSON readers do not agree on them
_FENCE = "---"
_DROPPED = object()


def frontmatter_end(text: str, start: int = 0) -> int:
    """The offset behind the block that begins at `start` and its closing line; `start` where there is none.

    A block is a first line `---` up to the next line `---` or `...` (blanks may follow). One that never closes
    is none. Every line must end in LF.
    """
    first = next_line(text, start)
    if not text.startswith(_FENCE, start) or text[start:first].rstrip(LINE_TAIL) != _FENCE:
        return start
    dashes = _closing_line(text, first, len(text), _FENCE)
    dots = _closing_line(text, first, dashes or len(text), "...")
    return next_line(text, dots or dashes) if dots or dashes else start


def metadata_of(text: str) -> Mapping[str, object]:
    """The values of the frontmatter that a text begins with; {} where there is none, or a broken one.

    The store keeps the block once, verbatim: kept beside it as JSON it took a tenth of the database.
    """
    source = with_line_feeds(text)
    start = 1 if source.startswith(BOM) else 0
    end = frontmatter_end(source, start)
    return parse_frontmatter(source[start:end]) or {} if end > start else {}


def _closing_line(text: str, at: int, stop: int, mark: str) -> int:
    """The offset of the first line from `at` on that is `mark`, or 0."""
    found = text.find(f"\n{mark}", at - 1, stop)
    while found >= 0:
        if text[found + 1 : next_line(text, found + 1)].rstrip(LINE_TAIL) == mark:
            return found + 1
        found = text.find(f"\n{mark}", found + 1, stop)
    return 0


def parse_frontmatter(block: str) -> Mapping[str, object] | None:
    """The values of a block, its two fences included: {} where it is empty, None where it is broken.

    Broken: no YAML, no mapping, over 64 KiB, an alias, or deeper than 16. Dates become ISO strings; what JSON
    has no value for, and keys that are no strings, are left out.
    """
    block = block.replace("\r\n", "\n")
    inner = block[block.index("\n") + 1 : block.rstrip(LINE_TAIL).rindex("\n") + 1]
    plain = plain_mapping(inner)
    if plain is not None:
        return plain
    if utf8_size(inner) > MAX_FRONTMATTER_BYTES:
        return None
    return _parse(inner)


def _parse(block: str) -> Mapping[str, object] | None:
    import yaml  # 26 ms: paid by the first block that is not plain

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(block)
    try:
        node = loader.get_single_node()  # libyaml itself goes no deeper than 1,000
        if node is None:
            return {}
        if not _is_bounded(node):
            return None
        value = _json_value(loader.construct_document(node))
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError):
        return None
    finally:
        loader.dispose()
    return value if isinstance(value, dict) else None


def _is_bounded(root: Any) -> bool:
    """Whether a tree of YAML nodes has no node twice (an alias) and stays within the depth."""
    seen: set[int] = set()
    waiting = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        if id(node) in seen or depth > MAX_FRONTMATTER_DEPTH + 1:
            return False
        seen.add(id(node))
        if node.id == "sequence":
            waiting.extend((child, depth + 1) for child in node.value)
        elif node.id == "mapping":
            waiting.extend((child, depth + 1) for pair in node.value for child in pair)
    return True


def _json_value(value: object) -> object:
    """The JSON value of a YAML value, or _DROPPED."""
    match value:
        case None | bool():
            return value
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case int():
            return value if -_MAX_INTEGER <= value <= _MAX_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else _DROPPED
        case datetime.date():  # a datetime is one
            return value.isoformat()
        case list():
            return [item for item in map(_json_value, value) if item is not _DROPPED]
        case dict():
            pairs = ((key, _json_value(item)) for key, item in value.items() if isinstance(key, str))
            return {_json_value(key): item for key, item in pairs if item is not _DROPPED}
    return _DROPPED
