"""From a file and variables to settings: every rule, with file, line and key."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from app.config import (
    Loaded,
    embeddings_key,
    load,
    load_with_sources,
    locate,
    process_environ,
    read,
    require_enabled,
    secret,
)
from app.config_origins import FromDefault, FromFile, FromVariable
from app.discovery import Located
from domain.errors import ConfigurationError, DisabledError
from domain.settings import EmbeddingsSettings, QueueSettings, RootSettings, Settings

BLOCK = "knowledge:\n  enabled: true\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two folders of texts, as a configuration may name them."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "notes").mkdir()
    return tmp_path


def loaded(
    folder: Path, text: str, environ: Mapping[str, str] | None = None, *, name: str = "knowledge.yaml"
) -> Loaded:
    path = folder / name
    path.write_text(text, "utf-8")
    located = locate(folder, config=path, environ=environ or {})
    return load_with_sources(located, environ or {}, cwd=folder)


def refusal(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        loaded(folder, text, environ)
    assert caught.value.exit_status == 2
    return caught.value


def test_without_file_and_variables_the_defaults_are_on(tmp_path: Path) -> None:
    located = locate(tmp_path, config=None, environ={})
    assert load(located, {}, cwd=tmp_path) == Settings(
        identity="default", home=tmp_path / "knowledge" / "default", config_path=None, configured=False
    )


def test_enabling_needs_just_enabled_and_paths(folder: Path) -> None:
    settings = loaded(folder, BLOCK + "  paths: [docs/]\n").settings
    assert settings == Settings(
        identity="knowledge",
        home=folder / "knowledge" / "knowledge",
        config_path=folder / "knowledge.yaml",
        configured=True,
        roots=(RootSettings(path=folder / "docs"),),
    )


def test_defaults_of_a_file_are_those_of_no_file(tmp_path: Path) -> None:
    configured = loaded(tmp_path, BLOCK).settings
    plain = Settings(configured.identity, configured.home, configured.config_path, configured=True)
    assert configured == plain


def test_every_key_reaches_the_settings(folder: Path) -> None:
    text = """\
knowledge:
  enabled: true
  identity: handbook
  description: What we know
  paths:
    - notes
    - path: docs
      name: d
      role: documents
      description: Docs
      include: ["*.md"]
      exclude: [drafts/]
      exclude_dirs: [memory, old]
      extensions: [MD, .rst, md]
      watch: true
      link: https://example.org/{path}#L{start_line}
      held_removals: false
  directory: index
  top_k: 7
  max_injected_tokens: 100
  max_file_bytes: 1MiB
  substring_index: on
  change_detection: hash
  queue: {url: "redis://h", files_per_job: 8, workers: 2}
"""
    assert loaded(folder, text).settings == Settings(
        identity="handbook",
        home=folder / "index",
        config_path=folder / "knowledge.yaml",
        configured=True,
        description="What we know",
        roots=(
            RootSettings(path=folder / "notes"),
            RootSettings(
                path=folder / "docs",
                name="d",
                description="Docs",
                include=("*.md",),
                exclude=("drafts/",),
                exclude_dirs=("memory", "old"),
                extensions=(".md", ".rst"),
                watch=True,
                link="https://example.org/{path}#L{start_line}",
                held_removals=False,
            ),
        ),
        top_k=7,
        max_injected_tokens=100,
        max_file_bytes=1024 * 1024,
        substring_index="on",
        change_detection="hash",
        queue=QueueSettings("redis://h", 8, 2),
    )


def test_a_team_s_file_with_every_block_is_accepted_and_nothing_of_it_is_without_effect(folder: Path) -> None:
    text = """\
knowledge:
  paths: [docs]
  embeddings: {provider: openai, base_url: "http://127.0.0.1:1234/v1", model: m, commit: words_first}
  schedules:
    - {name: nightly, cron: "0 3 * * *", timezone: Europe/Malta, window: "01:00-05:00", jitter: 5m}
  mcp: {tools: [], allow_write: false, profile: agent}
  server: {host: 127.0.0.1, port: 8765, read_token_env: "", operate_token_env: "", allowed_hosts: [kb.example.org]}
"""
    found = loaded(folder, text)
    assert found.later_features == ()
    assert found.settings.server.allowed_hosts == ("kb.example.org",)
    assert loaded(folder, BLOCK).later_note() == ""


def test_every_key_of_the_vector_tier_reaches_the_settings(folder: Path) -> None:
    """S1-10, S1-21."""
    text = """\
knowledge:
  embeddings:
    provider: openai
    base_url: https://embeddings.example.org/v1
    model: multilingual-e5-small
    api_key_env: MY_KEY
    timeout: 5s
    batch: 32
    max_batch_bytes: 256KiB
    concurrency: 8
    requests_per_minute: 600
    outage_limit: 1m30s
    commit: words_first
    query_prefix: "query: "
    document_prefix: "passage: "
    insecure_hosts: [embedder]
    min_similarity: 0
"""
    assert loaded(folder, text).settings.embeddings == EmbeddingsSettings(
        provider="openai",
        base_url="https://embeddings.example.org/v1",
        model="multilingual-e5-small",
        api_key_env="MY_KEY",
        timeout_s=5.0,
        batch=32,
        max_batch_bytes=256 * 1024,
        concurrency=8,
        requests_per_minute=600,
        outage_limit_s=90.0,
        commit="words_first",
        query_prefix="query: ",
        document_prefix="passage: ",
        insecure_hosts=("embedder",),
        min_similarity=0.0,
    )


def test_presence_of_the_block_is_the_switch_and_defaults_are_those_of_the_settings(folder: Path) -> None:
    """S1-10, S1-27."""
    assert loaded(folder, BLOCK).settings.embeddings is None
    assert loaded(folder, BLOCK + "  embeddings:\n").settings.embeddings is None
    server = loaded(folder, BLOCK + "  embeddings: {base_url: 'http://localhost/v1', model: m}\n").settings
    assert server.embeddings == EmbeddingsSettings(base_url="http://localhost/v1", model="m")
    local = loaded(folder, BLOCK + "  embeddings: {provider: local}\n").settings
    assert local.embeddings == EmbeddingsSettings(provider="local", model="wordllama-l2-supercat-256")


def test_a_key_is_read_from_its_variable_and_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """P19: a message names the variable, never what it holds."""
    settings = EmbeddingsSettings(base_url="https://h/v1", model="m", api_key_env="MY_KEY")
    monkeypatch.delenv("MY_KEY", raising=False)
    assert secret("MY_KEY") is None
    assert embeddings_key(EmbeddingsSettings(provider="local")) is None
    for text in ("", "  \n"):
        monkeypatch.setenv("MY_KEY", text)
        with pytest.raises(ConfigurationError, match="the variable MY_KEY is not set"):
            embeddings_key(settings)
    monkeypatch.setenv("MY_KEY", "hunter2\n")
    assert (secret("MY_KEY"), embeddings_key(settings)) == ("hunter2\n", "hunter2")
    for text in ("hunter2\nX-Other: 1", "hunter2\x1b", "hünter2"):
        monkeypatch.setenv("MY_KEY", text)
        with pytest.raises(ConfigurationError) as caught:
            embeddings_key(settings)
        assert "unter2" not in caught.value.message + caught.value.hint


def test_relative_paths_start_at_the_file_and_home_is_opened(folder: Path) -> None:
    (folder / "sub").mkdir()
    path = folder / "knowledge.yaml"
    path.write_text("knowledge:\n  paths: [docs/../notes, ~/mine]\n  directory: ../store\n", "utf-8")
    (folder / "home" / "mine").mkdir(parents=True)
    environ = {"HOME": str(folder / "home")}
    located = locate(folder / "sub", config=Path("../knowledge.yaml"), environ=environ)
    settings = load(located, environ, cwd=folder / "sub")
    assert [root.path for root in settings.roots] == [folder / "notes", folder / "home" / "mine"]
    assert settings.home == folder.parent / "store"


def test_paths_of_variables_start_at_the_working_directory(folder: Path) -> None:
    (folder / "sub" / "here").mkdir(parents=True)
    path = folder / "knowledge.yaml"
    path.write_text("knowledge:\n  paths: [docs]\n  directory: index\n", "utf-8")
    environ = {"KNOWLEDGE_PATHS": "here", "KNOWLEDGE_DIRECTORY": "there"}
    located = locate(folder / "sub", config=path, environ=environ)
    settings = load(located, environ, cwd=folder / "sub")
    assert [root.path for root in settings.roots] == [folder / "sub" / "here"]
    assert settings.home == folder / "sub" / "there"


def test_the_identity_is_the_file_s_stem_and_keeps_stores_apart(folder: Path) -> None:
    assert loaded(folder, BLOCK, name="handbook.yaml").settings.home == folder / "knowledge" / "handbook"
    named = loaded(folder, BLOCK + "  identity: wiki\n", name="handbook.yaml").settings
    assert (named.identity, named.home) == ("wiki", folder / "knowledge" / "wiki")


def test_two_files_that_name_one_directory_share_it(folder: Path) -> None:
    one = loaded(folder, BLOCK + "  directory: shared\n", name="one.yaml").settings
    two = loaded(folder, BLOCK + "  directory: ./shared/\n", name="two.yaml").settings
    assert one.home == two.home


@pytest.mark.parametrize("path", ["index", "index/below"])
def test_a_root_in_the_store_s_directory_is_refused(folder: Path, path: str) -> None:
    (folder / "index" / "below").mkdir(parents=True)
    error = refusal(folder, f"knowledge:\n  directory: index\n  paths: [{path}]\n")
    assert "lies in the index's own directory" in error.message


def test_a_root_may_hold_the_store(folder: Path) -> None:
    assert loaded(folder, "knowledge:\n  paths: [.]\n").settings.roots[0].path == folder


def test_links_are_followed_to_see_that_roots_overlap(folder: Path) -> None:
    (folder / "alias").symlink_to(folder / "docs")
    assert "overlaps" in refusal(folder, "knowledge:\n  paths: [docs, alias]\n").message
    (folder / "everything").symlink_to("/")
    assert "whole file system" in refusal(folder, "knowledge:\n  paths: [everything]\n").message


def test_a_root_that_is_gone_is_a_note_where_answers_come_from_the_index(folder: Path) -> None:
    path = folder / "knowledge.yaml"
    path.write_text("knowledge:\n  paths: [docs, gone]\n", "utf-8")
    found = load_with_sources(locate(folder, config=path, environ={}), {}, cwd=folder, absent_roots="note")
    assert found.notes == (f"{folder / 'gone'} does not exist or may not be looked at (paths[1])",)
    assert [root.path.name for root in found.settings.roots] == ["docs", "gone"]


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("", "no knowledge block"),
        ("knowledge:\n", "no knowledge block"),
        ("knowlege: {enabled: true}\n", "the nearest key is knowlege"),
        ("enabled: true\npaths: [docs]\n", "enabled stands at the top level"),
        ("knowledge: {enabled: false, paths: [absent]}\n", "enabled is false"),
    ],
)
def test_off_says_why_and_how_to_enable(folder: Path, text: str, because: str) -> None:
    settings = loaded(folder, text).settings
    assert not settings.enabled
    with pytest.raises(DisabledError) as caught:
        require_enabled(settings)
    assert because in caught.value.message
    assert str(folder / "knowledge.yaml") in caught.value.message
    assert "enabled: true" in caught.value.hint


def test_on_is_no_error_and_a_variable_switches_on_and_off(folder: Path) -> None:
    require_enabled(loaded(folder, BLOCK).settings)
    require_enabled(loaded(folder, "", {"KNOWLEDGE_ENABLED": "true"}).settings)
    off = loaded(folder, BLOCK, {"KNOWLEDGE_ENABLED": "false"}).settings
    with pytest.raises(DisabledError, match="KNOWLEDGE_ENABLED"):
        require_enabled(off)


def test_origins(folder: Path) -> None:
    found = loaded(folder, BLOCK + "  top_k: 3\n  paths:\n    - docs\n", {"KNOWLEDGE_QUEUE__WORKERS": "2"})
    path = folder / "knowledge.yaml"
    assert found.sources is not None
    assert found.sources.origin("top_k") == FromFile(path, 3)
    assert found.sources.origin("paths[0]") == FromFile(path, 5)
    assert found.sources.origin("queue.workers") == FromVariable("KNOWLEDGE_QUEUE__WORKERS")
    assert found.sources.origin("queue.url") == FromDefault()
    assert [str(found.sources.origin(key)) for key in ("top_k", "queue.workers", "queue")] == [
        f"{path}:3",
        "environment variable KNOWLEDGE_QUEUE__WORKERS",
        "default",
    ]


def test_a_store_that_was_found_gives_its_name(tmp_path: Path) -> None:
    home = tmp_path / "knowledge" / "wiki"
    located = Located("store", None, home)
    assert load(located, {}, cwd=tmp_path).identity == "wiki"
    assert load(located, {"KNOWLEDGE_TOP_K": "3"}, cwd=tmp_path).identity == "wiki"


def test_the_process_environment_is_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWLEDGE_TOP_K", "9")
    assert process_environ()["KNOWLEDGE_TOP_K"] == "9"


def test_dotenv_files_are_never_read(folder: Path) -> None:
    (folder / ".env").write_text("KNOWLEDGE_TOP_K=9\n", "utf-8")
    assert loaded(folder, BLOCK).settings.top_k == 5


def test_wide_spaces_in_names_of_folders_are_legal(folder: Path) -> None:
    (folder / "設計\u3000書").mkdir()
    text = 'knowledge: {paths: [{path: "設計\u3000書", name: "設計\u3000書"}]}'
    assert loaded(folder, text).settings.roots[0].name == "設計\u3000書"


def test_reading_asks_for_no_trust(folder: Path) -> None:
    (folder / "knowledge.yaml").write_text("knowledge: {queue: {url: 'redis://h'}}\n", "utf-8")
    located = locate(folder, config=None, environ={})
    assert read(located, {}, cwd=folder).needs_trust
