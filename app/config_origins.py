"""Where a configured value came from, and how a wrong one is told: file, line and key."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from domain.errors import ConfigurationError

_LAST_STEP = re.compile(r"(?:\[\d+\]|\.?[^.\[\]]+)$")
_MAX_SHOWN_CHARS = 400
_MAX_PROBLEMS_TOLD = 20


class FromDefault(Struct, frozen=True):
    """Nobody set the value."""

    def __str__(self) -> str:
        return "default"


class FromFile(Struct, frozen=True):
    path: Path
    line: int  # numbered from 1

    def __str__(self) -> str:
        return f"{shown(str(self.path))}:{self.line}"


class FromVariable(Struct, frozen=True):
    name: str

    def __str__(self) -> str:
        return f"environment variable {self.name}"


class FromPlace(Struct, frozen=True):
    """Follows from where the command was started: the store that was found, or the default place."""

    words: str

    def __str__(self) -> str:
        return self.words


Origin = FromDefault | FromFile | FromVariable | FromPlace


class Problem(Struct, frozen=True):
    """One thing that is wrong: `key` as in `queue.url` or `paths[0].name`; the text never holds a secret."""

    key: str
    text: str
    hint: str = ""


class Sources(Struct, frozen=True):
    """Which key was set where; keys are dotted, entries of lists have `[n]`."""

    config_path: Path | None = None
    prefix: str = "knowledge"  # where the block lies in the file
    lines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def overlaid(self, variables: Mapping[str, str]) -> "Sources":
        """The same with variables over the file: what they replace is no longer the file's."""
        kept = {
            key: line for key, line in self.lines.items() if not any(_is_at_or_below(key, set_) for set_ in variables)
        }
        return Sources(self.config_path, self.prefix, MappingProxyType(kept), MappingProxyType(dict(variables)))

    def origin(self, key: str) -> Origin:
        """Where exactly this key was set; an entry of a list that a variable set has the list's origin."""
        if variable := self.variables.get(key):
            return FromVariable(variable)
        if self.config_path is not None and key in self.lines:
            return FromFile(self.config_path, self.lines[key])
        return self.origin(key[: key.rindex("[")]) if "[" in key else FromDefault()

    def is_from_file(self, key: str) -> bool:
        return isinstance(self.origin(key), FromFile)

    def place(self, key: str) -> str:
        """The beginning of a message about this key: the nearest thing that was written."""
        at = key
        while at and at not in self.variables and at not in self.lines:
            at = _LAST_STEP.sub("", at)
        if at in self.variables:
            below = key.removeprefix(at).lstrip(".")
            return shown(self.variables[at]) + (f", {below}" if below else "")
        full_key = f"{self.prefix}.{key}" if key else self.prefix
        if self.config_path is None:
            return full_key
        line = f":{self.lines[at]}" if at in self.lines else ""
        return f"{shown(str(self.config_path))}{line}: {shown(full_key)}"


def refuse(problems: Sequence[Problem], sources: Sources) -> None:
    """Raise one ConfigurationError that tells every problem; nothing happens when there is none."""
    if not problems:
        return
    told = problems[:_MAX_PROBLEMS_TOLD]
    lines = [f"{sources.place(problem.key)}: {problem.text}" for problem in told]
    if len(problems) > len(told):
        lines.append(f"and {len(problems) - len(told)} more")
    raise ConfigurationError("\n".join(lines), hint=joined_hints(told))


def joined_hints(problems: Iterable[Problem]) -> str:
    return " ".join(dict.fromkeys(problem.hint for problem in problems if problem.hint))


def shown(text: str, limit: int = _MAX_SHOWN_CHARS) -> str:
    """Text of a file that nobody vouched for, made safe for a terminal: control characters escaped, cut."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(char if _is_harmless(char) else char.encode("unicode_escape").decode() for char in cut)


def has_control_characters(text: str) -> bool:
    """C0, DEL and C1; other unusual characters are legal in names of files."""
    return any(char < " " or "\x7f" <= char < "\xa0" for char in text)


def _is_harmless(char: str) -> bool:
    """Printable, or one of the wide spaces that file names may hold; nothing that ends a line."""
    return char.isprintable() or (char.isspace() and char >= "\xa0" and char not in "\u2028\u2029")


def _is_at_or_below(key: str, ancestor: str) -> bool:
    return key == ancestor or key.startswith((f"{ancestor}.", f"{ancestor}["))
