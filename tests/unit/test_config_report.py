"""The verbs of `knowledge config`: their logic, and what they print."""

import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.config import load, locate, read
from app.config_report import check, effective_values, init
from app.masking import mask_url
from cli.config_verbs import config_app
from domain.errors import ConfigurationError, RefusedError, StorageError


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("", ""),
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://user:secret@host", "redis://user:***@host"),
        ("redis://:secret@host/1", "redis://:***@host/1"),
        ("rediss://user:se:cr@et/x@host", "rediss://user:***@host"),
        ("redis://token@host", "redis://***@host"),
        ("user:secret@host", "user:***@host"),
        ("unix:///run/x.sock?db=1&password=secret", "unix:///run/x.sock?db=1&password=***"),
        ("redis://h?username=u&PASSWORD=a#b", "redis://h?username=u&PASSWORD=***#b"),
    ],
)
def test_passwords_are_masked(url: str, masked: str) -> None:
    assert mask_url(url) == masked


def test_init_writes_a_file_that_works_and_overwrites_nothing(tmp_path: Path) -> None:
    path = init(tmp_path)
    assert path == tmp_path / "knowledge.yaml"
    settings = load(locate(tmp_path, config=None, environ={}), {}, cwd=tmp_path)
    assert settings.enabled
    assert [root.path for root in settings.roots] == [tmp_path]
    path.write_text("mine", "utf-8")
    with pytest.raises(RefusedError, match="is there already"):
        init(path)
    assert path.read_text("utf-8") == "mine"
    assert init(tmp_path / "other.yaml").is_file()
    with pytest.raises(StorageError, match="Cannot write"):
        init(tmp_path / "absent" / "knowledge.yaml")


@pytest.mark.skipif(os.name != "posix", reason="mode bits")
def test_init_never_writes_a_file_that_would_be_refused(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert init(tmp_path).stat().st_mode & 0o022 == 0
    finally:
        os.umask(before)


def test_what_init_comments_out_is_valid_too(tmp_path: Path) -> None:
    """The commented keys are what people will uncomment."""
    path = init(tmp_path)
    (tmp_path / "handbook").mkdir()
    text = path.read_text("utf-8").replace("../handbook", "handbook").replace("    - .\n", "")
    path.write_text(re.sub(r"(?m)^( +)# ( *(?:- )?[a-z_]+:)", r"\1\2", text), "utf-8")
    settings = load(locate(tmp_path, config=None, environ={}), {}, cwd=tmp_path)
    assert [root.name for root in settings.roots] == ["handbook"]
    assert settings.roots[0].exclude == ("drafts/",)


def test_show_tells_every_value_and_where_it_came_from_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    path = tmp_path / "knowledge.yaml"
    path.write_text(
        "knowledge:\n  paths:\n    - path: docs\n      name: d\n  queue: {url: 'redis://u:hunter2@h'}\n"
        "  embeddings: {base_url: 'https://e/v1', model: m, api_key_env: MY_KEY}\n"
        "  schedules: [{name: n, cron: '0 3 * * *'}]\n",
        "utf-8",
    )
    environ = {"KNOWLEDGE_TOP_K": "7", "MY_KEY": "sk-hunter3"}
    loaded = read(locate(tmp_path, config=None, environ=environ), environ, cwd=tmp_path)
    rows = {row.key: (row.value, str(row.origin)) for row in effective_values(loaded, environ)}
    assert rows["top_k"] == (7, "environment variable KNOWLEDGE_TOP_K")
    assert rows["identity"] == ("knowledge", f"default of the configuration {path}, found here or above")
    assert rows["directory"][0] == str(tmp_path / "knowledge" / "knowledge")
    assert rows["paths[0]"] == (str(tmp_path / "docs"), f"{path}:3")
    assert rows["paths[0].name"] == ("d", f"{path}:4")
    assert rows["queue.url"] == ("redis://u:***@h", f"{path}:5")
    assert rows["queue.workers"] == (0, "default")
    assert rows["embeddings.api_key_env"] == ("MY_KEY (set)", f"{path}:6")
    assert rows["schedules"] == (["n: index at 0 3 * * * (UTC)"], f"{path}:7")
    assert "mcp.profile" not in rows
    assert "hunter" not in str(rows)


@pytest.mark.parametrize(("key", "words"), [(None, "not set"), ("", "not set"), ("hunter2", "set")])
def test_show_names_the_variable_of_a_key_and_never_what_it_holds(tmp_path: Path, key: str | None, words: str) -> None:
    path = tmp_path / "knowledge.yaml"
    path.write_text(
        "knowledge:\n  embeddings: {base_url: 'https://e/v1', model: m, api_key_env: MY_KEY, outage_limit: 1m}\n",
        "utf-8",
    )
    environ = {} if key is None else {"MY_KEY": key}
    loaded = read(locate(tmp_path, config=None, environ=environ), environ, cwd=tmp_path)
    rows = {row.key: row.value for row in effective_values(loaded, environ)}
    assert rows["embeddings.api_key_env"] == f"MY_KEY ({words})"
    assert rows["embeddings.model"] == "m"
    assert (rows["embeddings.outage_limit"], rows["embeddings.max_batch_bytes"]) == ("1m", "1MiB")
    assert "hunter2" not in str(rows)


def test_show_names_the_local_model(tmp_path: Path) -> None:
    environ = {"KNOWLEDGE_EMBEDDINGS__PROVIDER": "local"}
    loaded = read(locate(tmp_path, config=None, environ=environ), environ, cwd=tmp_path)
    rows = {row.key: (row.value, str(row.origin)) for row in effective_values(loaded, environ)}
    assert rows["embeddings.model"] == ("wordllama-l2-supercat-256", "default")


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (
            "{base_url: 'https://e.example.org/v1', model: m}",
            "every text is sent to https://e.example.org/v1 (model m, without a key)",
        ),
        ("{base_url: 'https://e/v1', model: m, api_key_env: MY_KEY}", "with the key in the variable MY_KEY"),
        ("{provider: local}", "model wordllama-l2-supercat-256, inside this program; no text leaves this machine"),
    ],
)
def test_check_says_what_is_sent_where(tmp_path: Path, block: str, words: str) -> None:
    path = tmp_path / "knowledge.yaml"
    path.write_text(f"knowledge:\n  embeddings: {block}\n", "utf-8")
    environ = {"MY_KEY": "hunter2"}
    checked = check(locate(tmp_path, config=path, environ=environ), environ, cwd=tmp_path)
    assert words in "; ".join(checked.notes)
    assert "hunter2" not in "; ".join(checked.notes)


def test_show_without_anything(tmp_path: Path) -> None:
    loaded = read(locate(tmp_path, config=None, environ={}), {}, cwd=tmp_path)
    rows = {row.key: (row.value, str(row.origin)) for row in effective_values(loaded, {})}
    assert rows["identity"] == (
        "default",
        f"default of the default place {tmp_path / 'knowledge' / 'default'}",
    )
    assert rows["max_file_bytes"] == (524288, "default")
    assert rows["paths"] == ([], "default")


def test_check_reads_and_obeys_nothing(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.yaml"
    path.write_text("knowledge: {queue: {url: 'redis://h'}, server: {host: h}, enabled: false}\n", "utf-8")
    checked = check(locate(tmp_path, config=None, environ={}), {}, cwd=tmp_path)
    assert not checked.trusted
    assert [note.split(":")[0].split(",")[0] for note in checked.notes] == [
        "server.host",
        "switched off",
        "not trusted yet",
    ]
    assert check(locate(tmp_path, config=path, environ={}), {}, cwd=tmp_path).trusted


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory, and an environment without variables of ours."""
    for name in [name for name in os.environ if name.startswith("KNOWLEDGE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(config_app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_the_verbs_from_init_to_trust(here: Path) -> None:
    assert run("init") == "wrote knowledge.yaml\n"
    assert run("check") == f"configuration {here}/knowledge.yaml, found here or above: no errors\n"
    (here / "knowledge.yaml").write_text("knowledge: {queue: {url: 'redis://u:pw@h'}}\n", "utf-8")
    assert "note: not trusted yet" in run("check")
    assert json.loads(run("check", "--json")) == {
        "status": "ok",
        "config_path": str(here / "knowledge.yaml"),
        "enabled": True,
        "trusted": False,
        "notes": ["not trusted yet, and it sends work over a queue of its own (queue.url): knowledge config trust"],
    }
    assert run("trust") == f"trusted {here}/knowledge.yaml\n"
    assert json.loads(run("check", "--json"))["trusted"]
    assert 'queue.url = "redis://u:***@h"' in run("show")
    rows = {row["key"]: row for row in json.loads(run("show", "--json"))["values"]}
    assert rows["queue.url"]["value"] == "redis://u:***@h"


def test_trust_of_a_named_file(here: Path) -> None:
    (here / "other.yaml").write_text("knowledge: {}\n", "utf-8")
    assert run("trust", "other.yaml") == f"trusted {here}/other.yaml\n"


def test_trust_without_a_file(here: Path) -> None:
    with pytest.raises(ConfigurationError, match="no configuration file here or above"):
        run("trust")


def test_show_works_while_a_root_is_away(here: Path) -> None:
    (here / "knowledge.yaml").write_text("knowledge: {paths: [gone]}\n", "utf-8")
    assert "# note: " in run("show")


def test_check_without_a_file_is_fine(here: Path) -> None:
    assert run("check") == f"default place {here}/knowledge/default: no errors\n"
