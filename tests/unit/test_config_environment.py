"""Every key as a variable, parsed by its type; unknown ones are refused."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.config import load_with_sources, locate
from domain.errors import ConfigurationError
from domain.settings import EmbeddingsSettings, Settings


def settings(folder: Path, environ: Mapping[str, str]) -> Settings:
    return load_with_sources(locate(folder, config=None, environ=environ), environ, cwd=folder).settings


def refusal(folder: Path, environ: Mapping[str, str]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        settings(folder, environ)
    return caught.value


def test_values_are_parsed_by_type(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        {
            "KNOWLEDGE_TOP_K": "7",
            "KNOWLEDGE_MAX_FILE_BYTES": "1MB",
            "KNOWLEDGE_SUBSTRING_INDEX": "on",
            "KNOWLEDGE_QUEUE__URL": "redis://h:1/0",
            "KNOWLEDGE_QUEUE__FILES_PER_JOB": "16",
            "KNOWLEDGE_DESCRIPTION": "12",
            "KNOWLEDGE_IDENTITY": "7",
            "OTHER": "x",
        },
    )
    assert (found.top_k, found.max_file_bytes, found.substring_index) == (7, 1_000_000, "on")
    assert (found.queue.url, found.queue.files_per_job) == ("redis://h:1/0", 16)
    assert (found.description, found.identity) == ("12", "7")
    assert found.home == tmp_path / "knowledge" / "7"
    assert not found.configured


@pytest.mark.parametrize(
    ("text", "enabled"),
    [("true", True), ("1", True), ("Yes", True), ("on", True), ("0", False), ("no", False)],
)
def test_booleans(tmp_path: Path, text: str, enabled: bool) -> None:
    assert settings(tmp_path, {"KNOWLEDGE_ENABLED": text}).enabled is enabled


@pytest.mark.parametrize(
    ("variable", "text", "words"),
    [
        ("KNOWLEDGE_TOP_K", "five", "must be a whole number"),
        ("KNOWLEDGE_TOP_K", "", "must be a whole number"),
        ("KNOWLEDGE_TOP_K", "0", "at least 1"),
        ("KNOWLEDGE_ENABLED", "maybe", "must be true or false"),
        ("KNOWLEDGE_ENABLED", "", "must be true or false"),
        ("KNOWLEDGE_CHANGE_DETECTION", "x", "must be one of stat, hash"),
        ("KNOWLEDGE_EMBEDDINGS__TIMEOUT", "-3s", "must not be negative"),
        ("KNOWLEDGE_PATHS", "[1", "no valid JSON list"),
        ("KNOWLEDGE_PATHS", '["absent"]', "does not exist"),
        ("KNOWLEDGE_PATHS", "/", "whole file system"),
        ("KNOWLEDGE_SCHEDULES", "nightly", "JSON list of objects"),
        ("KNOWLEDGE_SCHEDULES", '[{"name": "a", "cron": "x"}]', "five fields"),
    ],
)
def test_wrong_values_name_the_variable(tmp_path: Path, variable: str, text: str, words: str) -> None:
    error = refusal(tmp_path, {variable: text})
    assert error.message.startswith(variable)
    assert words in error.message


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("KNOWLEDGE_TOPK", "KNOWLEDGE_TOP_K"),
        ("KNOWLEDGE_QUEUE_URL", "KNOWLEDGE_QUEUE__URL"),
        ("KNOWLEDGE_QUEUE", "KNOWLEDGE_QUEUE__URL"),
        ("KNOWLEDGE_DIRECTRY", "KNOWLEDGE_DIRECTORY"),
    ],
)
def test_unknown_variables_are_refused_with_the_nearest(tmp_path: Path, variable: str, near: str) -> None:
    error = refusal(tmp_path, {variable: "sk-hidden"})
    assert error.message.startswith(f"{variable}: unknown environment variable; the nearest known one is ")
    assert near in error.message
    assert "hidden" not in error.message + error.hint


def test_an_unknown_variable_with_nothing_near(tmp_path: Path) -> None:
    assert "Unset it" in refusal(tmp_path, {"KNOWLEDGE_": "x"}).hint


def test_what_clusters_set_for_a_service_of_this_name_is_no_key(tmp_path: Path) -> None:
    environ = {
        "KNOWLEDGE_SERVICE_HOST": "10.0.0.1",
        "KNOWLEDGE_SERVICE_PORT_HTTP": "80",
        "KNOWLEDGE_PORT": "tcp://10.0.0.1:80",
        "KNOWLEDGE_PORT_80_TCP_ADDR": "10.0.0.1",
        "KNOWLEDGE_CONFIG": "",
    }
    assert settings(tmp_path, environ).top_k == 5


def test_lists(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    assert [root.path.name for root in settings(tmp_path, {"KNOWLEDGE_PATHS": "a:b"}).roots] == ["a", "b"]
    found = settings(tmp_path, {"KNOWLEDGE_PATHS": '["a", {"path": "c", "name": "see"}]'}).roots
    assert [(root.path.name, root.name) for root in found] == [("a", ""), ("c", "see")]
    assert settings(tmp_path, {"KNOWLEDGE_PATHS": ""}).roots == ()


def test_a_list_of_words(tmp_path: Path) -> None:
    environ = {
        "KNOWLEDGE_EMBEDDINGS__BASE_URL": "http://embedder/v1",
        "KNOWLEDGE_EMBEDDINGS__INSECURE_HOSTS": "other, embedder",
        "KNOWLEDGE_EMBEDDINGS__MODEL": "m",
    }
    found = load_with_sources(locate(tmp_path, config=None, environ=environ), environ, cwd=tmp_path)
    assert found.block is not None
    assert found.block.embeddings is not None
    assert found.block.embeddings.insecure_hosts == ("other", "embedder")


def test_variables_alone_switch_the_vector_tier_on(tmp_path: Path) -> None:
    """S1-10, S1-21: every key of the block is a variable too."""
    embeddings = settings(
        tmp_path,
        {
            "KNOWLEDGE_EMBEDDINGS__MODEL": "nomic-embed-text",
            "KNOWLEDGE_EMBEDDINGS__BASE_URL": "http://127.0.0.1:11434/v1",
            "KNOWLEDGE_EMBEDDINGS__MIN_SIMILARITY": "0.3",
            "KNOWLEDGE_EMBEDDINGS__MAX_BATCH_BYTES": "64KiB",
            "KNOWLEDGE_EMBEDDINGS__OUTAGE_LIMIT": "90",
            "KNOWLEDGE_EMBEDDINGS__CONCURRENCY": "2",
        },
    ).embeddings
    assert embeddings == EmbeddingsSettings(
        model="nomic-embed-text",
        base_url="http://127.0.0.1:11434/v1",
        min_similarity=0.3,
        max_batch_bytes=64 * 1024,
        outage_limit_s=90.0,
        concurrency=2,
    )
    assert settings(tmp_path, {"KNOWLEDGE_EMBEDDINGS__PROVIDER": "local"}).embeddings == EmbeddingsSettings(
        provider="local", model="wordllama-l2-supercat-256"
    )
    assert settings(tmp_path, {"KNOWLEDGE_TOP_K": "3"}).embeddings is None


@pytest.mark.parametrize("text", ["high", "", "nan", "inf", "1.01"])
def test_a_similarity_that_is_none_is_told_by_its_variable(tmp_path: Path, text: str) -> None:
    environ = {"KNOWLEDGE_EMBEDDINGS__PROVIDER": "local", "KNOWLEDGE_EMBEDDINGS__MIN_SIMILARITY": text}
    assert refusal(tmp_path, environ).message.startswith("KNOWLEDGE_EMBEDDINGS__MIN_SIMILARITY: must be")


def test_a_variable_replaces_the_file_s_value_and_its_block_stays(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.yaml"
    path.write_text("knowledge:\n  top_k: 2\n  queue: {url: 'redis://a', workers: 3}\n", "utf-8")
    environ = {"KNOWLEDGE_CONFIG": str(path), "KNOWLEDGE_QUEUE__URL": "", "KNOWLEDGE_TOP_K": "4"}
    found = settings(tmp_path, environ)
    assert (found.top_k, found.queue.url, found.queue.workers) == (4, "", 3)


def test_an_entry_of_a_variable_s_list_is_told_by_the_variable(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.yaml"
    path.write_text("knowledge:\n  paths: [.]\n", "utf-8")
    environ = {"KNOWLEDGE_CONFIG": "knowledge.yaml", "KNOWLEDGE_PATHS": "absent"}
    assert refusal(tmp_path, environ).message.startswith("KNOWLEDGE_PATHS, [0]: ")
