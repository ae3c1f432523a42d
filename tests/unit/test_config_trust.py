"""A found configuration that asks for much is obeyed only after it was trusted."""

import json
import os
from pathlib import Path

import pytest

from app.config import load, locate
from app.config_trust import trust
from domain.errors import ConfigurationError, StorageError, UntrustedConfigurationError
from domain.settings import Settings

QUEUE = "knowledge:\n  queue: {url: 'redis://h'}\n"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "docs").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    return tmp_path / "project"


def obey(project: Path, environ: dict[str, str], text: str = "") -> Settings:
    if text:
        (project / "knowledge.yaml").write_text(text, "utf-8")
    return load(locate(project, config=None, environ=environ), environ, cwd=project)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("embeddings: {model: m, base_url: 'https://example.org/v1'}", "example.org"),
        ("embeddings: {model: m, base_url: 'https://127.0.0.1.example.org/v1'}", "example.org"),
        ("embeddings: {model: m, base_url: 'http://127.0.0.1:1/v1', api_key_env: AWS_SECRET}", "AWS_SECRET"),
        ("embeddings: {provider: local, insecure_hosts: [h]}", "insecure_hosts"),
        ("queue: {url: 'redis://user:hunter2@h'}", "queue.url"),
        ("queue: {url: 'unix:///run/x'}", "queue.url"),
        ("paths: [../outside]", "outside its own folder"),
        ("paths: [docs, {path: ../outside}]", "paths[1]"),
        ("paths: [..]", "outside its own folder"),
        ("directory: ../outside/index", "keeps its index in"),
        ("directory: /var/lib/other/knowledge", "keeps its index in"),
    ],
)
def test_what_needs_trust(project: Path, environ: dict[str, str], line: str, words: str) -> None:
    with pytest.raises(UntrustedConfigurationError) as caught:
        obey(project, environ, f"knowledge:\n  {line}\n")
    assert caught.value.exit_status == 2
    assert words in caught.value.message
    assert "hunter2" not in caught.value.message
    assert "--config" in caught.value.hint
    assert "knowledge config trust" in caught.value.hint


def test_a_link_that_leads_outside_needs_trust(project: Path, environ: dict[str, str]) -> None:
    (project / "inside").symlink_to(project.parent / "outside")
    with pytest.raises(UntrustedConfigurationError, match="outside its own folder"):
        obey(project, environ, "knowledge:\n  paths: [inside]\n")


@pytest.mark.parametrize(
    "line",
    [
        "paths: [docs]",
        "paths: [.]",
        "embeddings: {base_url: 'http://127.0.0.1:1/v1', model: m}",
        "embeddings: {model: m, base_url: 'http://localhost:1/v1'}",
        "queue: {files_per_job: 3}",
        "top_k: 3",
    ],
)
def test_what_needs_none(project: Path, environ: dict[str, str], line: str) -> None:
    assert obey(project, environ, f"knowledge:\n  {line}\n").configured


def test_a_named_file_is_obeyed(project: Path, environ: dict[str, str]) -> None:
    path = project / "knowledge.yaml"
    path.write_text(QUEUE, "utf-8")
    assert load(locate(project, config=path, environ=environ), environ, cwd=project).queue.url
    environ["KNOWLEDGE_CONFIG"] = str(path)
    assert load(locate(project, config=None, environ=environ), environ, cwd=project).queue.url


def test_what_a_variable_sets_is_not_the_file_s(project: Path, environ: dict[str, str]) -> None:
    environ |= {"KNOWLEDGE_QUEUE__URL": "redis://mine", "KNOWLEDGE_PATHS": "../outside"}
    assert obey(project, environ, "knowledge:\n  queue: {url: 'redis://theirs'}\n").queue.url == "redis://mine"


KEY_VARIABLES = {"KNOWLEDGE_EMBEDDINGS__API_KEY_ENV": "MY_KEY", "MY_KEY": "hunter2"}
SERVER_VARIABLES = {"KNOWLEDGE_EMBEDDINGS__BASE_URL": "https://mine.example.org/v1"}


@pytest.mark.parametrize(
    ("variables", "block", "words"),
    [
        (KEY_VARIABLES, "{model: m, base_url: 'https://theirs.example.org/v1'}", "sends texts to theirs.example.org"),
        (KEY_VARIABLES, "{model: m, base_url: 'http://127.0.0.1:1/v1'}", "sends the key in MY_KEY to 127.0.0.1"),
        (KEY_VARIABLES, "{model: m, base_url: 'http://embedder/v1', insecure_hosts: [embedder]}", "to embedder"),
        (SERVER_VARIABLES, "{model: m, api_key_env: AWS_SECRET}", "reads the variable AWS_SECRET"),
        (SERVER_VARIABLES, "{model: m, insecure_hosts: [mine.example.org]}", "unencrypted"),
    ],
)
def test_no_key_goes_to_a_host_that_only_an_untrusted_file_names(
    project: Path, environ: dict[str, str], variables: dict[str, str], block: str, words: str
) -> None:
    """S1-57, P19: file and variables together must not send anything that neither of them alone would."""
    environ |= variables
    with pytest.raises(UntrustedConfigurationError) as caught:
        obey(project, environ, f"knowledge:\n  embeddings: {block}\n")
    assert words in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint


def test_an_embedder_of_my_own_variables_needs_no_trust(project: Path, environ: dict[str, str]) -> None:
    environ |= KEY_VARIABLES | SERVER_VARIABLES
    settings = obey(project, environ, "knowledge:\n  embeddings: {model: m, base_url: 'http://127.0.0.1:1/v1'}\n")
    assert settings.embeddings is not None
    assert settings.embeddings.base_url == "https://mine.example.org/v1"
    local = obey(project, {"XDG_STATE_HOME": "/nowhere"}, "knowledge:\n  embeddings: {provider: local}\n")
    assert local.embeddings is not None


def test_a_file_that_is_off_is_not_obeyed_anyway(project: Path, environ: dict[str, str]) -> None:
    assert not obey(project, environ, QUEUE + "  enabled: false\n").enabled
    environ["KNOWLEDGE_ENABLED"] = "true"
    with pytest.raises(UntrustedConfigurationError):
        obey(project, environ)


def test_trust_is_for_this_content_at_this_place(project: Path, environ: dict[str, str]) -> None:
    (project / "knowledge.yaml").write_text(QUEUE, "utf-8")
    assert trust(project / "knowledge.yaml", environ) == project / "knowledge.yaml"
    assert obey(project, environ).queue.url == "redis://h"
    with pytest.raises(UntrustedConfigurationError):
        obey(project, environ, QUEUE + "  top_k: 3\n")
    assert obey(project, environ, QUEUE).queue.url == "redis://h"
    copy = project.parent / "copy"
    copy.mkdir()
    with pytest.raises(UntrustedConfigurationError):
        obey(copy, environ, QUEUE)


def test_on_a_terminal_it_is_asked_once(project: Path, environ: dict[str, str]) -> None:
    (project / "knowledge.yaml").write_text(QUEUE, "utf-8")
    located = locate(project, config=None, environ=environ)
    asked: list[str] = []

    def answer(question: str) -> bool:
        asked.append(question)
        return len(asked) > 1

    with pytest.raises(UntrustedConfigurationError):
        load(located, environ, cwd=project, ask=answer)
    for _ in range(2):
        assert load(located, environ, cwd=project, ask=answer).queue.url == "redis://h"
    assert len(asked) == 2
    assert "queue.url" in asked[0]


def test_a_question_cannot_paint_the_terminal(project: Path, environ: dict[str, str]) -> None:
    name = "evil\x1b[2K\u202e"
    (project.parent / name).mkdir()
    text = json.dumps({"knowledge": {"paths": [f"../{name}"]}})  # JSON is YAML
    with pytest.raises(ConfigurationError) as caught:
        obey(project, environ, text)
    assert "\x1b" not in caught.value.message
    assert "\u202e" not in caught.value.message


@pytest.mark.skipif(os.name != "posix", reason="mode bits")
def test_what_is_remembered_is_private_and_others_files_do_not_count(
    project: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    (project / "knowledge.yaml").write_text(QUEUE, "utf-8")
    trust(project / "knowledge.yaml", environ)
    remembered = tmp_path / "state" / "knowledge" / "trusted.json"
    assert remembered.stat().st_mode & 0o777 == 0o600
    assert remembered.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in remembered.parent.iterdir()] == ["trusted.json"]
    remembered.chmod(0o666)
    with pytest.raises(UntrustedConfigurationError):
        obey(project, environ)


@pytest.mark.parametrize("content", ["", "[", "[]", '{"x": 1}', "\udcff"])
def test_a_damaged_memory_trusts_nothing_and_is_replaced(
    project: Path, environ: dict[str, str], tmp_path: Path, content: str
) -> None:
    remembered = tmp_path / "state" / "knowledge" / "trusted.json"
    remembered.parent.mkdir(parents=True)
    remembered.write_bytes(content.encode("utf-8", "surrogateescape"))
    remembered.chmod(0o600)
    with pytest.raises(UntrustedConfigurationError):
        obey(project, environ, QUEUE)
    trust(project / "knowledge.yaml", environ)
    assert obey(project, environ).queue.url


def test_several_files_are_remembered_beside_each_other(project: Path, environ: dict[str, str]) -> None:
    paths = [project / "a.yaml", project / "b.yaml"]
    for path in paths:
        path.write_text(QUEUE, "utf-8")
        trust(path, environ)
    remembered = json.loads((Path(environ["XDG_STATE_HOME"]) / "knowledge" / "trusted.json").read_text("utf-8"))
    assert sorted(remembered) == [str(path) for path in paths]


def test_without_xdg_it_lies_below_the_home_directory(project: Path, tmp_path: Path) -> None:
    (project / "knowledge.yaml").write_text(QUEUE, "utf-8")
    trust(project / "knowledge.yaml", {"HOME": str(tmp_path / "me"), "XDG_STATE_HOME": "relative"})
    assert (tmp_path / "me" / ".local" / "state" / "knowledge" / "trusted.json").is_file()


def test_without_a_home_directory_nothing_is_trusted(project: Path) -> None:
    with pytest.raises(UntrustedConfigurationError):
        obey(project, {}, QUEUE)
    with pytest.raises(ConfigurationError, match="no home directory"):
        trust(project / "knowledge.yaml", {})


def test_a_memory_that_cannot_be_written_is_a_storage_error(project: Path, tmp_path: Path) -> None:
    (project / "knowledge.yaml").write_text(QUEUE, "utf-8")
    (tmp_path / "state").touch()
    with pytest.raises(StorageError, match="Cannot remember trust"):
        trust(project / "knowledge.yaml", {"XDG_STATE_HOME": str(tmp_path / "state")})


def test_a_missing_file_cannot_be_trusted(project: Path, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="no configuration file"):
        trust(project / "absent.yaml", environ)
