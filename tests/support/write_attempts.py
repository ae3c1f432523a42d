"""Attempts to write through what only reads, made from a grammar (P28): calls of tools, and statements of SQL."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

Call = dict[str, Any]  # method and params of a JSON-RPC request

TOOLS = ("knowledge_search", "knowledge_enumerate", "knowledge_read")
_TEXT_PARAMETERS = {
    "knowledge_search": ("query", "mode", "root", "path", "cursor"),
    "knowledge_enumerate": ("query", "sort", "root", "path", "cursor"),
    "knowledge_read": ("citation", "path", "lines", "document_sha256", "cursor"),
}
_NUMBERS = {
    "knowledge_search": ("top_k",),
    "knowledge_enumerate": ("min_matches",),
    "knowledge_read": ("before", "after"),
}
_VERBS = (
    "index", "rebuild", "compact", "reset", "rm", "restore", "backup", "upgrade", "verify", "write", "delete", "add",
    "update", "config", "eval", "embed-server", "mcp", "exec", "sql", "search", "watch", "retry", "purge",
)  # fmt: skip
_SPELLINGS: Sequence[Callable[[str], str]] = (
    lambda verb: verb,
    lambda verb: f"knowledge_{verb}",
    lambda verb: f"knowledge {verb}",
    lambda verb: f"knowledge.{verb}",
    lambda verb: f"KNOWLEDGE_{verb.upper()}",
    lambda verb: f"../{verb}",
    lambda verb: f"knowledge_search\0{verb}",
    lambda verb: f" knowledge_search;{verb}",
    lambda verb: f"\uff4bnowledge_{verb}",
)
_METHODS = (
    "tools/delete", "tools/register", "knowledge/reset", "resources/read", "resources/write", "resources/subscribe",
    "resources/templates/list", "prompts/get", "completion/complete", "logging/setLevel", "roots/list",
    "sampling/createMessage", "elicitation/create", "tasks/create", "server/discover", "shutdown", "exit",
)  # fmt: skip
_WRITE_PARAMETERS = (
    "allow_write", "force", "write", "sql", "delete", "path_to_index", "directory", "config", "home", "reindex",
    "purge", "__class__", "self", "arguments", "yes",
)  # fmt: skip
_SQL = (
    "'; DROP TABLE documents; --", '"; DELETE FROM chunks; --', "') OR 1=1; UPDATE meta SET value='x'; --",
    "x' UNION SELECT writefile('/tmp/x', 'x') --", "'; ATTACH DATABASE '{home}/evil.db' AS evil; --",
    "1; PRAGMA query_only=OFF; DELETE FROM documents", "'; VACUUM INTO '{home}/evil.db'; --", "\\'; REINDEX; --",
    "chunks_fts(chunks_fts) VALUES('delete-all')", "'optimize'", "rebuild", "'integrity-check'", "$(touch {home}/evil)",
    "`touch {home}/evil`", "| touch {home}/evil", "%00'; DROP TABLE roots", "${{7*7}}", "*:*; DELETE", "NEAR(a b, 9)--",
)  # fmt: skip
_PATHS = (
    "{home}/state.db", "{home}/knowledge.db", "../knowledge/default/state.db",
    "docs/../../knowledge/default/knowledge.db", "/etc/passwd", "../../../../etc/shadow",
    "docs/%2e%2e/%2e%2e/etc/passwd", "docs/..\\..\\windows",
    "file:///etc/passwd", "docs/bread.md\0.db", "//host/share/x", "~root/.ssh/id_rsa", "docs/bread.md/../../x",
    ".", "..", "/", "docs/", "/dev/stdout", "/dev/full", "/proc/self/mem", "{home}/knowledge.lock", "docs/link-to-etc",
)  # fmt: skip
_WRONG: Sequence[Any] = (
    None, True, -1, 2**70, 1.5, -0.0, 1e308, "", "NaN", [], [1], {}, {"$ne": None}, {"__proto__": {"x": 1}}, ["a"] * 99,
    [[[[[[]]]]]], "\u202e", "9" * 400, "\ufffd",
)  # fmt: skip
_GIANTS: Sequence[Any] = (
    "x" * 300_000,
    "( " * 100_000,
    '"a" ' * 50_000,
    "*/" * 50_000,
    ["y" * 100] * 2_000,
    "\0" * 99_999,
)


def calls(count: int, home: str) -> Iterator[Call]:
    """So many requests, the same at every call; `home` is the folder that must not change."""
    random = Random("writes")
    made = 0
    while made < count:
        for make in (_unknown_tool, _sql, _path, _unknown_parameter, _wrong_type, _other_method, _two_at_once):
            yield make(random, home)
            made += 1
        if made % 20 == 0:
            yield _giant(random)
            made += 1


def _call(tool: str, arguments: Any) -> Call:
    return {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def _base(tool: str) -> dict[str, Any]:
    return {"path": "docs/bread.md"} if tool == "knowledge_read" else {"query": "loaf"}


def _unknown_tool(random: Random, home: str) -> Call:
    name = random.choice(_SPELLINGS)(random.choice(_VERBS))
    arguments = random.choice(
        [{}, {"paths": [home]}, {"force": True}, {"path": home, "content": "x"}, {"argv": ["--force"]}]
    )
    return _call(name, arguments)


def _sql(random: Random, home: str) -> Call:
    tool = random.choice(TOOLS)
    return _call(
        tool, _base(tool) | {random.choice(_TEXT_PARAMETERS[tool]): random.choice(_SQL).replace("{home}", home)}
    )


def _path(random: Random, home: str) -> Call:
    path = random.choice(_PATHS).replace("{home}", home)
    match random.randrange(4):
        case 0:
            return _call("knowledge_read", {"citation": f"{path}#{random.randrange(3)}"})
        case 1:
            return _call("knowledge_search", {"query": "loaf", random.choice(["path", "root"]): path})
    return _call("knowledge_read", {"path": path, **random.choice([{}, {"lines": "1-9"}])})


def _unknown_parameter(random: Random, home: str) -> Call:
    tool = random.choice(TOOLS)
    return _call(tool, _base(tool) | {random.choice(_WRITE_PARAMETERS): random.choice([True, home, "yes", 1, [home]])})


def _wrong_type(random: Random, home: str) -> Call:
    tool = random.choice(TOOLS)
    if random.randrange(8) == 0:
        return _call(tool, random.choice(_WRONG))
    return _call(tool, _base(tool) | {random.choice(_TEXT_PARAMETERS[tool] + _NUMBERS[tool]): random.choice(_WRONG)})


def _other_method(random: Random, home: str) -> Call:
    params = random.choice([{}, {"uri": f"file://{home}/state.db"}, {"name": "knowledge_reset"}, {"level": "debug"}])
    return {"method": random.choice(_METHODS), "params": params}


def _two_at_once(random: Random, home: str) -> Call:
    tool = random.choice(TOOLS)
    first, second = random.sample(_TEXT_PARAMETERS[tool], 2)
    return _call(tool, {first: random.choice(_SQL).replace("{home}", home), second: random.choice(_PATHS)})


def _giant(random: Random) -> Call:
    tool = random.choice(TOOLS)
    return _call(tool, _base(tool) | {random.choice(_TEXT_PARAMETERS[tool]): random.choice(_GIANTS)})


class Statement(NamedTuple):
    sql: str
    parameters: tuple[object, ...] = ()


_STATEMENTS = (
    Statement('DELETE FROM "{table}"'),
    Statement('DELETE FROM "{table}" WHERE rowid = ?', (1,)),
    Statement('UPDATE "{table}" SET "{column}" = ?', ("x",)),
    Statement('INSERT OR REPLACE INTO "{table}" ("{column}") VALUES (?)', (1,)),
    Statement('WITH x AS (SELECT 1) INSERT INTO "{table}" ("{column}") SELECT * FROM x'),
    Statement('DROP TABLE "{table}"'),
    Statement('ALTER TABLE "{table}" ADD COLUMN evil{number}'),
    Statement('ALTER TABLE "{table}" RENAME TO evil{number}'),
    Statement('CREATE INDEX evil{number} ON "{table}" ("{column}")'),
    Statement('CREATE TRIGGER evil{number} AFTER INSERT ON "{table}" BEGIN SELECT 1; END'),
    Statement("CREATE TABLE evil{number} (a)"),
    Statement('CREATE VIEW evil{number} AS SELECT * FROM "{table}"'),
    Statement('INSERT INTO "{table}" ("{table}") VALUES (?)', ("delete-all",)),
    Statement('INSERT INTO "{table}" ("{table}") VALUES (?)', ("optimize",)),
    Statement("PRAGMA user_version = {number}7"),
    Statement("PRAGMA application_id = {number}7"),
    Statement("VACUUM"),
    Statement("REINDEX"),
    Statement("ANALYZE"),
    Statement("UPDATE sqlite_schema SET sql = ?", ("x",)),
    Statement("DELETE FROM sqlite_schema"),
)


def statements(tables: Sequence[tuple[str, Sequence[str]]], count: int) -> Iterator[Statement]:
    """So many statements that would change a database with these tables (names and columns)."""
    random = Random("statements")
    for number in range(count):
        table, columns = random.choice(tables)
        form = random.choice(_STATEMENTS)
        sql = form.sql.format(table=table, column=random.choice(columns), number=number)
        yield Statement(sql, form.parameters)
