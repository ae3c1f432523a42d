"""Texts of every kind that people and their machines give a program, near to what it expects and far from it."""

import os
from random import Random

from tests.support.depth import IS_NIGHTLY
from tests.support.fuzz_trying import mutated, some
from tests.support.hostile_texts import hostile_texts

WORDS = (
    "quagga", "river", "the", "of", "foo_bar", "C++17", "e-mail", "3.14", "naïve", "Übergrößen", "e\u0301te\u0301",
    "東京都", "你好世界", "हिन्दी", "ภาษาไทย", "한국어", "עברית", "🙂", "👩\u200d👩\u200d👧", "\u0130stanbul", "ǅ",
    "ﬁn", "ß",
    "\ufeff", "\u200b", "\u202e", "\u2028", "\x85", "\x0b", "\x1c", "\x00", "\x1b[2J", "\x9b31m", "x" * 80,
    "\U0010ffff",
    "\ue000", "\ufffe", "٣", "²", "Ⅷ", "a" * 300, "-", "--", "?!", "'", '"', "`", "\\", "#0", "a.b.c", "/",
    "docs/a.md",
)  # fmt: skip
ODD_INTEGERS = (0, 1, -1, 2, 5, 19, 20, 21, 1_000, -(2**31), 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**30)
ODD_NUMBERS = (
    "0", "1", "-1", "20", "21", "1e9", "1.5", "NaN", "inf", "-inf", "0x10", "1_000", "٣", "²", "", " 1", "1 ", "+1",
    "--1",
    "9" * 19, "9223372036854775807", "9223372036854775808", "9" * 5_000, "true", "null", "1\u00a0", "\uff11",
)  # fmt: skip

_MARKDOWN = (
    "# ", "## ", "###### ", "####### ", "#", "```", "````", "~~~", "```python", "> ", "> > ", "- ", "* ", "+ ", "1. ",
    "999999999. ", "    ", "\t", "  ", "<!--", "-->", "<div>", "</div>", "<pre>", "<script>", "<![CDATA[", "]]>", "<?",
    "| a | b |", "|---|:-:|", "|", "---", "***", "===", "...", "+++", "[a]: b", "[", "]", "](", "![", "*", "**", "_",
    "\\", "&amp;", "&#0;", "&#x110000;", "title: x", "title: [", "tags: [a, b]", "aliases:", "  - a", "? a",
    "!!python/x",
    "&a", "*a", "%YAML 9.9", "{", "}", '"', "'", ":", ": ", "key: |", "date: 2024-13-45", "setext\n===", "a\n---",
)  # fmt: skip
_ENDS = ("\n", "\n", "\n", "\n\n", "\r\n", "\r", "\n\r", "\u2028", "\x0b", "\x0c", "\x85", "\x00", "")
_TOKENS = (
    *(part.encode() for part in (*_MARKDOWN, *_ENDS[:-1], *WORDS)),
    b"\xff", b"\xfe\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x00" * 64, b"\x80",
    b"\xef\xbb\xbf",
)  # fmt: skip
_REPEATED = (
    " ", "\t", "[", "]", "*", "_", "#", "`", "~", "<", "<!--", "-->", "> ", "- ", "1. ", "|", "| a ", "\\", "&",
    "![", "](",
    "# a\n", "## b\n\n", "- a\n", "> - ", "```\n", "~~~x\n", "| a |\n", "|-|\n", "<div>\n", "\n", "\r", "\r\n",
    " \n", "a\n===\n",
    "x ", "word ", "漢", "é", "e\u0301", "\u0301", "\ufeff", "\x00", "\u2028", "[a]: b\n", "a: b\n", "  - a\n",
    "<a ", "<a b=", "\"", "'",
    "**a ", "http://a.b/", "a@b.c ", "0", "-", "=", "---\n", "\t- \n", "     x\n", "1) ", "<?x", "<!X", "\\\n",
    "a  \n", "&#", "$$", "[^1]: ",
)  # fmt: skip
_FRONTMATTERS = (
    "",
    "",
    "---\n",
    "\ufeff---\n",
    "---\ntitle: A\ntags: [x, y]\n---\n",
    "+++\na = 1\n+++\n",
    "---\r\n",
    "---\n" + "- " * 200,
)
_HOSTILE = tuple(one.document.encode("utf-8", "surrogatepass") for one in list(hostile_texts())[::5])
MONSTER_BYTES = 512 * 1024  # the largest file that is read
MONSTER_SIZES = (100_000, MONSTER_BYTES) if IS_NIGHTLY else (60_000,)


def phrase(random: Random, most: int = 6) -> str:
    return random.choice((" ", "", " ", "\n")).join(some(random, WORDS, most))


def markdown(random: Random) -> str:
    """From a grammar of lines: what opens a block, words, what ends a line."""
    lines = [random.choice(_FRONTMATTERS)]
    for _ in range(random.randint(0, 40)):
        opening = "".join(some(random, _MARKDOWN, 3))
        lines += [opening, phrase(random, 4), random.choice(_ENDS)]
    return "".join(lines)


def monster(random: Random) -> bytes:
    """T8, T9: a short thing again and again, up to the largest file that is read, with a little around it."""
    size = random.choice((2_000, 20_000, *MONSTER_SIZES, MONSTER_BYTES + 1))
    unit = "".join(some(random, _REPEATED, 3)) or random.choice(_REPEATED)
    if random.random() < 0.2:
        unit = f"{unit}\n"
    head, tail = random.choice((*_FRONTMATTERS, *_REPEATED)), random.choice(_REPEATED)
    body = unit.encode() * (size // len(unit.encode()) + 1)
    whole: bytes = (head.encode() + body)[: size - len(tail.encode())] + tail.encode()
    return whole


def contents(random: Random) -> bytes:
    """A file: a text of ours that was changed, one from the grammar, a monster, or bytes of any kind."""
    kind = random.random()
    if kind < 0.04:
        return monster(random)
    if kind < 0.06:
        return "".join(some(random, ("\ufeff", " ", "\t", "\r", "\n", "\f", "\v"), 9)).encode()
    if kind < 0.16:
        return random.randbytes(random.randint(0, 600))
    if kind < 0.22:
        return "".join(map(chr, some(random, range(0xD7FF), 200))).encode()
    if kind < 0.4:
        return mutated(random, random.choice(_HOSTILE), _TOKENS)
    text = markdown(random).encode()
    return text if kind < 0.75 else mutated(random, text, _TOKENS, most=3)


def file_name(random: Random) -> bytes:
    """One name below a folder, at most 200 bytes: what a file system takes, not what one would write."""
    kinds = (WORDS, _MARKDOWN, WORDS, _NAME_PARTS)
    parts = [os.fsencode(random.choice(random.choice(kinds))) for _ in range(random.randint(1, 4))]
    if random.random() < 0.1:
        parts.insert(random.randint(0, len(parts)), random.randbytes(random.randint(1, 9)))
    name = b"".join(parts).replace(b"/", b"").replace(b"\0", b"")[:190]
    name += random.choice((b".md", b".md", b".md", b".MD", b".markdown", b".txt", b".text", b".rst", b"", b".md~"))
    return name if name not in _MEANT_OTHERWISE else name + b"dots.md"


_MEANT_OTHERWISE = frozenset({b"", b".", b"..", b"knowledge.db", b".knowledgeignore"})  # by systems, and by a walk
_NAME_PARTS = (
    "\udcff", "#0", "#", "##1", "-", "--help", " ", "  ", "\n", "\r", "\t",
    "\x1b]0;x\x07", "\x1b[2J",
    "\u202e", "\ufeff", "\xe9", "e\u0301", "\x9b", "~", "$HOME", "`id`", "%2e%2e",
    "\\", "..", "...",
    ".", "*", "?", "[a]", "<U+0041>", ":", "|", '"', "'", "&", ";", "docs", "knowledge.db",
    ".knowledgeignore", "a" * 150,
    "\U0001f642", "\u6771", "\u2028", "\xad", "\u115f", "0", "=", "@", "file:",
)  # fmt: skip
_IGNORED = (
    "*", "**", "?", "!", "/", "a", "[a-z]", "[!a]", "[", "]", "\\", "\\ ", "#", " ", "\t", "*.md", "**/", "/**",
    "!*.md", "[]]",
    "[\\]]", "{a,b}", ".", "..", "\ufeff", "é", "東", "\x00", "[z-a]", "[[:alpha:]]", "a**b", "***", "(?", "(", ")",
    "+", "|", "^", "$",
)  # fmt: skip


def ignore_lines(random: Random) -> bytes:
    """A .knowledgeignore that somebody's repository brings along."""
    lines = ["".join(some(random, _IGNORED, 8)) for _ in range(random.randint(0, 4))]
    if random.random() < 0.1:
        lines.append(random.choice(("*a" * 30, "**/" * 30 + "x", "?" * 200, "[a-z]*" * 20, "*" * 500, "a" * 9_000)))
    return random.choice(("\n", "\r\n", "\r", "\u2028")).join(lines).encode("utf-8", "replace")
