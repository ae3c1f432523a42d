"""What `knowledge mcp config CLIENT` prints can be read by the client, and starts the right server."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from app.config_loaded import Loaded
from app.discovery import Located
from app.mcp_clients import CLIENTS, client_named, launch_of, snippet_notes
from domain.errors import UsageError
from domain.settings import EmbeddingsSettings, McpSettings, Settings

HOME = Path('/srv/a b/knowledge/it\'s "x" ü')
CONFIG = Path('/srv/a b/kno"w\\ledge ü.yaml')
COMMAND = ["/usr/lib/my env/bin/knowledge"]


def loaded(*, config: Path | None = CONFIG, tools: tuple[str, ...] = (), **changes: Any) -> Loaded:
    settings = Settings("x", HOME, config_path=config, configured=True, mcp=McpSettings(tools), **changes)
    return Loaded(Located("named" if config else "store", config, HOME), settings)


def entry_of(client: str, snippet: str) -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads(snippet) if client == "codex" else json.loads(snippet)
    (key,) = read
    assert key == {"codex": "mcp_servers", "vscode": "servers"}.get(client, "mcpServers")
    entry: dict[str, Any] = read[key]["knowledge"]
    return entry


@pytest.mark.parametrize("client", CLIENTS)
def test_a_configured_base_is_named_by_its_file(client: str) -> None:
    entry = entry_of(client, CLIENTS[client].snippet(launch_of(loaded(), COMMAND, [])))
    assert entry.pop("type", "stdio") == "stdio"
    assert entry == {"command": COMMAND[0], "args": ["mcp", "--config", str(CONFIG)]}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_base_without_a_file_is_named_by_its_folder(client: str) -> None:
    launch = launch_of(
        loaded(config=None), ["/bin/python", "-P", "-m", "cli.main"], ["knowledge_read", "knowledge_read"]
    )
    entry = entry_of(client, CLIENTS[client].snippet(launch))
    entry.pop("type", None)
    assert entry == {
        "command": "/bin/python",
        "args": ["-P", "-m", "cli.main", "mcp", "--tools", "knowledge_read"],
        "env": {"KNOWLEDGE_DIRECTORY": str(HOME)},
    }


def test_the_name_of_a_key_is_told_and_never_the_key() -> None:
    """One client hands on only what is named; the others have no place for a name alone."""
    embeddings = EmbeddingsSettings(model="m", base_url="https://h/v1", api_key_env="MY_KEY")
    for client in CLIENTS:
        entry = entry_of(client, CLIENTS[client].snippet(launch_of(loaded(embeddings=embeddings), COMMAND, [])))
        assert entry.get("env_vars") == (["MY_KEY"] if client == "codex" else None)
        assert "env" not in entry


def test_there_are_the_five_clients() -> None:
    assert list(CLIENTS) == ["claude-code", "claude-desktop", "cursor", "vscode", "codex"]
    with pytest.raises(UsageError) as caught:
        client_named("vs-code")
    assert caught.value.hint == f"did you mean vscode? there are: {', '.join(CLIENTS)}"


def test_what_else_is_needed_is_said() -> None:
    embeddings = EmbeddingsSettings(model="m", base_url="https://h/v1", api_key_env="MY_KEY")
    environ = {"KNOWLEDGE_TOP_K": "3", "KNOWLEDGE_DIRECTORY": "/x", "KNOWLEDGE_CONFIG": "/y", "MY_KEY": "sk-secret"}
    notes = snippet_notes(loaded(embeddings=embeddings), CLIENTS["codex"], [], environ)
    assert [note.split(" ")[0] for note in notes] == ["put", "no", "the", "set"]
    assert "~/.codex/config.toml" in notes[0]
    assert "MY_KEY" in notes[2] and "KNOWLEDGE_TOP_K" in notes[3] and "sk-secret" not in " ".join(notes)
    assert "KNOWLEDGE_DIRECTORY" not in notes[3] and "KNOWLEDGE_CONFIG" not in notes[3]
    assert len(snippet_notes(loaded(tools=("knowledge_read",)), CLIENTS["codex"], [], {})) == 1
