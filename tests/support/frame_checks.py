"""What an answer to an agent may look like: each form by itself in a frame, and nothing in it that acts or hides."""

import re
import unicodedata
from typing import Any

from mcp.types import CallToolResult

from tests.support.hostile_texts import MARK
from tests.support.mcp_clients import object_of, text_of

NOTICE = re.compile(r"between the two lines with ([0-9a-f]{24}) was copied")
_BIDI_AND_HIDDEN = {"Cf", "Cc", "Co", "Cn", "Cs", "Zl", "Zp"}
_ALLOWED = {"\n", "\t"}
_INVISIBLE = set("\u3164\u115f\u1160\uffa0\u034f\ufe0f\ufe00") | {chr(0xE0100 + n) for n in range(240)}


def assert_harmless(text: str) -> None:
    for char in set(text) - _ALLOWED:
        assert unicodedata.category(char) not in _BIDI_AND_HIDDEN, hex(ord(char))
        assert char not in _INVISIBLE, hex(ord(char))


def inside(text: str, nonce: str) -> tuple[str, str]:
    """What stands between the frame's lines, and what stands outside."""
    begin, end = f"=== BEGIN UNTRUSTED DATA {nonce} ===\n", f"\n=== END UNTRUSTED DATA {nonce} ===\n"
    assert text.count(begin) == 1 and text.count(end) == 1
    before, _, rest = text.partition(begin)
    body, _, after = rest.partition(end)
    return body, before + after


def assert_framed_text(result: CallToolResult) -> str:
    """The text of an answer that holds MARK; its frame's number."""
    text = text_of(result)
    assert_harmless(text)
    found = NOTICE.search(text)
    assert found is not None
    body, outside = inside(text, found[1])
    assert found[1] not in body
    assert MARK in body and MARK not in outside
    assert outside.count("tier: ") == 1 and "tier: lexical (FTS5)" in outside
    return found[1]


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


def assert_framed_object(result: CallToolResult, of_documents: set[str]) -> str:
    """The object of an answer that holds MARK, and of documents only what is named; its frame's number."""
    value = object_of(result)
    for text in strings(value):
        assert_harmless(text)
    assert value["untrusted"] is True
    found = NOTICE.search(value["notice"])
    assert found is not None
    nonce = found[1]
    assert value["begin"] == f"=== BEGIN UNTRUSTED DATA {nonce} ==="
    assert value["end"] == f"=== END UNTRUSTED DATA {nonce} ==="
    keys = list(value)
    framed = keys[keys.index("begin") + 1 : keys.index("end")]
    assert set(framed) == of_documents and keys[-1] == "end"
    rest = {key: part for key, part in value.items() if key not in {*framed, "begin", "end", "notice"}}
    assert not any(nonce in text or MARK in text for text in strings(rest))
    body = strings({key: value[key] for key in framed})
    assert not any(nonce in text for text in body) and any(MARK in text for text in body)
    return nonce
