"""Configurations near those that people write: a right one with a value, a key or some bytes of another."""

import copy
import json
from random import Random
from typing import Any

import yaml

from app.config_schema import json_schema
from tests.support.fuzz_texts import ODD_INTEGERS, ODD_NUMBERS, WORDS
from tests.support.fuzz_trying import mutated, some

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # libyaml is missing in some builds
SECRET = "sk-canary-4f9d11c05a7be2"  # in the place of a name; in no message
_RIGHT: dict[str, Any] = {
    "enabled": True, "identity": "notes", "description": "d", "directory": "", "top_k": 7,
    "max_injected_tokens": 4_000,
    "paths": ["docs", {"path": "more", "name": "m", "include": ["*.md"], "exclude": ["a/**"], "exclude_dirs": ["x"],
                       "extensions": [".md"], "watch": True, "link": "http://a.b/{path}", "held_removals": False}],
    "max_file_bytes": "1MiB", "substring_index": "auto", "change_detection": "hash", "disk_reserve": "64MiB",
    "queue": {"url": "redis://127.0.0.1:6379/1", "files_per_job": 9, "workers": 2, "password_file": ""},
    "embeddings": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m", "timeout": "10s",
    "batch": 9,
                   "max_batch_bytes": "1MB", "concurrency": 2, "requests_per_minute": 0, "outage_limit": "1m",
                   "commit": "together", "query_prefix": "q: ", "document_prefix": "{title} ", "min_similarity": 0.1,
                   "insecure_hosts": [], "api_key_env": ""},
    "schedules": [{"name": "nightly", "cron": "0 3 * * 1-5", "timezone": "Europe/Malta", "kind": "index",
                   "window": "01:00-05:00", "jitter": "5m", "roots": ["m"], "workers": 1, "heartbeat_url_env": ""}],
    "notify": {"command": ["/bin/true"], "on": ["failed"], "timeout": "3s", "url_env": ""},
    "mcp": {"tools": ["knowledge_search"], "profile": "full", "port": 0, "allow_write": False},
    "server": {"host": "127.0.0.1", "port": 8765, "allowed_hosts": ["kb.example"], "allowed_origins": [],
    "auth": "token",
               "trusted_proxies": ["10.0.0.0/8"], "operators": [], "base_path": "/kb", "read_token_env": "READ"},
}  # fmt: skip
_PLACES = (
    "docs",
    "more",
    "",
    "/",
    ".",
    "..",
    "~",
    "~nobody/x",
    "a\x00b",
    "nowhere",
    "knowledge.yaml",
    "docs/../docs",
    "/proc",
    "x" * 5_000,
)
_ODD_TEXTS = (
    *_PLACES, *WORDS, *ODD_NUMBERS[:16], "on", "yes", "null", "~", "10", "10 s", "1e9999s", "-5m", "1.5.5s",
    "inf", "infs", "nan", "9" * 400 + "s",
    "512 KiB", "1YiB", "1e400MB", "-1MB", "0", "0 3 * * *", "* * * * * *", "60 * * * *", "*/0 * * * *",
    "0 3 31 2 *", "1-0 * * * *", "@daily", "Europe/Nowhere",
    "../UTC", "25:00-26:00", "01:00-01:00", "01:00", "http://127.1", "http://[::1", "http://u:p@h/", "ftp://x",
    "http://a b/", "https://a:99999/", "http://\u2024/",
    "redis://h:0", "redis://:pw@h:x", "unix:///x", "rediss://[::1]:1", "[a-z", "!", "**", "[z-a]", "{path",
    "{nope}", "{0}", "{path!r}", "{path:>9999999}", "%s",
    "10.0.0.0/99", "::1/129", "localhost", "*", "https://*.a", "null", "/kb/", "kb", "/../x", "/k b", "READ", "A-B",
    "X\r\nY: 1", "knowledge_reset",
    "together", "words_first", "local", "nightly", "lexical", "{title}{title}",
)  # fmt: skip
_ODD_VALUES: tuple[Any, ...] = (
    None, True, False, *ODD_INTEGERS, 1.5, -0.0, float("inf"), float("-inf"), float("nan"), 1e308, [], {}, [[]],
    [None], {"a": {}}, {"": ""}, [1, "a"],
    {"path": "docs"}, [{"path": "docs"}], [{}], ["docs", "docs"], [{"name": "nightly", "cron": "0 3 * * *"}] * 3,
    ["x"] * 300, {str(n): n for n in range(60)},
)  # fmt: skip
_YAML_TOKENS = tuple(
    token.encode("utf-8", "replace")
    for token in (
        "\t", "\n", "  ", "- ", "? ", ": ", ":", "#", "&a ", "*a", "<<: *a", "!!python/object:os.system ",
        "!!binary ", "!!set ", "!!timestamp ", "!!int ",
        "!!float ", "!x ", "%YAML 1.2\n---\n", "---\n", "...\n", "{", "}", "[", "]", "[[[[[[[[", "{a: " * 60, "|\n",
        ">-\n", "'", '"', '"\\u0000"', '"\\ud800"',
        '"\\x9b"', "0b", "0x", "0o9", "0b2", "1:30:00", "-0x_", ".inf", "-.INF", ".nan", "1e", "1__0", "0_", "+",
        "=", "2024-13-45", "2001-12-14t21:59:43.10-05:00",
        "\x00", "\x07", "\ufeff", "\u2028", "\x85", "\ufffe", "knowledge:", "harness:\n  knowledge:\n", "paths:",
        "  enabled: maybe\n", "=:", "~", "@", "`", "null:", "on:",
    )
)  # fmt: skip
_TYPED = (
    "!!int",
    "!!float",
    "!!bool",
    "!!null",
    "!!str",
    "!!timestamp",
    "!!binary",
    "!!seq",
    "!!map",
    "!!omap",
    "!!merge",
    "!!value",
    "!local",
    "!",
)
_NAMES = tuple(json.loads(json_schema())["$defs"]["KnowledgeBlock"]["properties"])


def _spots(value: Any) -> list[tuple[Any, Any]]:
    """Every container with a key or index in it."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += [(value, key), *_spots(inner)]
    return found


def block(random: Random) -> dict[str, Any]:
    """A part of a right configuration, with up to four things that are not."""
    made = copy.deepcopy({key: value for key, value in _RIGHT.items() if random.random() < 0.6})
    made.setdefault("paths", ["docs"])
    for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
        spots = _spots(made)
        if not spots:
            break
        container, key = random.choice(spots)
        match random.randrange(6):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[_misspelt(random, str(key))] = container.pop(key)
            case 2:
                container[key] = copy.deepcopy(random.choice(_ODD_VALUES))
            case 3 if isinstance(container, dict):
                container[random.choice((*_NAMES, *WORDS, "a" * 3_000, "\x1b[2J"))] = copy.deepcopy(
                    random.choice(_ODD_VALUES)
                )
            case _:
                is_secret = str(key).endswith(("_env", "_file")) and random.random() < 0.5
                container[key] = SECRET if is_secret else random.choice(_ODD_TEXTS)
    return made


def _misspelt(random: Random, key: str) -> str:
    at = random.randint(0, len(key))
    return random.choice(
        (
            key[:at] + key[at + 1 :],
            key.upper(),
            key.replace("_", "-"),
            f"{key}s",
            f" {key}",
            key + "\x00",
            f"{key}.{key}",
        )
    )


def configuration(random: Random) -> bytes:
    """As bytes of a file: JSON, YAML as a program writes it, or either with bytes changed."""
    made = {"knowledge": block(random)}
    if random.random() < 0.05:
        made = {"harness": made}
    if random.random() < 0.04:
        return _bomb(random)
    if random.random() < 0.3:
        written = json.dumps(made, ensure_ascii=random.random() < 0.5)
    else:
        flows = random.random() < 0.2
        written = yaml.dump(made, Dumper=_DUMPER, allow_unicode=random.random() < 0.5, default_flow_style=flows)
    if random.random() < 0.2:
        written = _with_tags(random, written)
    raw = written.encode("utf-8", "surrogatepass")
    return mutated(random, raw, _YAML_TOKENS) if random.random() < 0.45 else raw


def _with_tags(random: Random, written: str) -> str:
    lines = written.split("\n")
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(lines))
        name, colon, value = lines[at].partition(": ")
        if colon:
            odd = random.choice((value, *ODD_NUMBERS, *_ODD_TEXTS[:30]))
            lines[at] = f"{name}: {random.choice(_TYPED)} {odd!r}"
    return "\n".join(lines)


def _bomb(random: Random) -> bytes:
    size = random.choice((30, 90, 120, 3_000))

    def before(number: int) -> str:
        return f"b{number - 1}" if number else "a"

    return random.choice((
        "a: &a [x]\n" + "".join(f"b{n}: &b{n} [*{before(n)}, *{before(n)}]\n" for n in range(size))
        + "knowledge:\n  paths: *b5\n",
        "knowledge:\n  paths: " + "[" * size + "]" * size, "knowledge: " + "{a: " * size + "1" + "}" * size,
        "knowledge: &a\n  paths: *a\n", "knowledge:\n  <<: {paths: [docs]}\n",
        "knowledge:\n  paths:\n" + "  - docs\n" * size * 9,
        "? " * size + "a", "knowledge:\n  description: |\n" + "    x\n" * size, "- " * size + "a", "!!omap " * size,
        "knowledge: " + "!a " * size,
    )).encode()  # fmt: skip


def variables(random: Random) -> dict[str, str]:
    """The same keys from the environment, some of which there are not."""
    if random.random() < 0.6:
        return {}
    made = {"READ": "read-read-read-read-0"} if random.random() < 0.5 else {}
    names = ("ENABLED", "PATHS", "TOP_K", "QUEUE__URL", "EMBEDDINGS__TIMEOUT", "SERVER__PORT", "MCP__TOOLS",
    "SCHEDULES", "MAX_FILE_BYTES", "QUEUE", "A__B__C",
             "EMBEDDINGS__MIN_SIMILARITY", "NOTIFY__COMMAND", "PATHS__0__NAME", "_", "__",
             "SERVER__TRUSTED_PROXIES", "top_k")  # fmt: skip
    for name in some(random, names, 4):
        value = random.choice(
            (*_ODD_TEXTS, json.dumps(random.choice(_ODD_VALUES)), "[" * 5_000, '[{"a": ' * 2_000, "[1,", '["\\ud800"]')
        )
        made[f"KNOWLEDGE_{name}"] = value.replace("\x00", "").encode("utf-8", "replace").decode()
    return made
