"""What an MCP client needs to be told so that it starts `knowledge mcp`: one snippet a client, ready to be pasted."""

import json
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from msgspec import Struct

from app.config_loaded import Loaded
from app.discovery import DIRECTORY_VARIABLE
from app.mcp_exposure import listed
from app.present_safe import name
from domain.errors import UsageError

SERVER_KEY = "knowledge"
MAX_SHOWN_CHARS = 80


class Launch(Struct, frozen=True):
    """How a client is to start the server: an absolute command, its arguments, variables to set, and the names of
    those to hand on."""

    command: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    handed_on: tuple[str, ...] = ()


class Client(Struct, frozen=True):
    """`place`: the file that the snippet belongs into, in words."""

    place: str
    snippet: Callable[[Launch], str]


def _json_snippet(key: str, *, names_transport: bool) -> Callable[[Launch], str]:
    def snippet(launch: Launch) -> str:
        entry: dict[str, Any] = {"type": "stdio"} if names_transport else {}
        entry |= {"command": launch.command, "args": list(launch.arguments)}
        if launch.variables:
            entry["env"] = dict(launch.variables)
        return json.dumps({key: {SERVER_KEY: entry}}, ensure_ascii=False, indent=2) + "\n"

    return snippet


def _toml_snippet(launch: Launch) -> str:
    lines = [
        f"[mcp_servers.{SERVER_KEY}]",
        f"command = {_toml_string(launch.command)}",
        f"args = [{', '.join(map(_toml_string, launch.arguments))}]",
    ]
    if launch.variables:
        pairs = ", ".join(f"{key} = {_toml_string(value)}" for key, value in launch.variables.items())
        lines.append(f"env = {{ {pairs} }}")
    if launch.handed_on:  # what is not named here, this client keeps to itself
        lines.append(f"env_vars = [{', '.join(map(_toml_string, launch.handed_on))}]")
    return "\n".join(lines) + "\n"


def _toml_string(text: str) -> str:
    """A basic string; JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(".mcp.json in the folder of your project", _json_snippet("mcpServers", names_transport=True)),
    "claude-desktop": Client(
        "claude_desktop_config.json (Settings > Developer > Edit Config)",
        _json_snippet("mcpServers", names_transport=False),
    ),
    "cursor": Client(
        ".cursor/mcp.json in the folder of your project, or ~/.cursor/mcp.json for all of them",
        _json_snippet("mcpServers", names_transport=False),
    ),
    "vscode": Client(".vscode/mcp.json in the folder of your project", _json_snippet("servers", names_transport=True)),
    "codex": Client("~/.codex/config.toml", _toml_snippet),
}


def client_named(written: str) -> Client:
    """Raises UsageError naming the clients."""
    client = CLIENTS.get(written)
    if client is None:
        near = get_close_matches(written, CLIENTS, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"there is no client {name(written[:MAX_SHOWN_CHARS])!r}", hint=f"{meant}there are: {', '.join(CLIENTS)}"
        )
    return client


def launch_of(loaded: Loaded, command: Sequence[str], tools: Sequence[str]) -> Launch:
    """The base is named by its configuration, else by its folder: a client starts us wherever it likes."""
    first, *rest = command
    arguments = [*rest, "mcp"]
    variables: dict[str, str] = {}
    if loaded.settings.config_path is not None:
        arguments += ["--config", str(loaded.settings.config_path)]
    else:
        variables[DIRECTORY_VARIABLE] = str(loaded.settings.home)
    if tools:
        arguments += ["--tools", ",".join(listed(tools))]
    embeddings = loaded.settings.embeddings
    keys = (embeddings.api_key_env,) if embeddings is not None and embeddings.api_key_env else ()
    return Launch(first, tuple(arguments), variables, keys)


def snippet_notes(loaded: Loaded, client: Client, tools: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Where the snippet belongs, and what else is needed before it works."""
    notes = [f"put it into {client.place}; if there are servers already, add this one to them"]
    if not (listed(tools) or loaded.settings.mcp.tools):
        notes.append("no tool is exposed yet, so the server would not start: see `knowledge mcp`")
    embeddings = loaded.settings.embeddings
    if embeddings is not None and embeddings.api_key_env:
        notes.append(
            f"the embeddings server's key is read from {embeddings.api_key_env}: set it where the client is started "
            "(a client that does not hand it on needs it under env as well)"
        )
    from app.config_environment import key_variables

    set_now = [variable for variable in key_variables(environ) if variable != DIRECTORY_VARIABLE]
    if set_now:
        notes.append(
            f"set here, and perhaps not where the client is started: {', '.join(sorted(set_now))}; "
            "better written into knowledge.yaml"
        )
    return notes
