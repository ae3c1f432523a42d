"""Every state of a base, with what is asked of it, and the answers of every surface."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from app.mcp_exposure import DECLARED
from tests.support import status_bases as bases
from tests.support.told import Listener, Told

SEARCH, ENUMERATE, READ = (tool.name for tool in DECLARED)
Build = Callable[[Path], object]


def commands(query: str, pattern: str, target: str) -> tuple[tuple[str, ...], ...]:
    """Every verb that answers from an index."""
    return (
        ("search", query),
        ("match", query),
        ("match", query, "--count"),
        ("words", pattern),
        ("words", pattern, "--words-only"),
        ("show", target),
        ("status",),
        ("stats",),
        ("sources",),
        ("sources", "--all"),
        ("sources", "--coverage"),
        ("explain", target.partition("#")[0]),
        ("verify",),
        ("doctor",),
    )


def tool_calls(query: str, target: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return ((SEARCH, {"query": query}), (ENUMERATE, {"query": query}), (READ, {"citation": target}))


EVERY_COMMAND, EVERY_TOOL = commands("fox", "^fo", "docs/a.md#0"), tool_calls("fox", "docs/a.md#0")
BY_MEANING = (
    ("search", "fox"), ("search", "fox", "--mode", "vector"), ("search", "fox", "--mode", "lexical"),
    ("explain", "docs/a.md", "--query", "fox"), ("status",), ("stats",), ("doctor",),
)  # fmt: skip
BY_MEANING_TOOLS = ((SEARCH, {"query": "fox"}), (SEARCH, {"query": "fox", "mode": "vector"}))
WRITING = (("rm", "docs/a.md"), ("rebuild",), ("compact",), ("reset", "--force"), ("index",))


@dataclass(frozen=True, slots=True)
class State:
    """A base, what is asked of it, and what goes on meanwhile."""

    build: Build
    commands: tuple[tuple[str, ...], ...] = EVERY_COMMAND
    tools: tuple[tuple[str, dict[str, Any]], ...] = EVERY_TOOL
    meanwhile: Callable[[Path], AbstractContextManager[None]] = lambda folder: nullcontext()
    environ: Mapping[str, str] = field(default_factory=dict)


STATES: dict[str, State] = {
    "not_built": State(bases.configure),
    "cut_short": State(bases.cut_short),
    "lost": State(bases.lost),
    "record_lost": State(bases.without_record),
    "empty": State(partial(bases.built, texts={"empty.md": ""})),
    "emptied_by_reset": State(bases.emptied),
    "incomplete": State(partial(bases.built, complete=False)),
    "inconsistent": State(bases.blank),
    "outdated": State(bases.outdated),
    "complete": State(bases.built),
    "older_format": State(partial(bases.of_format, version=1)),
    "newer_format": State(partial(bases.of_format, version=99)),
    "another_base": State(bases.of_another_base),
    "damaged": State(bases.damaged),
    "damaged_record": State(bases.with_damaged_record),
    "drifted": State(bases.drifted, commands=(("verify",), ("doctor",)), tools=()),
    "locked": State(
        bases.built, commands=(("verify",), ("doctor",), ("status",), ("search", "fox"), *WRITING), meanwhile=bases.held
    ),
    "disabled": State(partial(bases.configure, enabled=False), commands=(("search", "fox"), ("status",)), tools=()),
    "untrusted": State(
        partial(bases.configure, embeddings={"base_url": "https://model.example/v1", "model": "m"}),
        commands=(("search", "fox"), ("status",)),
        tools=(),
    ),
    "nothing_found": State(
        bases.built,
        commands=(*commands("zebra", "^zebra", "docs/none.md#0")[:6], ("explain", "docs/none.md"),
                  ("match", "river", "dogs"), ("match", "fox", "-quick", "-river"),
                  ("match", "fox", "--min-matches", "9"), ("show", "docs/a.md#7"), ("show", "#")),
        tools=(*tool_calls("zebra", "docs/none.md#0"), (ENUMERATE, {"query": "river dogs"})),
    ),
    "query_empty": State(
        bases.built,
        commands=(("search", "?!"), ("search",), ("match", "?!"), ("match",), ("match", "?!", "--count"),
                  ("explain", "docs/a.md", "--query", "?!")),
        tools=((SEARCH, {"query": "?!"}), (SEARCH, {"query": ""}), (ENUMERATE, {"query": "?!"})),
    ),
    "semantic_not_configured": State(
        bases.built,
        commands=(("search", "fox", "--mode", "vector"), ("search", "fox", "--mode", "hybrid"),
                  ("explain", "docs/a.md", "--query", "fox", "--mode", "vector")),
        tools=((SEARCH, {"query": "fox", "mode": "vector"}),),
    ),
    "embeddings_unreachable": State(bases.with_vectors, commands=BY_MEANING, tools=BY_MEANING_TOOLS),
    "key_not_set": State(
        partial(bases.with_vectors, api_key_env="NO_KEY_IS_HERE"),
        commands=BY_MEANING,
        tools=BY_MEANING_TOOLS,
        environ={"KNOWLEDGE_CONFIG": "knowledge.yaml"},  # a key is sent for no configuration that was only found
    ),
    "vectors_pending": State(
        partial(bases.with_vectors, pending=True), commands=BY_MEANING, tools=BY_MEANING_TOOLS
    ),
    "first_vectors_coming": State(
        bases.with_first_vectors_coming, commands=BY_MEANING, tools=BY_MEANING_TOOLS
    ),
    "embeddings_changed": State(bases.with_other_vectors, commands=BY_MEANING, tools=BY_MEANING_TOOLS),
}  # fmt: skip


# of these everything is asked, and no surface may say of one what it says of another
WHOLE_STATES = [name for name, state in STATES.items() if state.commands == EVERY_COMMAND]


def everything_told(state: State, folder: Path) -> dict[str, Told]:
    state.build(folder)
    listener = Listener(folder, state.environ)
    answers: dict[str, Told] = {}
    with state.meanwhile(folder):
        for command in state.commands:
            answers[" ".join(("knowledge", *command))] = listener.command(command)
            if command[-1] not in ("--all", "--words-only", "--count"):
                answers[" ".join(("knowledge", *command, "--json"))] = listener.command((*command, "--json"))
        for name, arguments in state.tools:
            call = f"{name} {json.dumps(arguments)}"
            answers[f"{call}: content"] = listener.tool(name, arguments, as_object=False)
            answers[f"{call}: structured_content"] = listener.tool(name, arguments, as_object=True)
    return answers
