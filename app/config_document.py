"""A configuration file as plain values with the line of every key; YAML is read safely and bounded."""

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from app.config_origins import Problem, Sources, refuse, shown
from domain.errors import ConfigurationError

MAX_FILE_BYTES = 1024 * 1024
_MAX_DEPTH = 40
_MAX_ALIASES = 100
_MAX_EVENTS = 50_000
_MAX_VALUES = 20_000  # after aliases are expanded
_BLOCK = "knowledge"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is missing in some builds
_TAG = "tag:yaml.org,2002:"


class ConfigurationDocument(Struct, frozen=True):
    """What one file says: `block` is None when it holds no `knowledge` block."""

    path: Path
    digest: str  # SHA-256 of the bytes that were parsed, hexadecimal
    block: Mapping[str, Any] | None
    sources: Sources
    other_keys: tuple[str, ...]  # keys beside the block, at the top of the file


def read_document(path: Path) -> ConfigurationDocument:
    """Raises ConfigurationError: unreadable, writable by everybody, too large, not safe plain YAML."""
    content = read_bytes(path)
    root = _compose(_decoded(content, path), path)
    reader = _Reader(path)
    top = {} if root is None or root.tag == f"{_TAG}null" else reader.entries(root, "")
    prefix, found = _block_node(reader, top)
    block = reader.block(*found) if found is not None else None
    sources = Sources(path, prefix, reader.lines)
    refuse(reader.problems, sources)
    digest = hashlib.sha256(content).hexdigest()
    return ConfigurationDocument(path, digest, block, sources, tuple(top))


def read_bytes(path: Path) -> bytes:
    """The file's bytes, opened without waiting (a FIFO is refused) and judged by the opened file itself."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise ConfigurationError(
            f"There is no configuration file {shown(str(path))}.",
            hint="Write one with: knowledge config init",
        ) from None
    except OSError as error:
        raise _unread(path, error) from error
    try:
        _refuse_unsafe_file(os.fstat(descriptor), path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _unread(path, error) from error
    finally:
        os.close(descriptor)
    if len(content) > MAX_FILE_BYTES:
        raise ConfigurationError(f"The configuration {shown(str(path))} is larger than 1 MiB.")
    return content


def _unread(path: Path, error: OSError) -> ConfigurationError:
    reason = error.strerror or type(error).__name__
    return ConfigurationError(f"Cannot read the configuration {shown(str(path))}: {reason}.")


def _refuse_unsafe_file(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"The configuration {shown(str(path))} is not a regular file.")
    if os.name == "posix" and status.st_mode & stat.S_IWOTH:
        raise ConfigurationError(
            f"The configuration {shown(str(path))} can be changed by every user of this machine "
            f"(mode {stat.S_IMODE(status.st_mode):04o}).",
            hint=f"Look at what it says, then: chmod o-w {shown(str(path))}",
        )


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigurationError(
            f"{shown(str(path))}:{line}: the file is not UTF-8 text.", hint="Save it as UTF-8."
        ) from None


def _compose(text: str, path: Path) -> yaml.Node | None:
    """The node tree; the events are counted first, for they do not grow with aliases nor recurse."""
    try:
        _refuse_bombs(text, path)
        node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _yaml_error(error, text, path) from error
    return node


def _refuse_bombs(text: str, path: Path) -> None:
    depth = aliases = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        if depth > _MAX_DEPTH or aliases > _MAX_ALIASES or count > _MAX_EVENTS:
            what = f"more than {_MAX_ALIASES} aliases" if aliases > _MAX_ALIASES else "too many values"
            what = f"more than {_MAX_DEPTH} levels" if depth > _MAX_DEPTH else what
            raise ConfigurationError(f"{shown(str(path))}:{_line(event)}: the file holds {what}.")


def _line(place: yaml.Node | yaml.Event) -> int:
    return place.start_mark.line + 1 if place.start_mark is not None else 0


def _yaml_error(error: yaml.YAMLError, text: str, path: Path) -> ConfigurationError:
    """The parser's words without its excerpt of the file, which may hold a secret."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return ConfigurationError(f"{shown(str(path))}: not YAML: the file holds control characters.")
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    tabbed = "\t" in line[: len(line) - len(line.lstrip())]
    problem = shown(str(getattr(error, "problem", None) or "cannot be read"))
    return ConfigurationError(
        f"{shown(str(path))}:{mark.line + 1}: not YAML: {'a tab indents this line' if tabbed else problem}.",
        hint="YAML is indented with spaces, never with tabs." if tabbed else "",
    )


def _block_node(reader: "_Reader", top: dict[str, tuple[int, yaml.Node]]) -> tuple[str, tuple[int, yaml.Node] | None]:
    """Where the block lies (`knowledge` or `harness.knowledge`), its line and node; None: there is none."""
    found = {_BLOCK: top[_BLOCK]} if _BLOCK in top else {}
    _, harness = top.get("harness", (0, None))
    if isinstance(harness, yaml.MappingNode):
        inner = reader.entries(harness, "harness")
        found |= {f"harness.{_BLOCK}": inner[_BLOCK]} if _BLOCK in inner else {}
    if len(found) > 1:
        lines = " and ".join(str(line) for line, _ in found.values())
        raise ConfigurationError(
            f"{shown(str(reader.path))}: two blocks, knowledge and harness.knowledge (lines {lines}).",
            hint="Keep one of them.",
        )
    for prefix, (line, node) in found.items():
        if node.tag != f"{_TAG}null":
            return prefix, (line, node)
    return _BLOCK, None


class _Reader:
    """Turns nodes into plain values while it notes lines and problems; aliases count each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self._values = 0

    def entries(self, node: yaml.Node, where: str) -> dict[str, tuple[int, yaml.Node]]:
        """Line and node by key; a key that stands twice is refused, at the file's top level too."""
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, f"{where or 'the file'} must be a mapping (key: value)")
        entries: dict[str, tuple[int, yaml.Node]] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key must be plain text")
            if key.value in entries:
                first = entries[key.value][0]
                raise self._error(key, f"the key {shown(key.value)} stands twice, first in line {first}")
            entries[key.value] = _line(key), value
        return entries

    def block(self, line: int, node: yaml.Node) -> dict[str, Any]:
        self.lines[""] = line
        return self._mapping(node, "", 0)

    def _error(self, node: yaml.Node, words: str) -> ConfigurationError:
        return ConfigurationError(f"{shown(str(self.path))}:{_line(node)}: {words}.")

    def _mapping(self, node: yaml.Node, where: str, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, (line, value) in self.entries(node, where or _BLOCK).items():
            key = f"{where}.{name}" if where else name
            self.lines[key] = line
            values[name] = self._value(value, key, depth + 1)
        return values

    def _value(self, node: yaml.Node, where: str, depth: int) -> Any:
        self._values += 1
        if self._values > _MAX_VALUES or depth > _MAX_DEPTH:
            raise ConfigurationError(f"{shown(str(self.path))}: the aliases of the file grow without end.")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where, depth)
        if isinstance(node, yaml.SequenceNode):
            entries = []
            for index, entry in enumerate(node.value):
                key = f"{where}[{index}]"
                self.lines[key] = _line(entry)
                entries.append(self._value(entry, key, depth + 1))
            return entries
        return self._scalar(node, where)

    def _scalar(self, node: Any, where: str) -> Any:
        text = str(node.value)
        try:
            match node.tag.removeprefix(_TAG):
                case "null":
                    return None
                case "bool":
                    return yaml.constructor.SafeConstructor.bool_values[text.lower()]
                case "int" if ":" not in text:  # 12:30 is no number of base 60
                    return yaml.constructor.SafeConstructor().construct_yaml_int(node)
                case "float" if ":" not in text:
                    return yaml.constructor.SafeConstructor().construct_yaml_float(node)
                case "str" | "timestamp" | "int" | "float" | "value":
                    return text
        except (ValueError, KeyError, IndexError):
            self.problems.append(Problem(where, "cannot be read as its type"))
            return text
        self.problems.append(Problem(where, f"has a YAML tag that is not supported: {shown(node.tag)}"))
        return text
