"""What is typed at `knowledge`, and what is written to `knowledge mcp`: near what they take, and far from it."""

import json
from functools import cache
from random import Random
from typing import Any

from typer.main import get_group

from cli.verbs import ALL_VERBS, app
from tests.support.fuzz_questions import citation, glob, lines, match_query, pattern, query
from tests.support.fuzz_texts import ODD_INTEGERS, ODD_NUMBERS, WORDS
from tests.support.fuzz_trying import mutated, some

UNKNOWN = "--no-such-option"
# they start processes, wait, or change what the other inputs are about: asked only with an option that they refuse
_ONLY_REFUSED = frozenset((
    "index", "rm", "reset", "rebuild", "restore", "upgrade", "compact", "retry", "watch", "up", "scheduler", "worker",
    "writer", "serve", "embed-server", "eval", "notify", "mcp", "doctor",
))  # fmt: skip
# and these; the last writes wherever it is told to
_ALSO_ONLY_REFUSED = frozenset((("runs", "retry"), ("runs", "approve"), ("config", "init")))
_NEVER = frozenset({"--open"})  # starts an editor
_PLACES = (
    "docs", "docs/a.md", "/", "/etc/passwd", "/dev/zero", "/dev/null", "/proc/self/mem", "nowhere", "", ".", "..",
    "knowledge.yaml", "knowledge", "~", "~x", "x" * 5_000, "/x" * 3_000, "\udcff", "\n",
)  # fmt: skip
_VALUES = (
    "all", "lexical", "semantic", "bm25", "path", "matches", "count", "word", "body", "heading", "names", "not_utf8",
    "unreadable", "agent", "full", "json", "bash", "zsh",
)  # fmt: skip
_SPECIAL = (
    "--", "-", "---", "--=", "-h", "--help", "--version", "--debug", "--json", "--config", "--config=", "--json=1",
    "-q", "--top-k=", "--limit=-1", "--root=", "",
)  # fmt: skip
_TAKE_WORDS = frozenset({"search", "show", "match", "words", "explain", "ignore", "completion", "runs", "backup"})


@cache
def verbs() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Every verb, and verb of a group, with its options, as the help pages have them."""
    group: Any = get_group(app)
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for name in ALL_VERBS:
        command = group.get_command(None, name)
        inner = getattr(command, "commands", None)
        below: dict[tuple[str, ...], Any] = {(name, one): inner[one] for one in inner} if inner else {(name,): command}
        for words, each in below.items():
            options = {option for parameter in each.params for option in parameter.opts if option.startswith("--")}
            found[words] = tuple(sorted(options - _NEVER))
    return found


def arguments(random: Random) -> list[str]:
    """A command without its program's name."""
    if random.random() < 0.05:
        return [random.choice((*_SPECIAL, *WORDS)).replace("\x00", "") for _ in range(random.randint(0, 4))]
    known = sorted(verbs())
    if random.random() < 0.8:
        known = [words for words in known if words[0] not in _ONLY_REFUSED]
    words = random.choice(known)
    typed = list(words)
    if random.random() < 0.05:
        typed[-1] = random.choice(
            (typed[-1][:-1], typed[-1] + "x", typed[-1].upper(), f"-{typed[-1]}", "vocab", "which")
        )
    rest = [part for _ in range(random.choice((0, 1, 1, 1, 2, 3))) for part in _part(random, words)]
    if random.random() < 0.1:
        rest.insert(random.randint(0, len(rest)), random.choice(_SPECIAL))
    if words[0] in _ONLY_REFUSED or typed != list(words) or words in _ALSO_ONLY_REFUSED:
        rest = [UNKNOWN, *rest]
    front = ["--config", random.choice(_PLACES)] if random.random() < 0.03 else ["--debug"] * (random.random() < 0.01)
    return [one.replace("\x00", "").replace("\ud800", "\udc80") for one in (*front, *typed, *rest)]


def _part(random: Random, words: tuple[str, ...]) -> list[str]:
    """An option with a value, or what is no option."""
    if words[0] in _TAKE_WORDS and random.random() < 0.6:
        return [_word(random, words[0])]
    options = verbs()[words] or ("--json",)
    option = random.choice(options)
    if random.random() < 0.1:
        option = random.choice((option[:-1], option + "s", option.upper(), "-" + option[2:3], option.replace("-", "_")))
    value = random.choice(
        (*_VALUES, *_PLACES, *ODD_NUMBERS, *map(str, ODD_INTEGERS), *WORDS, lines(random), glob(random))
    )
    return random.choice(([option], [option, value], [f"{option}={value}"]))


def _word(random: Random, verb: str) -> str:
    makers = {
        "search": query,
        "match": match_query,
        "words": pattern,
        "show": citation,
        "explain": citation,
        "ignore": citation,
    }
    if verb in makers and random.random() < 0.8:
        return makers[verb](random)[:100_000]
    return random.choice((*_PLACES, *_VALUES, *ODD_NUMBERS, *WORDS))


_METHODS = (
    "tools/call", "tools/call", "tools/call", "tools/list", "initialize", "ping", "resources/read",
    "resources/list", "resources/templates/list", "prompts/list",
    "notifications/initialized", "notifications/cancelled", "notifications/x", "completion/complete",
    "logging/setLevel", "server/discover", "x", "", "\x1b[2J",
)  # fmt: skip
_TOOLS = (
    "knowledge_search",
    "knowledge_search",
    "knowledge_enumerate",
    "knowledge_read",
    "knowledge_read",
    "knowledge_reset",
    "",
    "\x1b[31mx",
)
_ODD: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    2**53,
    2**64,
    1e308,
    "1",
    "",
    [],
    {},
    [[]],
    {"a": {}},
    "x" * 9_000,
    "\ud800",
    "\x00",
)
_ARGUMENTS = (
    "query",
    "top_k",
    "citation",
    "root",
    "path",
    "cursor",
    "mode",
    "limit",
    "before",
    "after",
    "lines",
    "sort",
    "min_matches",
    "document_sha256",
    "z",
)
_LINE_TOKENS = (
    b"{", b"}", b"[", b"]", b",", b":", b'"', b'"jsonrpc":"2.0"', b'"id":null', b'"id":1e400', b'"id":"x"',
    b'"method":"ping"', b'"params":[1]', b"null", b"NaN", b"\\ud800",
    b"\\u0000", b"\xff", b"\xef\xbb\xbf", b"\x00", b"\n", b"\r", b"[" * 3_000, b'{"a":' * 3_000, b"9" * 5_000,
    b'"\\', b"\x1b[2J", b" " * 3_000, b"Content-Length: 5\r\n\r\n",
)  # fmt: skip
_ODD_LINES = (
    b"", b" ", b"\r", b"null", b"7", b'"x"', b"[]", b"{}", b"[[]]", b'{"jsonrpc":"2.0"}', b"[" * 100_000,
    b'{"a":' * 50_000, b"x" * 1_000_000, b"\xff\xfe{\x00}\x00",
    b"[" + b'{"jsonrpc":"2.0","id":1,"method":"ping"},' * 900 + b"{}]",
    b'{"jsonrpc":"2.0","id":99999999999999999999999,"method":"ping"}', b"1" * 5_000,
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}', b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":[1],"method":"ping"}',
)  # fmt: skip


def _tool_arguments(random: Random) -> dict[str, object]:
    made: dict[str, object] = {}
    for name in some(random, _ARGUMENTS, 4):
        fit: dict[str, object] = {
            "query": match_query(random)[:50_000], "citation": citation(random),
            "path": random.choice((glob(random), citation(random))), "lines": lines(random),
            "top_k": random.choice(ODD_INTEGERS), "before": random.choice(ODD_INTEGERS),
            "after": random.choice(ODD_INTEGERS), "root": random.choice(("docs", "", "x")),
            "mode": random.choice(("auto", "lexical", "vector", "x")), "sort": random.choice(("path", "matches",
            "x")), "min_matches": random.choice(ODD_INTEGERS),
        }  # fmt: skip
        made[name] = random.choice(_ODD) if random.random() < 0.15 else fit.get(name, random.choice(WORDS))
    return made


def mcp_line(random: Random, number: int) -> bytes:
    """A line to the server over standard input, without its end."""
    if random.random() < 0.06:
        return random.choice(_ODD_LINES)
    method = random.choice(_METHODS)
    params: object = {"name": random.choice(_TOOLS), "arguments": _tool_arguments(random)}
    if method == "resources/read":
        params = {
            "uri": random.choice(
                (f"knowledge://{citation(random)}", citation(random), "file:///etc/passwd", "knowledge:", 7)
            )
        }
    elif method != "tools/call":
        params = {random.choice(WORDS): random.choice(_ODD) for _ in range(random.randint(0, 2))}
    message: dict[str, object] = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        key = random.choice(("jsonrpc", "id", "method", "params", "_meta", "result", "error"))
        message[key] = random.choice(_ODD)
        if random.random() < 0.3:
            del message[key]
    raw = json.dumps(message, ensure_ascii=random.random() < 0.6).encode("utf-8", "surrogatepass")
    return mutated(random, raw, _LINE_TOKENS, most=3) if random.random() < 0.3 else raw
