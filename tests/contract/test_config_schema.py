"""The published schema of knowledge.yaml follows the code, and the two ways to write a key agree."""

import json
from pathlib import Path

from app.config_environment import known_variables
from app.config_schema import KnowledgeBlock, json_schema

SCHEMA = Path(__file__).parents[2] / "docs" / "configuration.schema.json"
REGENERATE = (
    "python -c \"from app.config_schema import json_schema; print(json_schema(), end='')\" "
    "> docs/configuration.schema.json"
)


def test_the_published_schema_is_current() -> None:
    assert SCHEMA.read_text("utf-8") == json_schema(), f"stale; regenerate it with: {REGENERATE}"


def test_every_key_of_the_schema_is_described() -> None:
    definitions = json.loads(json_schema())["$defs"]
    undescribed = [
        f"{name}.{key}"
        for name, definition in definitions.items()
        for key, value in definition["properties"].items()
        if not value.get("description")
    ]
    assert undescribed == []


def test_unknown_keys_are_refused_inside_the_block_only() -> None:
    definitions = json.loads(json_schema())["$defs"]
    refusing = {name for name, value in definitions.items() if value.get("additionalProperties") is False}
    assert refusing == set(definitions) - {"ConfigurationFile", "HarnessBlock"}


def test_the_keys_of_the_block() -> None:
    """A key that is renamed or dropped breaks the files of those who use it."""
    assert KnowledgeBlock.__struct_fields__ == (
        "enabled",
        "identity",
        "description",
        "paths",
        "directory",
        "top_k",
        "max_injected_tokens",
        "max_file_bytes",
        "substring_index",
        "change_detection",
        "allow_network_filesystem",
        "disk_reserve",
        "embeddings",
        "queue",
        "schedules",
        "notify",
        "mcp",
        "server",
    )


def test_nested_keys_have_variables_with_two_underscores() -> None:
    known = known_variables()
    assert known["KNOWLEDGE_QUEUE__FILES_PER_JOB"][0] == "queue.files_per_job"
    assert known["KNOWLEDGE_EMBEDDINGS__API_KEY_ENV"][0] == "embeddings.api_key_env"
    assert "KNOWLEDGE_SCHEDULES" in known
    assert "KNOWLEDGE_PATHS" in known
