"""`knowledge mcp`: parses, and starts the server; or prints what an MCP client needs for it."""

import gc
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from app.config import Loaded, process_environ
from cli import terminal
from cli.arguments import CONFIG_FLAG, Arguments, Flag, TableVerb
from cli.chosen_base import chosen, tell_notes
from domain.errors import UsageError
from domain.settings import ToolProfile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# by name: the server stands beside the command line, and only this verb pays for its import (the SDK takes a second)
SERVER_MODULE = "server.mcp_stdio"
FLAGS = (
    Flag(
        "--tools", str, "The tools that agents are given, in the place of mcp.tools: names with commas between.", "A,B"
    ),
    Flag(
        "--tools-profile", str,
        "Which of them a client is shown: agent (a short list; the default) or full; in the place of mcp.profile.",
        "PROFILE", ("agent", "full"),
    ),
    CONFIG_FLAG,
)  # fmt: skip
HELP = """Give agents the index: an MCP server on standard input and output, for a client that starts it.

It only reads. Which tools there are is yours to say: mcp.tools in the configuration, or --tools; none by default.

knowledge mcp config CLIENT prints what a client needs to start it: claude-code, claude-desktop, cursor, vscode or
codex.
"""


def call(arguments: Arguments) -> int:
    loaded = chosen(arguments.text("config"), absent_roots="note")
    written = arguments.text("tools")
    names = loaded.settings.mcp.tools if written is None else tuple(written.split(","))
    match arguments.words:
        case []:
            tell_notes(loaded)
            return _serve(loaded, names, _profile(arguments, loaded))
        case ["config", client]:
            return _print_snippet(loaded, client, written)
        case ["config"]:
            raise UsageError("CLIENT is missing", hint=f"knowledge mcp config CLIENT, one of: {_clients()}")
    raise UsageError(
        f"{arguments.words[0]!r} is no part of `knowledge mcp`", hint="`knowledge mcp --help` says what there is"
    )


def _profile(arguments: Arguments, loaded: Loaded) -> ToolProfile:
    match arguments.text("tools_profile"):
        case None:
            return loaded.settings.mcp.profile
        case "agent" | "full" as written:
            return written
        case written:
            raise UsageError(f"--tools-profile: there is no profile {written[:40]!r}", hint="there are: agent, full")


def _serve(loaded: Loaded, names: "Sequence[str]", profile: ToolProfile) -> int:
    if terminal.can_ask():
        terminal.tell(
            "an MCP client is to start this and speak to it (`knowledge mcp config CLIENT` says how); Ctrl-C ends it\n"
        )
    serve: Callable[[Loaded, Sequence[str], ToolProfile], int] = _imported_server().serve
    return serve(loaded, names, profile)


def _imported_server() -> ModuleType:
    """The SDK makes a few hundred thousand objects that all stay: to look for garbage among them again and again takes
    a sixth of the start, and of every later look too."""
    gc.disable()
    try:
        return import_module(SERVER_MODULE)
    finally:
        gc.freeze()
        gc.enable()


def _print_snippet(loaded: Loaded, client_name: str, written_tools: str | None) -> int:
    from app.mcp_clients import client_named, launch_of, snippet_notes
    from app.mcp_exposure import exposed_tools

    client = client_named(client_name)
    tools = exposed_tools(written_tools.split(","), loaded.settings) if written_tools is not None else ()
    terminal.write(client.snippet(launch_of(loaded, _own_command(), tools)))
    for note in snippet_notes(loaded, client, tools, process_environ()):
        terminal.tell(f"note: {note}\n")
    return 0


def _own_command() -> list[str]:
    """How this program is started from anywhere: the command of its environment, else its interpreter and module."""
    installed = Path(sys.executable).with_name("knowledge")
    if os.access(installed, os.X_OK):
        return [str(installed)]
    return [sys.executable, "-P", "-m", "cli.main"]


def _clients() -> str:
    from app.mcp_clients import CLIENTS

    return ", ".join(CLIENTS)


TABLE_VERBS = (
    TableVerb(
        "mcp", HELP, FLAGS, call, words_metavar="config CLIENT",
        words_help="Print what this client needs, instead of serving.", most_words=2,
    ),
)  # fmt: skip
