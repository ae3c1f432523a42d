"""Which tools agents are given: what there is to be exposed, and what the operator's list makes of it (R9).

A tool is exposed when it is named, never because it exists (S0-80). Which of the exposed ones a client is shown is the
profile's to say, and changes nothing about what may be called (S4-18).
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Literal

from msgspec import Struct

from app.present_safe import name
from domain.errors import ConfigurationError, UsageError
from domain.settings import Settings, ToolProfile

SEARCH = "knowledge_search"
ENUMERATE = "knowledge_enumerate"
READ = "knowledge_read"
MAX_SHOWN_CHARS = 80


class ToolDeclaration(Struct, frozen=True):
    """A tool that may be exposed; one of class `write` needs `mcp.allow_write` besides.

    `profile`: the smaller of the two whose lists hold it. What a tool does not say of itself is the narrower (S4-28):
    it counts as one that writes, and only the full list shows it.
    """

    name: str
    tool_class: Literal["read", "write"] = "write"
    profile: ToolProfile = "full"


DECLARED = (
    ToolDeclaration(SEARCH, "read", "agent"),
    ToolDeclaration(ENUMERATE, "read", "agent"),
    ToolDeclaration(READ, "read", "agent"),
)


def declaration_of(tool: str, declared: Sequence[ToolDeclaration] = DECLARED) -> ToolDeclaration:
    """Of a tool that nobody has declared, the narrowest."""
    return next((known for known in declared if known.name == tool), ToolDeclaration(tool))


def is_listed(tool: ToolDeclaration, profile: ToolProfile) -> bool:
    """Whether a client is shown it; it may be called all the same."""
    return profile == "full" or tool.profile == "agent"


def listed(names: Iterable[str]) -> tuple[str, ...]:
    """The names as they were listed, without blanks and repeats."""
    return tuple(dict.fromkeys(stripped for written in names if (stripped := written.strip())))


def unexposable(
    names: Sequence[str], *, allow_write: bool, declared: Sequence[ToolDeclaration] = DECLARED
) -> Iterator[tuple[str, str]]:
    """What cannot be exposed of a list, each in words with what to do (S1-52)."""
    classes = {tool.name: tool.tool_class for tool in declared}
    for written in listed(names):
        shown = name(written[:MAX_SHOWN_CHARS])
        if written not in classes:
            near = get_close_matches(written, classes, n=1)
            meant = f"Did you mean {near[0]}? " if near else ""
            yield f"there is no tool {shown!r}", f"{meant}There are: {', '.join(classes)}."
        elif classes[written] == "write" and not allow_write:
            yield f"{shown} changes something, and mcp.allow_write is false", "Take it out, or set allow_write: true."


def exposed_tools(
    names: Sequence[str], settings: Settings, *, declared: Sequence[ToolDeclaration] = DECLARED
) -> tuple[str, ...]:
    """The tools of a list, in the order of their declaration.

    Raises ConfigurationError for a name that cannot be exposed, UsageError for an empty list.
    """
    for problem, hint in unexposable(names, allow_write=settings.mcp.allow_write, declared=declared):
        raise ConfigurationError(problem, hint=hint)
    wanted = frozenset(listed(names))
    if not wanted:
        raise UsageError("no tool is exposed: mcp.tools lists none", hint=_how_to_expose(settings))
    return tuple(tool.name for tool in declared if tool.name in wanted)


def exposure_warnings(names: Sequence[str]) -> Iterator[str]:
    """What is lost where only one of search and enumerate is exposed (S0-81)."""
    if SEARCH in names and ENUMERATE not in names:
        yield (
            f"{SEARCH} is exposed without {ENUMERATE}: an agent sees the best hits, and cannot find out "
            "which documents hold a word, nor that none does"
        )
    if ENUMERATE in names and SEARCH not in names:
        yield (
            f"{ENUMERATE} is exposed without {SEARCH}: an agent sees which documents hold a word, and can neither "
            "have them ranked nor find what says the same in other words"
        )


def _how_to_expose(settings: Settings) -> str:
    read_tools = [tool.name for tool in DECLARED if tool.tool_class == "read"]
    option = f"--tools {','.join(read_tools)}"
    if settings.config_path is None:
        return f"name them: knowledge mcp {option}"
    line = f"mcp: {{tools: [{', '.join(read_tools)}]}}"
    return f"below `knowledge:` in {settings.config_path} add the line\n  {line}\nor start with {option}"
